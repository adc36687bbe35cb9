"""Snapshots kept as Parquet, on any file system Spark reads.

A snapshot as it was appended: ``<folder>/<table>/date=YYYY-MM-DD/snapshot_id=<id>/*.parquet``. The ``snapshots`` table
is written last: what it doesn't list was not written to the end and is not loaded.

A day that was compacted: ``<folder>/days/<table>/date=YYYY-MM-DD/part=<id>/*.parquet``, its rows sorted by group, topic
and partition. Here, too, ``snapshots`` is written last. Nothing is ever written twice: each compaction writes parts of
its own, and of a snapshot that is in several the first part counts. The files that a part replaces are deleted by a
later compaction, an hour after at the earliest, so that who lists files meanwhile misses none.

Each group's hours are kept beside them: ``kit.health.hours``.

Plain Spark reads either: ``spark.read.parquet(f"{folder}/committed_offsets")``, ``…/days/committed_offsets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.history.here import HistoryHere, folder_here
    from kit.history.snapshots import History
    from kit.history.upkeep import Compacted, Upkeep

__all__ = ["Compacted", "History", "HistoryHere", "Upkeep", "folder_here"]
_, __getattr__ = lazy_names(__name__)
