"""Checked connections to one cluster, and the clients that every subject reads with."""
