"""The verbs of plans and runs."""
