"""``offramp groups | lag | ownership | readiness | snapshot``: what the cluster reports, read once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kit.cli.idle import DEAD_AFTER_DAYS, DeadAfter, Seen, SeenInTopic, print_idle
from kit.cli.outlook import OverS, print_outlook
from kit.cli.time_lag import Method, print_time_lag
from kit.groups.chosen import ChosenGroup, ChosenGroups, hidden_topics
from kit.health.verbs.keeping import keeper
from kit.terminal.listing import Listing
from kit.terminal.options import with_options
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, print_sentences, refusals, say, tell
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.visible import cell

if TYPE_CHECKING:
    import polars as pl

    from kit.groups.snapshot import Snapshot

app = typer.Typer(rich_markup_mode=None)

Folder = Annotated[str, typer.Option("--history", help="Folder (any file system Spark reads) to keep snapshots in.")]
_ANALYSING = "analysing"
_SPARE = (
    *(
        "protocol_stage",
        "effective_mode",
        "n_idle",
        "n_partitions",
        "expired_unread",
        "max_lag",
        "member_id",
        "lag_raw",
    ),
    *("beyond_end", "lag_retained"),
    *(
        "zookeeper_lag",
        "kafka_lag",
        "n_blockers",
        "n_unknown",
        "n_upper_bounds",
        "is_upper_bound",
        "is_unreadable",
        "n_beyond_end",
        "stale_store",
        "kafka_state",
    ),
)
"""Columns that a narrow terminal can do without, first of all others."""


_ZOOKEEPER_WORDS = (
    *("stage", "effective_mode", "store_in_use", "zookeeper_lag", "kafka_lag", "stale_store", "n_blockers"),
)
"""Columns that say something only where there is a ZooKeeper to leave (KIP-125)."""


@app.command()
@with_options
def groups(
    listing: Listing,
    chosen: ChosenGroups,
    idle: Annotated[
        bool,
        typer.Option(
            "--idle",
            help="List groups without active members. The last commit to Kafka needs --history or --offsets-topic.",
        ),
    ] = False,
    dead_after: DeadAfter = DEAD_AFTER_DAYS,
    history: Seen = None,
    offsets_topic: SeenInTopic = False,
) -> None:
    """Show every group in one line: stage, members, lag in both stores, findings; or groups without active members."""
    if idle:
        print_idle(listing, chosen, dead_after, history, offsets_topic)
        return
    if history is not None or offsets_topic:
        raise typer.BadParameter("--history and --offsets-topic give the last commit of a group: add --idle")
    from kit.cli.worst_first import by_attention
    from kit.groups import views

    with _snapshot(chosen) as snapshot:
        with waiting(_ANALYSING):
            rows = by_attention(views.summary(snapshot))
        has_words = listing.is_data or _knows_zookeeper(snapshot)
        listing.print(rows if has_words else rows.drop(_ZOOKEEPER_WORDS), _SPARE)
        if not listing.is_data:
            _tell_attention(rows)


@app.command()
@with_options
def lag(
    listing: Listing,
    chosen: ChosenGroup,
    time: Annotated[bool, typer.Option("--time", help="Age of the oldest unread record of each partition.")] = False,
    method: Method = "bisection",
    outlook: Annotated[
        bool, typer.Option("--outlook", help="When the lag will be closed, and when unread records will be deleted.")
    ] = False,
    over_s: OverS = 30.0,
) -> None:
    """Lag in records: per partition of one group, or in total for every group; in time; and how it will continue."""
    if time and outlook:
        raise typer.BadParameter("--time and --outlook are two listings: choose one")
    if time:
        print_time_lag(listing, chosen, method)
        return
    if outlook:
        print_outlook(listing, chosen, over_s)
        return
    from kit.cli.worst_first import most_behind
    from kit.groups import views

    with _snapshot(chosen) as snapshot:
        with waiting(_ANALYSING):
            partitions = views.lag(snapshot)
            totals = views.group_lag(partitions)
        if chosen.group is None:
            listing.print(most_behind(totals, "group_id", "store"), _SPARE)
            if not listing.is_data:
                _tell_stale(views.stale_stores(snapshot))
        else:
            listing.print(most_behind(partitions, "topic", "partition", "store"), _SPARE)


@app.command()
@with_options
def ownership(
    listing: Listing,
    chosen: ChosenGroup,
) -> None:
    """Owner of each partition of one group; without a group, ownership problems of all groups."""
    import polars as pl

    from kit.cli.worst_first import worst_findings, worst_owned
    from kit.groups import views

    with _snapshot(chosen) as snapshot:
        with waiting(_ANALYSING):
            findings = worst_findings(views.findings(snapshot))
        if chosen.group is None:
            listing.print(findings if listing.is_data else worst_findings(views.finding_summary(findings)))
            return
        shown = listing.print(worst_owned(views.owners(snapshot), findings), _SPARE)
        if not listing.is_data:
            is_of_topic = pl.col("partition").is_null()
            here = findings.join(shown, on=["topic", "partition"], how="semi", maintain_order="left")
            of_topics = findings.filter(is_of_topic).join(shown, on="topic", how="semi")
            of_members = findings.filter(pl.col("topic").is_null())
            print_sentences(pl.concat([here, of_topics, of_members]))


@app.command()
@with_options
def readiness(
    listing: Listing,
    chosen: ChosenGroup,
) -> None:
    """Show the stage of each group on the way to Kafka coordination (KIP-125), and what blocks it."""
    import polars as pl

    from kit.cli.worst_first import most_blocked, worst_blockers
    from kit.groups import analyses, views

    with _snapshot(chosen) as snapshot:
        known = snapshot.groups, snapshot.members, snapshot.migration_states
        with waiting(_ANALYSING):
            blocking = worst_blockers(views.blockers(snapshot))
            stages = most_blocked(analyses.group_readiness(*known, blocking), blocking)
            of_protocol = views.protocol_stages(snapshot)
        if not listing.is_data and not _knows_zookeeper(snapshot):
            say("This cluster has no ZooKeeper: there is nothing to leave, and Kafka coordinates every group.")
            _tell_protocols(of_protocol)
            return
        stages = stages.join(of_protocol, on="group_id", how="left", maintain_order="left")
        if listing.is_data:
            sentences = blocking.group_by("group_id", maintain_order=True).agg(
                blockers=pl.struct("blocker", "sentence")
            )
            rows = stages.join(sentences, on="group_id", how="left", maintain_order="left")
            listing.print(rows.with_columns(pl.col("blockers").fill_null([])))
        else:
            shown = listing.print(stages, _SPARE)
            print_sentences(shown.select("group_id").join(blocking, on="group_id", maintain_order="left_right"))


@app.command()
@with_options
def snapshot(
    chosen: ChosenGroups,
    history: Folder,
    as_json: AsJson = False,
) -> None:
    """Read the cluster once and append the snapshot to a history of Parquet files."""
    from kit.clients.cluster import connect
    from kit.groups.snapshot import verify_read

    with refusals():
        profile = chosen.load()
        keep = keeper(profile, history)
        with waiting(f"connecting to {profile.name}"):
            connected = connect(profile, is_patient=False)
        with connected as cluster:
            say(f"reading {cluster.name} ({cluster.cluster_id}) …")
            with waiting("reading"):
                taken = chosen.observe(cluster)
                hidden = hidden_topics(cluster)
        keep(taken)
        rows = taken.read_timings.select("snapshot_id", "step", "duration_ms", "n_rows")
        Listing(as_json=as_json).print(rows.with_columns(rows["duration_ms"].round(1)))
        chosen.say_unseen(taken, hidden)
        verify_read(taken)


def _tell_attention(rows: pl.DataFrame) -> None:
    """Print the number of groups with each need, worst first as the rows are; shown or not."""
    needs = rows.drop_nulls("attention").group_by("attention", maintain_order=True).len().rows()
    if needs:
        named = ", ".join(f"{n:,} “{need}”" for need, n in needs)
        tell(f"{quantity(len(rows), 'group')}: {named}; {rows['attention'].null_count():,} need no attention")


def _tell_protocols(stages: pl.DataFrame) -> None:
    """Print the number of groups in each stage between the classic and the consumer protocol (KIP-848)."""
    counts = stages.drop_nulls("protocol_stage").group_by("protocol_stage").len().sort("protocol_stage").rows()
    if counts:
        named = ", ".join(f"{n:,} {stage}" for stage, n in counts)
        tell(f"Stages between the classic and the consumer protocol: {named}. See: offramp protocol check")


def _tell_stale(left: pl.DataFrame) -> None:
    if not left.is_empty():
        rows = left.sort("group_id").iter_rows(named=True)
        named = shortened((f"{cell(row['group_id'])} in {row['store']}" for row in rows), 5)
        tell(
            f"Not counted in totals, because no member uses this store: offsets left by {named}; `offramp lag -g"
            " GROUP` shows them"
        )


def _knows_zookeeper(snapshot: Snapshot[pl.DataFrame]) -> bool:
    """Return whether ZooKeeper was read: brokers are registered there, or groups."""
    return bool(snapshot.brokers["endpoints"].is_not_null().any() or (snapshot.groups["source"] == "zookeeper").any())


@contextmanager
def _snapshot(chosen: ChosenGroups) -> Iterator[Snapshot[pl.DataFrame]]:
    """One snapshot to print from; afterwards reports what the login can't see, and what could not be read."""
    from kit.groups.snapshot import verify_read

    with refusals():
        with chosen.connected() as cluster:
            taken = chosen.observe(cluster)
            hidden = hidden_topics(cluster)
        yield taken
        chosen.say_unseen(taken, hidden)
        verify_read(taken)
