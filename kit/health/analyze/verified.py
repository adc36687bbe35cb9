"""Check whether lags in time and outlooks could be reported: a sentence, or an error that names the partitions."""

from __future__ import annotations

import polars as pl

from kit.errors import PartialRead
from kit.text.quantity import quantity
from kit.text.visible import visible


def verify_time_lag(rows: pl.DataFrame) -> str:
    """A sentence when each lag could be reported in time.

    Raises:
        PartialRead: naming the partitions (the first 20) whose lag could not, and why.
    """
    verify_known(without_time(rows), "lag in time")
    return _of_known(rows, "Lag in time")


def without_time(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter((pl.col("lag") > 0) & pl.col("time_lag_ms").is_null())


def verify_outlook(rows: pl.DataFrame) -> str:
    """A sentence when both could be reported of each partition.

    Raises:
        PartialRead: naming the partitions (the first 20) of which something is unknown, and why.
    """
    is_unread = pl.col("error").is_not_null() & pl.col("lag").is_not_null() & ~(pl.col("beyond_end") > 0)
    verify_known(rows.filter(is_unread), "outlook")
    return _of_known(rows, "Outlook")


def verify_known(unknown: pl.DataFrame, what: str) -> None:
    """Raises PartialRead unless there is no row."""
    if unknown.is_empty():
        return
    lines = [f"{row['group_id']}/{row['topic']}-{row['partition']}: {row['error']}" for row in unknown.to_dicts()]
    shown = "\n".join([*map(visible, lines[:20]), *["…"] * (len(lines) > 20)])
    raise PartialRead(f"The {what} of {quantity(len(lines), 'partition')} is unknown, not zero:\n{shown}")


def _of_known(rows: pl.DataFrame, what: str) -> str:
    """Return of how many partitions it is known; without a commit, or beyond the end of the log, there is none to
    know.
    """
    n_lost = len(rows.filter(pl.col("beyond_end") > 0))
    n_none = len(rows.filter(pl.col("lag").is_null()))
    others = [f"{quantity(n_none, 'partition')} without a lag"] * (n_none > 0)
    others += [f"{quantity(n_lost, 'commit')} beyond the end of the log"] * (n_lost > 0)
    known = f"{what}: {quantity(len(rows) - n_lost - n_none, 'partition')}, all known."
    return f"{known} Not counted: {', '.join(others)}." if others else known
