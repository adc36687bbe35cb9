"""Plans, approvals, runs and their journal: an engine that knows no Kafka word but its targets."""
