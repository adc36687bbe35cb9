"""Plans, approvals, runs, evidence: the engine knows no Kafka, no ZooKeeper and no Spark."""
