"""Until when a member may deliver records: while its session and its membership of the Kafka group are certain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

NEVER = float("-inf")
Clock = Callable[[], float]


def seconds_since_boot() -> float:
    """The clock of a lease. It continues while the machine is suspended; ``time.monotonic`` does not on Linux.

    A system without CLOCK_BOOTTIME counts suspension in its monotonic clock, or has no suspension to count.
    """
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Lease:
    """``until`` is the clock's time up to which both are certain; streams read it before every record.

    Any thread may call any method. Before the first proof the session is not certain. The membership is, until it is
    first extended: an old consumer has none.
    """

    def __init__(self, clock: Clock) -> None:
        self.until = NEVER
        self._clock = clock
        self._session_until = NEVER
        self._membership_until = float("inf")
        self._lock = threading.Lock()

    def extend_session(self, until: float) -> None:
        """The ZooKeeper session is certain until then."""
        with self._lock:
            self._session_until = until
            self.until = min(until, self._membership_until)

    def end_session(self) -> None:
        """There is no session: nothing is certain before the next proof."""
        self.extend_session(NEVER)

    def extend_membership(self, until: float) -> None:
        """The embedded consumer's thread runs: its membership of the Kafka group is certain until then (R13)."""
        with self._lock:
            self._membership_until = until
            self.until = min(self._session_until, until)

    @property
    def seconds_over(self) -> float:
        """Return how long nothing could be delivered by now; 0 while both are certain."""
        return max(0.0, self._clock() - self.until)

    @property
    def seconds_without_session(self) -> float:
        """Return how long the ZooKeeper session has been in doubt; 0 while it is certain."""
        return max(0.0, self._clock() - self._session_until)
