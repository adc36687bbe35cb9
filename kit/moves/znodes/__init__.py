"""Plans that delete persistent znodes of groups in ZooKeeper."""
