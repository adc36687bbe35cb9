"""Charts, tables and pages of frames."""
