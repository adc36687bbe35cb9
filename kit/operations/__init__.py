"""What an operator does with plans of every kind: plan, approve, execute, undo; the lock of a run."""
