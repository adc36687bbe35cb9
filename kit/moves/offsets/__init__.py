"""Committed offsets: copied, reset, imported, deleted, brought back."""
