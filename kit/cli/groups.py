"""``offramp groups | lag | ownership | readiness | snapshot``: what the cluster says, read once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from kit import views
from kit.cli.terminal import AsJson, Pattern, ProfileFile, ProfileName, print_rows, print_sentences, refusals, say
from kit.cluster import connect
from kit.profile import load_profile
from kit.snapshot import EVERY_GROUP, Snapshot, observe, of_group, verify_read

app = typer.Typer(rich_markup_mode=None)

GroupId = Annotated[str | None, typer.Option("--group", "-g", help="One group, by its id.")]
Folder = Annotated[str, typer.Option("--history", help="Folder (any file system Spark reads) to keep snapshots in.")]


@app.command()
def groups(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Every group in one line: stage, members, lag in both stores, findings."""
    with _snapshot(profile, profile_file, None, pattern) as snapshot:
        print_rows(views.summary(snapshot).sort("group_id"), as_json)


@app.command()
def lag(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Lag in records: per partition of one group, or in total for every group."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        partitions = views.lag(snapshot)
        if group is None:
            print_rows(views.group_lag(partitions).sort("group_id", "store"), as_json)
        else:
            print_rows(partitions.sort("topic", "partition", "store"), as_json)


@app.command()
def ownership(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Who owns each partition of one group; without a group, what is wrong with any group's ownership."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        found = views.findings(snapshot).sort("group_id", "finding", "topic", "partition")
        if group is None:
            print_rows(found if as_json else views.finding_summary(found).sort("group_id", "finding"), as_json)
            return
        print_rows(views.owners(snapshot).sort("topic", "partition"), as_json)
        if not as_json:
            print_sentences(found)


@app.command()
def readiness(
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    group: GroupId = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Where each group stands on the way to Kafka coordination (KIP-125), and what blocks it."""
    with _snapshot(profile, profile_file, group, pattern) as snapshot:
        stages = views.readiness(snapshot).sort("group_id")
        blocking = views.blockers(snapshot).sort("group_id", "blocker", "sentence")
        if as_json:
            sentences = blocking.group_by("group_id").agg(blockers=pl.struct("blocker", "sentence"))
            print_rows(
                stages.join(sentences, on="group_id", how="left").with_columns(pl.col("blockers").fill_null([])), True
            )
        else:
            print_rows(stages, False)
            print_sentences(blocking)


@app.command()
def snapshot(
    history: Folder,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
    pattern: Pattern = EVERY_GROUP,
    as_json: AsJson = False,
) -> None:
    """Read the cluster once and append what was seen to a history of Parquet files."""
    from kit.history import History
    from kit.snapshot import take_snapshot
    from kit.spark.session import spark_session

    with refusals():
        chosen = load_profile(profile, profile_file)
        say("starting Spark …")
        spark = spark_session(chosen)
        kept = History(spark, history)
        with connect(chosen) as cluster:
            say(f"reading {cluster.name} ({cluster.cluster_id}) …")
            taken = take_snapshot(spark, cluster, pattern)
        kept.append(taken)
        timings = pl.DataFrame(taken.read_timings.toArrow())
        print_rows(timings.select("snapshot_id", "step", pl.col("duration_ms").round(1), "n_rows"), as_json)
        verify_read(taken)


@contextmanager
def _snapshot(
    profile: str | None, profile_file: Path | None, group: str | None, pattern: str
) -> Iterator[Snapshot[pl.DataFrame]]:
    """One snapshot to print from; afterwards says what could not be read."""
    with refusals():
        with connect(load_profile(profile, profile_file)) as cluster:
            taken = observe(cluster, pattern) if group is None else of_group(observe(cluster, re.escape(group)), group)
        yield taken
        verify_read(taken)
