"""The ``offramp`` command: a file per family of verbs."""
