"""Count what a task finds in each file: rows that the driver turns into ``tables.LOG_FILES``."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from kit.rebalances.logs import wordings

_BACK_US = 1_000_000
"""A record that is written out of order by less is no regression: some clocks write a little late."""
COUNTS = {
    "n_events": pa.int64(),
    "n_context": pa.int64(),
    "n_unknown": pa.int64(),
    "layouts": pa.list_(pa.string()),
    "n_time_regressions": pa.int64(),
    "first_at": pa.timestamp("us", "UTC"),
    "last_at": pa.timestamp("us", "UTC"),
    "n_unzoned": pa.int64(),
    "first_local": pa.int64(),
    "last_local": pa.int64(),
    "least_step": pa.int64(),
    "most_step": pa.int64(),
}


def counts_of(understood: pl.DataFrame, entries: pl.DataFrame, last: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One portion's counts per file; and the last record of each origin in the last file, for the next portion.

    Args:
        understood: the events, and the lines that resemble coordination.
        entries: all records; any of them may prove the zone.
        last: of the portion before.
    """
    before = pl.col("local_at").shift().over("file", "origin")
    every = pl.concat([last, understood.with_columns(is_new=pl.lit(True))], how="diagonal")
    timed = every.with_columns(goes_back=pl.col("is_new") & (pl.col("local_at") < before - _BACK_US))
    unzoned = pl.col("local_at").filter(pl.col("local_at").is_not_null() & pl.col("observed_at").is_null())
    counts = (
        timed.filter("is_new")
        .group_by("file")
        .agg(
            n_events=(pl.col("kind") != wordings.CONTEXT).sum(),
            n_context=(pl.col("kind") == wordings.CONTEXT).sum(),
            n_unknown=pl.col("is_unknown").sum(),
            layouts=pl.col("layout").drop_nulls().unique(),
            n_time_regressions=pl.col("goes_back").sum(),
            first_at=pl.col("observed_at").min(),
            last_at=pl.col("observed_at").max(),
            n_unzoned=unzoned.len(),
            first_local=unzoned.min(),
            last_local=unzoned.max(),
        )
    )
    step = pl.col("zone_step")
    steps = entries.group_by("file").agg(least_step=step.min(), most_step=step.max())
    ends = every.select("file", "origin", "local_at", is_new=pl.lit(False)).group_by("file", "origin").last()
    return counts.join(steps, on="file", how="full", coalesce=True), ends.filter(
        pl.col("file") == pl.lit(every["file"].last())
    )


def totals(counts: pl.DataFrame) -> pl.DataFrame:
    """All portions' counts: one row per file that has any."""
    whole = counts.group_by("file").agg(
        pl.col("^n_.*$").sum(),
        pl.col("^(first|least)_.*$").min(),
        pl.col("^(last|most)_.*$").max(),
        layouts=pl.col("layouts").explode().drop_nulls().unique(),
    )
    return whole.filter(pl.sum_horizontal("n_events", "n_context", "n_unknown") > 0)
