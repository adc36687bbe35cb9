"""What every wizard does and shows: a plan, its approval, the run, the rollback."""
