"""Events of logs and generations of the offsets topic: what happened in a group, and why."""
