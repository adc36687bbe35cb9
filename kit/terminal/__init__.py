"""The frame of the command line: verbs loaded when called, tables, progress, exit codes."""
