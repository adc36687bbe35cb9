"""Requests to ZooKeeper and to coordinators → rows and Arrow."""
