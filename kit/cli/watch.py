"""``offramp watch``: every group's lag, again and again, who falls behind first; it only reads."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Annotated, TypeAlias

import polars as pl
import typer

from kit import analyze, views
from kit.cli.listing import print_frame
from kit.cli.terminal import (
    LONGEST_WAIT_S,
    Pattern,
    ProfileFile,
    ProfileName,
    a_number,
    clear_screen,
    refusals,
    tell,
)
from kit.cluster import connect
from kit.errors import PartialRead
from kit.profile import load_profile
from kit.show.sparkline import sparkline
from kit.snapshot import EVERY_GROUP, observe, verify_read
from kit.text.quantity import quantity

app = typer.Typer(rich_markup_mode=None)

Every: TypeAlias = Annotated[
    float,
    typer.Option("--every", min=1, max=LONGEST_WAIT_S, callback=a_number, metavar="SECONDS", help="From look to look."),
]
_LOOKS = 12
_RISKS = ("standing", "growing", "steady", "unknown", "closing", "caught up")
_OTHER_LINES = 5


@app.command()
def watch(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    every: Every = 10.0,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after so many looks.")] = None,
) -> None:
    """Every group's lag, look after look: who stands still or falls behind first. Ctrl-C ends it.

    Rates and the line of late go back twelve looks. Exit code 12: at the last look something was not read.
    """
    with refusals():
        chosen = load_profile(profile, profile_file)
        looks = deque[pl.DataFrame](maxlen=_LOOKS)
        with connect(chosen) as cluster:
            for number in itertools.count(1):
                begun, sent = time.monotonic(), cluster.broker_client.n_sent
                taken = observe(cluster, pattern)
                took_s, at = time.monotonic() - begun, datetime.now(UTC)
                partitions = views.lag(taken).filter(~pl.col("is_stale"))
                looks.append(partitions.with_columns(at_ms=pl.lit(round(at.timestamp() * 1000), pl.Int64)))
                rows = groups_of_late(list(looks))
                sent = cluster.broker_client.n_sent - sent
                cost = f"{took_s:.1f} s and {quantity(sent, 'request')} to brokers for a look"
                _print(rows, f"{chosen.name} at {at:%H:%M:%S} UTC, look {number:,}: {_counted(rows)}; {cost}")
                if number == count:
                    verify_read(taken)
                    return
                _tell_unread(taken)
                time.sleep(max(0.0, begun + every - time.monotonic()))


def groups_of_late(looks: list[pl.DataFrame]) -> pl.DataFrame:
    """Looks as ``lag_velocity`` takes them, oldest first → a row per group and store, who is at risk first.

    Columns: group_id, store, lag, trend (``standing``: nothing was committed), lag_per_s, read_per_s, written_per_s (in
    records; null after one look), of_late (the lag of each look, as a line), n_unknown (partitions).
    """
    key = ["group_id", "store"]
    now = views.group_lag(looks[-1]).select(*key, "lag", "n_unknown")
    # The oldest look tells most; who was not in it is told of by the last two.
    rates = (
        analyze.lag_velocity(pl.concat([*looks[:1], *looks[1:][-2:]]))
        .group_by(key)
        .agg(lag_per_s=pl.sum("lag_per_s"), read_per_s=pl.sum("consumed_per_s"), written_per_s=pl.sum("produced_per_s"))
    )
    totals = pl.concat([each.group_by(*key, "at_ms").agg(_whole_sum()) for each in looks])
    lines = totals.sort("at_ms").group_by(key, maintain_order=True).agg("lag")
    of_late = lines.select(*key, of_late=pl.col("lag").map_elements(_line, return_dtype=pl.String))
    rows = now.join(rates, on=key, how="left").join(of_late, on=key, how="left").with_columns(trend=_trend())
    rank = pl.col("trend").replace_strict({trend: at for at, trend in enumerate(_RISKS)})
    rows = rows.sort(rank, pl.col("lag").fill_null(-1), *key, descending=[False, True, False, False])
    return rows.select(*key, "lag", "trend", "lag_per_s", "read_per_s", "written_per_s", "of_late", "n_unknown")


def _whole_sum() -> pl.Expr:
    """Unknown where any partition with a commit is."""
    is_known = (pl.col("lag").is_not_null() | pl.col("has_no_commit")).all()
    return pl.when(is_known).then(pl.col("lag").sum()).alias("lag")


def _line(lags: pl.Series) -> str:
    return sparkline(lags.to_list())


def _trend() -> pl.Expr:
    lag, rate = pl.col("lag"), pl.col("lag_per_s")
    trend = pl.when(lag == 0).then(pl.lit("caught up")).when(lag.is_null() | rate.is_null()).then(pl.lit("unknown"))
    trend = trend.when(pl.col("read_per_s") == 0).then(pl.lit("standing"))
    return (
        trend.when(rate > 0).then(pl.lit("growing")).when(rate < 0).then(pl.lit("closing")).otherwise(pl.lit("steady"))
    )


def _counted(rows: pl.DataFrame) -> str:
    counts = {trend: (rows["trend"] == trend).sum() for trend in _RISKS}
    told = ", ".join(f"{count:,} {trend}" for trend, count in counts.items() if count)
    return f"{quantity(rows['group_id'].n_unique(), 'group')}{f' ({told})' if told else ''}"


def _print(rows: pl.DataFrame, headline: str) -> None:
    """On a terminal as many rows as fit, in the place of the last; elsewhere all, below each other."""
    shown = len(rows)
    if sys.stdout.isatty():
        clear_screen()
        shown = max(1, get_terminal_size().lines - _OTHER_LINES)
    tell(headline)
    words = rows.head(shown).with_columns(
        pl.col("lag_per_s", "read_per_s", "written_per_s").map_elements("{:,.1f}".format, return_dtype=pl.String)
    )
    notes = [f"{len(rows) - shown:,} more: --groups takes a pattern of names"] * (len(rows) > shown)
    print_frame(words, ("n_unknown", "store"), notes, may_page=False)


def _tell_unread(taken: object) -> None:
    try:
        verify_read(taken)  # type: ignore[arg-type]
    except PartialRead as error:
        tell(str(error).partition("\n")[0])
