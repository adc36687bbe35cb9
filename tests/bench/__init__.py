"""How fast the readers are, side by side with other tools, on one lab in one run: ``python -m tests.bench``."""
