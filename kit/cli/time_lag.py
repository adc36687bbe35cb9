"""``offramp lag --time``: how old the next unread record of each partition is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from kit.groups.chosen import ChosenGroup, hidden_topics
from kit.terminal.listing import Listing
from kit.terminal.terminal import refusals
from kit.text.duration import duration

if TYPE_CHECKING:
    import polars as pl

Method: TypeAlias = Annotated[
    Literal["bisection", "anchors", "record"],
    typer.Option("--method", help="With --time: the method that finds the age, see docs/health.md."),
]
_SPARE = ("beyond_end", "is_idle", "is_extrapolated", "is_truncated", "method", "committed_offset", "store")


def print_time_lag(listing: Listing, chosen: ChosenGroup, method: Method) -> None:
    """Each partition of the group, or of every group, the oldest unread record first."""
    import polars as pl

    from kit.groups import views
    from kit.groups.snapshot import verify_each, verify_read
    from kit.health.sources import seen_at_ms, time_lag, verify_time_lag

    with refusals():
        with chosen.connected() as cluster:
            taken = chosen.observe(cluster)
            partitions = views.lag(taken).filter(~pl.col("is_stale"))
            rows = time_lag(cluster, partitions, seen_at_ms(taken), method)
            hidden = hidden_topics(cluster)
        order = ["group_id", "store", "topic", "partition"]
        oldest_first = rows.sort("time_lag_ms", *order, descending=[True, *[False] * 4], nulls_last=True)
        listing.print(oldest_first, _SPARE, _in_words)
        chosen.say_unseen(taken, hidden)
        verify_each(partial(verify_read, taken), partial(verify_time_lag, rows))


def _in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Ages as people say them; the bracket is rounded outwards."""
    import polars as pl

    ages = {"time_lag_ms": False, "lower_ms": False, "upper_ms": True}
    words = [
        pl.Series(name.removesuffix("_ms"), [None if age is None else duration(age, is_most) for age in rows[name]])
        for name, is_most in ages.items()
    ]
    at = rows.columns.index("time_lag_ms")
    others = rows.drop(*ages)
    return others.select(*others.columns[:at], *words, *others.columns[at:])
