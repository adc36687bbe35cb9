"""The locks of runs of groups: in ZooKeeper, in Kafka, or both; which are held, and how an operator breaks one."""
