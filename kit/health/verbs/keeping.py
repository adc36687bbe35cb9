"""Appends snapshots to a history: by Spark only where its folder is not on this machine's disks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kit.profile import Profile
from kit.terminal.progress import waiting
from kit.terminal.spark_start import started_spark

if TYPE_CHECKING:
    import polars as pl

    from kit.tables.snapshot import Snapshot


def keeper(profile: Profile, folder: str) -> Callable[[Snapshot[pl.DataFrame]], None]:
    """Open the history, and return what appends a snapshot to it.

    Raises:
        HistoryError: the folder holds a history of another schema version, or can't be read.
    """
    from kit.history import folder_here

    here = folder_here(profile, folder)
    if here is None:
        append = _by_spark(profile, folder)
    else:
        from kit.history import HistoryHere

        append = HistoryHere(here).append

    def keep(taken: Snapshot[pl.DataFrame]) -> None:
        with waiting(f"writing to {folder}"):
            append(taken)

    return keep


def _by_spark(profile: Profile, folder: str) -> Callable[[Snapshot[pl.DataFrame]], None]:
    from kit.history import History
    from kit.tables.snapshot import in_spark_too

    spark = started_spark(profile)
    with waiting(f"reading {folder}"):
        kept = History(spark, folder)
    return lambda taken: kept.append(in_spark_too(spark, taken))
