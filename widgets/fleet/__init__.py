"""The wizard of many groups."""
