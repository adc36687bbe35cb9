"""The wizard of committed offsets."""
