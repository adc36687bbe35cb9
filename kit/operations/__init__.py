"""Execute plans of every kind for an operator: plan, approve, execute, undo; the lock of a run."""
