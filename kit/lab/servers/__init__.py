"""The lab's servers: ZooKeeper, brokers, their security, and a cable that can be cut."""
