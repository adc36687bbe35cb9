"""The znodes of a cluster's metadata, its nodes and controllers → rows."""
