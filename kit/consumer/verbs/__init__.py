"""``offramp consume``."""
