"""``offramp watch``: every group's lag, repeatedly, groups with growing lag first; it only reads."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kit.groups.chosen import ChosenGroups, hidden_topics
from kit.health.verbs.keeping import keeper
from kit.terminal.listing import print_frame, that_fit
from kit.terminal.options import with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import (
    LONGEST_WAIT_S,
    a_number,
    clear_screen,
    refusals,
    say,
    screen_size,
    tell,
)
from kit.text.quantity import quantity

if TYPE_CHECKING:
    import polars as pl

    from kit.groups.snapshot import Snapshot

app = typer.Typer(rich_markup_mode=None)

Every: TypeAlias = Annotated[
    float,
    typer.Option(
        "--every",
        min=1,
        max=LONGEST_WAIT_S,
        callback=a_number,
        metavar="SECONDS",
        help="Time from one observation to the next, in seconds.",
    ),
]
_OTHER_LINES = 4
"""The lines of what is left out, of what was not read, which may wrap, and under them the cursor."""
_UNSEEN = "some groups may be hidden from this login: see offramp groups"
_SPARE = ("n_unknown", "n_beyond_end", "store")


@app.command()
@with_options
def watch(
    chosen: ChosenGroups,
    every: Every = 10.0,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after this number of observations.")] = None,
    history: Annotated[str, typer.Option("--history", help="Append each observation to this history.")] = "",
) -> None:
    """Show every group's lag, poll after poll: stalled groups and groups with growing lag first. Ctrl-C ends it.

    Rates and the line of lag use the last twelve polls. Exit code 12 means that the last observation is incomplete.
    """
    from kit.clients.cluster import connect
    from kit.groups.snapshot import unseen_groups, verify_read
    from kit.health.live import FEWEST, TOO_FEW, GroupTrends, Polls

    with refusals():
        profile = chosen.load()
        keep = keeper(profile, history) if history else None
        with waiting(f"connecting to {profile.name}"):
            connected = connect(profile, is_patient=False)
        with connected as cluster:
            say(*hidden_topics(cluster))
            looks, of_late = Polls(cluster, chosen.pattern), GroupTrends()
            while True:
                begun = time.monotonic()
                with waiting(f"reading {profile.name}"):
                    look = looks.take()
                    rows = of_late.add(look.partitions)
                where = f"{profile.name} at {look.at:%H:%M:%S} UTC, poll {look.number:,}"
                notes = [TOO_FEW] * (look.number < FEWEST) + [_UNSEEN] * (unseen_groups(look.snapshot) is not None)
                _print(rows, "; ".join([f"{where}: {_counted(rows)}", look.cost, *notes]))
                if keep is not None:
                    keep(look.snapshot)
                if look.number == count:
                    verify_read(look.snapshot)
                    return
                _tell_unread(look.snapshot)
                time.sleep(max(0.0, begun + every - time.monotonic()))


def _counted(rows: pl.DataFrame) -> str:
    from kit.health.live import risks

    counted = ", ".join(f"{count:,} {trend}" for trend, count in risks(rows).items())
    return f"{quantity(rows['group_id'].n_unique(), 'group')}{f' ({counted})' if counted else ''}"


def _print(rows: pl.DataFrame, headline: str) -> None:
    """On a terminal as many rows as fit, in the place of the last; elsewhere all, below each other."""
    import polars as pl

    from kit.health.live import with_lines

    size = screen_size()
    n_lines = size.lines - _OTHER_LINES - -(-len(headline) // size.columns)
    words = with_lines(rows.head(max(1, n_lines)) if sys.stdout.isatty() else rows).with_columns(
        pl.col("lag_per_s", "read_per_s", "written_per_s").map_elements("{:,.1f}".format, return_dtype=pl.String)
    )
    if sys.stdout.isatty():
        clear_screen()
        words = that_fit(words, n_lines, _SPARE)
    tell(headline)
    n_more = len(rows) - len(words)
    notes = [f"{n_more:,} more groups. To show fewer, give --groups a pattern of names"] * (n_more > 0)
    print_frame(words, _SPARE, notes, may_page=False)


def _tell_unread(taken: Snapshot[pl.DataFrame]) -> None:
    """In one line, with the first name: the next observation clears the screen."""
    from kit.groups.snapshot import unread

    lines = unread(taken)
    if lines:
        more = f"; and {len(lines) - 1:,} more. To list all: offramp groups" if len(lines) > 1 else ""
        tell(
            f"{quantity(len(lines), 'thing')} could not be read, so the values are unknown, not zero: {lines[0]}{more}"
        )
