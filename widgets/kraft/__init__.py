"""Moving a cluster from ZooKeeper to KRaft and back: the model and its view."""
