"""The wizard of one group."""
