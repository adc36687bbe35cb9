"""Frames as charts, pictures and tables. Takes frames only."""
