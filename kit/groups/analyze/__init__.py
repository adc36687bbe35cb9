"""One snapshot: who owns what, how evenly, how far behind, which group can move."""
