"""A group in one process: models of ZooKeeper, the Kafka group protocol and members, stepped one by one."""
