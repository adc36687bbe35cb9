"""A consumer of a Kafka group with Java's rebalance listener and its restricted view (KAFKA-20385)."""
