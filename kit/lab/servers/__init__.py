"""The lab's servers: ZooKeeper, brokers, their security, and a TCP proxy that can be cut."""
