"""Consumer groups of one cluster: read, judged and shown."""
