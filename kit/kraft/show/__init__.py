"""Charts and briefs of a move to KRaft."""
