"""Plans that move a cluster from ZooKeeper to KRaft, phase by phase, and back (KIP-866, Kafka 3.9)."""
