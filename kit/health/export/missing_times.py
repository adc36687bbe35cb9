"""Lags in time and outlooks that an observation could not read."""

from __future__ import annotations

import polars as pl

from kit.health.analyze.verified import verify_known, without_time
from kit.health.analyze.windows import PARTITION


def unknown_times(late: pl.DataFrame, outlook: pl.DataFrame) -> pl.DataFrame:
    """The partitions whose lag in records is known, but whose lag in time or time of deletion could not be read.

    Args:
        late, outlook: ``kit.health.sources.time_lag_and_outlook``. An outlook that only lacks a second observation
            is not missing.

    Columns: group_id, store, topic, partition, error.
    """
    columns = [*PARTITION, "error"]
    is_open = (
        (pl.col("beyond_end") == 0)
        & pl.col("n_looks").is_not_null()
        & pl.col("is_never_deleted").is_null()
        & pl.col("lag").is_not_null()
    )
    rows = pl.concat([without_time(late).select(columns), outlook.filter(is_open).select(columns)])
    return rows.unique(PARTITION, keep="first").sort(PARTITION)


def verify_times(unknown: pl.DataFrame) -> None:
    """Raise if :func:`unknown_times` has rows.

    Raises:
        PartialRead: naming the partitions (the first 20), and why.
    """
    verify_known(unknown, "lag in time or the outlook")
