"""A member of an old ZooKeeper group, and the migration-enabled one (KIP-125)."""
