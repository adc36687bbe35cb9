"""All groups of a cluster, poll after poll, groups at risk first. It only reads."""
