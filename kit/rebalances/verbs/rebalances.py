"""``offramp rebalances``: what happened to groups, by logs or by the coordinators' topic."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kit.errors import InputError
from kit.terminal.listing import print_frame
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.spark_start import spark_when_needed
from kit.terminal.terminal import print_json, print_sentences, refusals, say, tell

if TYPE_CHECKING:
    from kit.rebalances.sources import Rebalances

app = typer.Typer(rich_markup_mode=None)

Moment = Annotated[
    str | None, typer.Option(help="A time in ISO 8601 (UTC if no zone is given), or an age such as 90m, 6h, 2d.")
]
_SHOWN = ("group_id", "life", "generation", "is_utc", "started_at", "ended_at", "duration_ms", "leader_id", "assignor")


@app.command()
@with_options
def rebalances(
    profile: ChosenProfile,
    logs: Annotated[
        list[str] | None, typer.Argument(help="Log files, folders or patterns; gz too. - is standard input.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", "-g", help="One group, by its id.")] = None,
    since: Moment = None,
    until: Moment = None,
    zone: Annotated[
        str | None, typer.Option(help="Time zone of log times that name none: Europe/Paris, +05:30.")
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="Layout of the log lines, if offramp does not recognise it.")
    ] = None,
    timeline: Annotated[
        Path | None, typer.Option(help="Draw a timeline of the members into this .svg or .html file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON on standard output.")] = False,
) -> None:
    """Show what happened to groups: each generation, late members, moved partitions, findings – to paste into a ticket.

    From logs of consumers and brokers of any release; without logs, or with --profile, from the cluster's
    __consumer_offsets; from both, differences between them are shown.


    \b
    offramp rebalances app-*.log.gz --zone Europe/Paris
    pbpaste | offramp rebalances -
    offramp rebalances --profile production --group orders --since 6h
    """
    from kit.rebalances.sources import read_rebalances
    from kit.terminal.moment import moment

    with refusals(), TemporaryDirectory(prefix="offramp-") as folder:
        paths = _with_standard_input(logs or [], Path(folder))
        wants_topic = not logs or profile.profile is not None
        chosen = profile.load() if wants_topic else None
        began, ended = moment(since), moment(until)
        if timeline is not None and timeline.suffix not in (".svg", ".html"):
            raise InputError(f"--timeline {timeline}: give a name that ends in .svg or .html")
        if chosen is not None:
            from kit.profile.security.clients import (
                check_record_reading,  # loads both clients, which logs alone do not need
            )

            check_record_reading(chosen.security.kafka)
        with waiting("reading"):
            spark = spark_when_needed(chosen)
            story = read_rebalances(spark, paths, chosen, group, began, ended, zone, layout)
        if timeline is not None:
            draw(story, timeline)
        if as_json:
            print_json(story_data(story))
        else:
            print_story(story)
        say(*story.verify().split("\n"))


def _with_standard_input(paths: list[str], folder: Path) -> list[str]:
    """The paths; pasted text is in a file in the place of ``-``.

    Raises:
        InputError: nothing was pasted.
    """
    if "-" not in paths:
        return paths
    if sys.stdin.isatty():
        say("paste the log, then press Ctrl-D on a line of its own")
    pasted = folder / "standard-input"
    with pasted.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not pasted.stat().st_size:
        raise InputError("- reads the log from standard input, which is empty: paste one, or name a file")
    return [str(pasted) if path == "-" else path for path in paths]


def draw(story: Rebalances, path: Path) -> None:
    from kit.presentation.chart import svg
    from kit.rebalances.show.rebalance_charts import rebalance_timeline

    picture = svg(rebalance_timeline(story.spans))
    page = f"<!doctype html><meta charset=utf-8><title>Rebalances</title>{picture}"
    try:
        path.write_text(picture if path.suffix == ".svg" else page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--timeline {path} can't be written: {error.strerror}") from error
    say(f"timeline: {path}")


def print_story(story: Rebalances) -> None:
    import polars as pl

    generations = story.stored if story.generations.is_empty() else story.generations
    counts = [pl.col(name).list.len().alias(name) for name in ("members", "joined", "left", "moved")]
    counts[0] = pl.coalesce("n_members", counts[0]).alias(
        "members"
    )  # A coordinator counts those that it does not name.
    print_frame(generations.select(*_SHOWN, *counts))
    unknown = story.unknown_wordings()
    if not unknown.is_empty():
        print_frame(unknown)
    tell("")
    print_sentences(pl.DataFrame({"sentence": story.describe()}), at_most=1_000)


def story_data(story: Rebalances) -> dict[str, Any]:
    """Return the content of ``--json``."""
    frames = {
        "generations": story.generations,
        "stored": story.stored,
        "members": story.members,
        "remarks": story.remarks,
        "findings": story.findings,
        "unknown": story.unknown_wordings(),
    }
    return {**{name: frame.to_dicts() for name, frame in frames.items()}, "sentences": story.describe()}
