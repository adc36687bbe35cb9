"""Charts and briefs of lag in time."""
