"""Provide the common part of every wizard: a plan, its approval, the run, the rollback."""
