"""``offramp watch`` and ``offramp export``."""
