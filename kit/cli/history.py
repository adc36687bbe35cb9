"""``offramp history info | compact | hours | expire | report``: what keeps a history of snapshots small and quick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kit.profile import Profile
from kit.terminal.listing import Listing
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.progress import waiting
from kit.terminal.spark_start import started_spark
from kit.terminal.terminal import a_number, refusals, tell
from kit.text.quantity import quantity
from kit.text.visible import cell

if TYPE_CHECKING:
    import polars as pl

    from kit.history import Upkeep
    from kit.history.files import Size

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="A history of snapshots: show it, compact it, make hours and reports, delete old days.",
)

_SHOWN = 20
"""Incidents; each is one line, or two."""
_UNITS = ("B", "kB", "MB", "GB", "TB")

Folder = Annotated[str, typer.Argument(help="The history: a folder, or any URL that Spark reads.")]


@app.command()
@with_options
def info(listing: Listing, profile: ChosenProfile, folder: Folder) -> None:
    """Each day's snapshots, files and bytes."""
    with refusals():
        days = _days(folder, profile.load())
        listing.print(days)
        if not listing.is_data:
            n_snapshots, n_files, n_bytes = (int(days[name].sum()) for name in ("n_snapshots", "n_files", "n_bytes"))
            tell(
                f"{quantity(len(days), 'day')} (UTC), {quantity(n_snapshots, 'snapshot')}: "
                f"{quantity(n_files, 'file')} of {_in_bytes(n_bytes)}"
            )


@app.command()
@with_options
def compact(profile: ChosenProfile, folder: Folder) -> None:
    """Put the snapshots of each past day (UTC) into a few sorted files; run it once a day.

    Nothing is lost when it is interrupted, and snapshots may be taken meanwhile. The files that were replaced are
    deleted by the next run that comes an hour later or more: who is reading them can end.
    """
    with _upkeep(folder, profile) as upkeep:
        n_days = 0
        with waiting(f"compacting {folder}"):
            for done in upkeep.compact():
                n_days += 1
                tell(
                    f"{done.date}  {quantity(done.n_snapshots, 'snapshot')}: {_describe(done.before)} are "
                    f"{_describe(done.after)} now"
                )
        if not n_days:
            tell("No day to compact: all completed days are compacted.")


@app.command()
@with_options
def hours(profile: ChosenProfile, folder: Folder) -> None:
    """Put each group's past hours (UTC) into a row each: lag, age, verdicts, owners that changed.

    An hour that exists is not made again, unless a snapshot comes late. Reports over more than a day make and use them;
    they stay when the snapshots expire.
    """
    from kit.health.hours import Hours

    with refusals():
        chosen = profile.load()
        spark, n_made = started_spark(chosen), 0
        with waiting(f"making the hourly summaries of {folder}"):
            for day, n_hours in Hours(spark, folder).make():
                n_made += n_hours
                tell(f"{day}  {quantity(n_hours, 'hour')}")
        if not n_made:
            tell("No hourly summary to make: every completed hour has one.")


@app.command()
@with_options
def expire(
    profile: ChosenProfile,
    folder: Folder,
    days: Annotated[
        int,
        typer.Option(
            "--days", min=1, max=36_500, help="Number of days (UTC) to keep, with today. Older days are deleted."
        ),
    ],
    is_meant: Annotated[
        bool, typer.Option("--delete", help="Delete all older days; without this option they are only listed.")
    ] = False,
) -> None:
    """Delete the days before the newest --days days. This cannot be undone."""
    before = datetime.now(UTC).date() - timedelta(days=days - 1)
    with _upkeep(folder, profile) as upkeep:
        with waiting(f"reading {folder}"):
            lying = upkeep.days()
        old = lying.filter(lying["date"] < before)
        if old.is_empty():
            tell(f"Nothing is older than {before}.")
            return
        for day in old.iter_rows(named=True):
            tell(f"{day['date']}  {quantity(day['n_snapshots'], 'snapshot')}, {_in_bytes(day['n_bytes'])}")
        if not is_meant:
            tell(f"{quantity(len(old), 'day')} before {before} would be deleted. To delete them, add --delete.")
            return
        with waiting(f"deleting from {folder}"):
            gone = upkeep.expire(before)
        tell(f"{quantity(len(gone), 'day is', 'days are')} deleted.")


@app.command()
@with_options
def report(
    profile: ChosenProfile,
    folder: Folder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the notebook and the HTML.")] = Path(
        "runs"
    ),
    logs: Annotated[
        list[str] | None,
        typer.Option("--logs", help="Consumers' logs: a file, folder or pattern; can be given more than once."),
    ] = None,
    zone: Annotated[str, typer.Option(help="Time zone of log times that name none: Europe/Paris, +05:30.")] = "",
    target: Annotated[
        int, typer.Option("--target", min=0, help="Target: the greatest lag that a group may have, in records.")
    ] = 1000,
    target_age_s: Annotated[
        float,
        typer.Option(
            "--target-age-s",
            min=0,
            callback=a_number,
            help="Target: the greatest age of an unread record, in seconds; 0: no target.",
        ),
    ] = 0.0,
    holes: Annotated[
        list[str] | None,
        typer.Option(
            "--holes",
            metavar="TOPIC",
            help="With --target-age-s: a topic that is compacted or holds transactions; can be given again.",
        ),
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0, callback=a_number, help="Period of the report, back from the newest snapshot.")
    ] = 24.0,
    silence_min: Annotated[
        float,
        typer.Option(
            "--silence-min", min=0, callback=a_number, help="Minutes without a commit after which an incident begins."
        ),
    ] = 30.0,
    every_min: Annotated[
        float,
        typer.Option(
            "--every-min", min=0, callback=a_number, help="Shortest time between two observations, in minutes."
        ),
    ] = 1.0,
) -> None:
    """Report how groups performed: incidents with begin, end and cause, shares within a target, the worst hours.

    An executed notebook and one HTML that opens without a network; no cluster is asked.
    """
    from kit.health.report import HealthTargets, run_health_report

    with refusals():
        chosen = profile.load()
        targets = HealthTargets(hours, target, target_age_s, silence_min, every_min, "\n".join(holes or []))
        with waiting(f"making the report on {folder}") as at:
            made = run_health_report(chosen, folder, output, targets, logs or [], zone, at)
        tell(*_incidents(made.outcome["incidents"]))
        tell(f"notebook  {made.notebook}", f"report    {made.html}", f"newest    {made.latest}")


def _days(folder: str, profile: Profile) -> pl.DataFrame:
    """Print the days of a history on this machine's disks without Spark."""
    from kit.history import HistoryHere, folder_here

    here = folder_here(profile, folder)
    if here is not None:
        with waiting(f"reading {folder}"):
            return HistoryHere(here).days()
    from kit.history import Upkeep

    spark = started_spark(profile)
    with waiting(f"reading {folder}"):
        return Upkeep(spark, folder).days()


@contextmanager
def _upkeep(folder: str, profile: ChosenProfile) -> Iterator[Upkeep]:
    from kit.history import Upkeep

    with refusals():
        chosen = profile.load()
        spark = started_spark(chosen)
        with waiting(f"reading {folder}"):
            upkeep = Upkeep(spark, folder)
        yield upkeep


def _incidents(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """In order of time; of many the longest."""
    longest = sorted(rows, key=lambda row: row["since_ms"] - row["until_ms"])[:_SHOWN]
    yield from (_incident(row) for row in rows if row in longest)
    if len(rows) > _SHOWN:
        yield f"These are the {_SHOWN} longest of {len(rows):,} incidents; the report has all."


def _incident(row: Mapping[str, Any]) -> str:
    begin, end = (
        f"{datetime.fromtimestamp(row[name] / 1000, UTC):%Y-%m-%d %H:%M:%S}" for name in ("since_ms", "until_ms")
    )
    return f"{begin} to {end} UTC  {cell(row['group_id'])} in {row['store']}: {row['cause']}. {row['evidence']}"


def _describe(size: Size) -> str:
    return f"{quantity(size.n_files, 'file')} of {_in_bytes(size.n_bytes)}"


def _in_bytes(n_bytes: int) -> str:
    power = min((len(str(n_bytes)) - 1) // 3, len(_UNITS) - 1)
    return f"{n_bytes / 1000**power:,.{min(power, 1)}f} {_UNITS[power]}"
