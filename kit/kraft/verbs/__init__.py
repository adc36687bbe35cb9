"""``offramp kraft`` and ``offramp znodes``."""
