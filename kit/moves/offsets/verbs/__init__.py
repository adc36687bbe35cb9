"""``offramp plan offsets`` and ``offramp plan delete-groups``."""
