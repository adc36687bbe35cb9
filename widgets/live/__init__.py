"""All groups of a cluster, look after look: who is at risk first. It only reads."""
