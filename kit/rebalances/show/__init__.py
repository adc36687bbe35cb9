"""Timelines of rebalances."""
