"""Frames as charts, pictures and tables. Knows frames only."""
