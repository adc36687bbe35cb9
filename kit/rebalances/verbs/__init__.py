"""``offramp rebalances``."""
