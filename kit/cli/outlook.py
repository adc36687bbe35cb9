"""``offramp lag --outlook``: when each lag will be closed, and when unread records will be deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from kit.groups.chosen import ChosenGroup, hidden_topics
from kit.terminal.listing import Listing
from kit.terminal.terminal import LONGEST_WAIT_S, a_number, refusals
from kit.text.bracket import bracket
from kit.text.duration import duration

if TYPE_CHECKING:
    import polars as pl

    from kit.clients.cluster import Cluster
    from kit.groups.snapshot import Snapshot

OverS: TypeAlias = Annotated[
    float,
    typer.Option(
        "--over-s",
        min=1,
        max=LONGEST_WAIT_S,
        callback=a_number,
        help="With --outlook: seconds over which the rates are found, in four observations.",
    ),
]
_LOOKS = 4
_SPARE = ("store", "lag_retained", "expired_unread")


def print_outlook(listing: Listing, chosen: ChosenGroup, over_s: float) -> None:
    """Each partition of the group, or of every group; first where records will be deleted unread the soonest."""
    from kit.groups.snapshot import verify_each, verify_read
    from kit.health.sources import outlook, verify_outlook

    with refusals():
        with chosen.connected(f" {_LOOKS} times in {over_s:g} s") as cluster:
            looks, last = _look(cluster, chosen, over_s)
            rows = outlook(cluster, looks)
            hidden = hidden_topics(cluster)
        order = ["group_id", "store", "topic", "partition"]
        urgent = ["deletion_lower_ms", "is_never_closed", "lag"]
        rows = rows.sort(*urgent, *order, descending=[False, True, True, *[False] * 4], nulls_last=True)
        listing.print(rows, _SPARE, _in_words)
        chosen.say_unseen(last, hidden)
        verify_each(partial(verify_read, last), partial(verify_outlook, rows))


def _look(cluster: Cluster, chosen: ChosenGroup, over_s: float) -> tuple[pl.DataFrame, Snapshot[pl.DataFrame]]:
    """All observations, and the last snapshot."""
    import polars as pl

    from kit.groups import views
    from kit.health.sources import seen_at_ms

    looks, begun = [], time.monotonic()
    for number in range(_LOOKS):
        time.sleep(max(0.0, begun + number * over_s / (_LOOKS - 1) - time.monotonic()))
        taken = chosen.observe(cluster)
        partitions = views.lag(taken).filter(~pl.col("is_stale"))
        looks.append(partitions.with_columns(at_ms=pl.lit(seen_at_ms(taken), pl.Int64)))
    return pl.concat(looks), taken


def _in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """For people: brackets as from – to, rates without their bounds."""
    import polars as pl

    each = rows.to_dicts()
    pause = [None if row["pause_ms"] is None else duration(row["pause_ms"]) for row in each]
    words = {
        "closed_in": [_words(row, "close", row["is_never_closed"]) for row in each],
        "unread_deleted_in": [_words(row, "deletion", row["is_never_deleted"]) for row in each],
        "may_pause": pause,
        "read_per_s": [_rate(row["consumed_per_s"]) for row in each],
        "written_per_s": [_rate(row["produced_per_s"]) for row in each],
    }
    texts = [pl.Series(name, cells, pl.String) for name, cells in words.items()]
    others = ("store", "lag_retained", "expired_unread", "error")
    return rows.select("group_id", "topic", "partition", "lag", "trend", *texts, *others)


def _words(row: Mapping[str, Any], what: str, is_never: bool | None) -> str | None:
    by = f" by {row['deletion_by']}" if what == "deletion" and row["deletion_by"] else ""
    return bracket(row[f"{what}_lower_ms"], row[f"{what}_upper_ms"], is_never, by)


def _rate(per_s: float | None) -> str | None:
    return None if per_s is None else f"{per_s:,.1f}"
