"""The part of a procedure that reads all groups of a cluster, and keeps a distance between two such readings."""

from __future__ import annotations

import time

from widgets.run.procedure import Procedure

PACE = 5
"""The pause between two readings, as a multiple of one reading's duration: a large cluster is not read all the time."""


class WholeClusterProcedure(Procedure):
    """A procedure whose reading, ``_read_all``, is of all groups."""

    _reading_s = 0.0

    def _read_all(self) -> None:
        """Read and judge all groups. Raises OfframpError."""
        raise NotImplementedError

    def _reached(self) -> None:
        self.refresh()

    def _pace_s(self, every_s: float) -> float:
        return max(every_s, PACE * self._reading_s)

    def _see(self) -> None:
        began = time.monotonic()
        try:
            self._read_all()
        finally:
            self._reading_s = time.monotonic() - began
