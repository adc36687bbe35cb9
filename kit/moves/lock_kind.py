"""Choose the lock that runs of groups take. Only its place is named: it writes offsets, and so does what imports
this.
"""

from __future__ import annotations

from kit.engine.plan_kind import LockKind

RUN_LOCK = LockKind("kit.moves.locks.run_lock:RunLock", "kit.moves.locks.run_lock:refuse_cluster")
