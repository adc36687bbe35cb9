"""Consumers: a member of an old ZooKeeper group, a migration-enabled one (KIP-125), a Kafka consumer (KAFKA-20385)."""
