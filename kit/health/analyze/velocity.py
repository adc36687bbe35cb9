"""Measure the rates at which each group reads and each log grows, from several observations, with the slowest and
the quickest.
"""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.health.analyze.windows import PARTITION

RATES = ("consumed", "produced", "lag")
_COUNTS = {"committed": "committed_offset", "end": "log_end_offset", "start": "log_start_offset"}


@nw.narwhalify
def lag_velocity(looks: FrameT) -> FrameT:
    """Records per second over the observations of each partition: over all of them, and between which bounds it was.

    After a position or an end that went back (a rewind, a topic that was made again) only later observations count. An
    observation that could not determine counts for nothing, and so does a second one of the same millisecond.

    Args:
        looks: rows of ``kit.analyze.partition_lag`` with at_ms (epoch): when their ends were known.

    Columns:
        group_id, store, topic, partition: the key; a partition with one observation that counts has no row.
        n_looks: that count.
        looked_ms: from the first of them to the last.
        consumed_per_s, produced_per_s, lag_per_s: offsets that were committed, appended; by which the lag grew.
        …_lower, …_upper: the slowest and the quickest between two observations.
        is_restarted: earlier observations don't count.

    >>> import polars as pl
    >>> key = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0}
    >>> looks = pl.DataFrame({**key, "committed_offset": [0, 40, 100], "log_start_offset": 0,
    ...     "log_end_offset": [100, 130, 160], "at_ms": [0, 10_000, 20_000]})
    >>> rates = lag_velocity(looks)
    >>> rates.select("consumed_per_s", "consumed_per_s_lower", "consumed_per_s_upper", "lag_per_s").rows()
    [(5.0, 4.0, 6.0, -2.0)]
    """
    known = looks.filter(~nw.col("committed_offset").is_null() & ~nw.col("log_end_offset").is_null())
    one_per_time = known.group_by(*PARTITION, "at_ms").agg(
        **{name: nw.col(column).max() for name, column in _COUNTS.items()}
    )
    rows = _since_it_went_back(one_per_time)
    steps = rows.filter(~nw.col("is_first")).select(
        *PARTITION,
        "is_restarted",
        elapsed=nw.col("at_ms") - nw.col("at_ms_before"),
        consumed=nw.col("committed") - nw.col("committed_before"),
        produced=nw.col("end") - nw.col("end_before"),
    )
    steps = steps.with_columns(lag=nw.col("produced") - nw.col("consumed"))
    steps = steps.with_columns(**{f"{name}_rate": _per_second(name) for name in RATES})
    totals = steps.group_by(*PARTITION).agg(
        nw.len().cast(nw.Int64).alias("n_steps"),
        nw.col("is_restarted").any(),
        *[nw.col(name).sum() for name in ("elapsed", *RATES)],
        *[nw.col(f"{name}_rate").min().alias(f"{name}_per_s_lower") for name in RATES],
        *[nw.col(f"{name}_rate").max().alias(f"{name}_per_s_upper") for name in RATES],
    )
    totals = totals.with_columns(**{f"{name}_per_s": _per_second(name) for name in RATES})
    figures = [f"{name}_per_s{bound}" for name in RATES for bound in ("", "_lower", "_upper")]
    return totals.select(*PARTITION, *figures, "is_restarted", looked_ms="elapsed", n_looks=nw.col("n_steps") + 1)


def _since_it_went_back(rows: FrameT) -> FrameT:
    """With the observation before: the rows since the last one in which something is lower than before."""
    names = ["at_ms", *_COUNTS]
    rows = rows.with_columns(
        **{f"{name}_before": nw.col(name).shift(1).over(*PARTITION, order_by="at_ms") for name in names}
    )
    fell = [(nw.col(name) < nw.col(f"{name}_before")).fill_null(False) for name in _COUNTS]
    rows = rows.with_columns(went_back=fell[0] | fell[1] | fell[2])
    rows = rows.with_columns(life=nw.col("went_back").cast(nw.Int64).cum_sum().over(*PARTITION, order_by="at_ms"))
    rows = rows.with_columns(last_life=nw.col("life").max().over(*PARTITION))
    return rows.filter(nw.col("life") == nw.col("last_life")).with_columns(
        is_first=nw.col("went_back") | nw.col("at_ms_before").is_null(), is_restarted=nw.col("life") > 0
    )


def _per_second(name: str) -> nw.Expr:
    return nw.col(name).cast(nw.Float64) * 1000.0 / nw.col("elapsed").cast(nw.Float64)
