"""Measure the readers, side by side with other tools, on one lab in one run: ``python -m tests.bench``."""
