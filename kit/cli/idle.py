"""``offramp groups --idle``: who uses each group, and since when it has no members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kit.errors import InputError
from kit.groups.chosen import ChosenGroups, hidden_topics
from kit.profile import Profile
from kit.terminal.listing import Listing
from kit.terminal.progress import waiting
from kit.terminal.spark_start import spark_when_needed, started_spark
from kit.terminal.terminal import a_number, refusals, say, tell
from kit.text.duration import duration
from kit.text.quantity import quantity

if TYPE_CHECKING:
    import polars as pl

    from kit.rebalances.offsets_topic import OffsetsTopic

DeadAfter: TypeAlias = Annotated[
    float,
    typer.Option(
        "--dead-after",
        min=0,
        max=36_500,
        callback=a_number,
        help="With --idle: days without a commit or a member after which a group is dead.",
    ),
]
Seen: TypeAlias = Annotated[
    str | None, typer.Option("--history", help="With --idle: a history that shows when groups committed last.")
]
SeenInTopic: TypeAlias = Annotated[
    bool, typer.Option("--offsets-topic", help="With --idle: read __consumer_offsets for the exact times of commits.")
]
DEAD_AFTER_DAYS = 7
"""The default of ``kit.groups.analyze.idle``, which loads narwhals."""
_SPARE = ("n_committed", "store", "lag")


def print_idle(
    listing: Listing, chosen: ChosenGroups, dead_after: float, history: str | None, offsets_topic: bool
) -> None:
    """Each group in each store, dead ones first, and of these those that were quiet for the longest."""
    from kit.groups import views
    from kit.health.idle import idle_groups, verify_idle

    with refusals():
        if history is not None and offsets_topic:
            raise InputError("--history and --offsets-topic both give the last commit: choose one")
        with chosen.connected() as cluster:
            taken = chosen.observe(cluster)
            hidden = hidden_topics(cluster)
        topic: OffsetsTopic | None = None
        activity = None
        if history is not None:
            activity = _in_history(cluster.profile, history)
        elif offsets_topic:
            activity, topic = _in_topic(cluster.profile, chosen.pattern)
        with waiting("judging"):
            rows = idle_groups(taken, views.lag(taken), activity, dead_after)
        listing.print(_deadest_first(rows), _SPARE, _in_words)
        if not listing.is_data:
            _tell_unknown(rows, activity is not None)
        chosen.say_unseen(taken, hidden)
        verify_idle(taken)
        if topic is not None:
            from kit.rebalances.offsets_topic import verify_offsets_topic

            say(*verify_offsets_topic(topic).split("\n"))


def _in_history(profile: Profile, folder: str) -> pl.DataFrame:
    from kit.health.idle import activity_of_history
    from kit.history import HistoryHere, folder_here
    from kit.tables import schema as tables

    where = folder_here(profile, folder)
    here = None if where is None else HistoryHere(where)
    if here is not None and here.is_small(tables.COMMITTED_OFFSETS, tables.MEMBERS):
        with waiting(f"reading {folder}"):
            return activity_of_history(here.load(tables.COMMITTED_OFFSETS), here.load(tables.MEMBERS))
    from kit.history import History

    spark = started_spark(profile)
    with waiting(f"reading {folder}"):
        kept = History(spark, folder)
        return activity_of_history(kept.load(tables.COMMITTED_OFFSETS), kept.load(tables.MEMBERS))


def _in_topic(profile: Profile, pattern: str) -> tuple[pl.DataFrame, OffsetsTopic]:
    from kit.health.idle import activity_of_topic
    from kit.profile.security.clients import check_record_reading
    from kit.rebalances.offsets_topic import OFFSETS_TOPIC, read_offsets_topic

    check_record_reading(profile.security.kafka)
    with waiting(f"reading {OFFSETS_TOPIC}"):
        topic = read_offsets_topic(spark_when_needed(profile), profile, pattern)
        return activity_of_topic(topic.commits, topic.generations, topic.epochs), topic


def _deadest_first(rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    from kit.groups.analyze.idle import ACTIVE, DEAD, IDLE, RANDOM_NAME

    order = (DEAD, RANDOM_NAME, IDLE, None, ACTIVE)
    rank = pl.col("class").replace_strict({name: at for at, name in enumerate(order)}, default=order.index(None))
    return rows.sort(rank, "last_seen_ms", "group_id", "store", nulls_last=True)


def _in_words(rows: pl.DataFrame) -> pl.DataFrame:
    """For people: ages instead of times; the evidence reports the rest."""
    import polars as pl

    ages = [None if age is None else f"{duration(age)} ago" for age in rows["commit_age_ms"]]
    committed = pl.Series("last_commit", ages, pl.String)
    columns = ["group_id", "store", "class", committed, "lag", "n_committed", "evidence"]
    return rows.select(*columns)


def _tell_unknown(rows: pl.DataFrame, was_asked: bool) -> None:
    import polars as pl

    from kit.groups.analyze.idle import ACTIVE
    from kit.tables.groups import KAFKA

    of_kafka = (pl.col("store") == KAFKA) & pl.col("commit_age_ms").is_null() & (pl.col("n_committed") > 0)
    count = len(rows.filter(of_kafka & pl.col("class").ne_missing(ACTIVE)))
    if count and not was_asked:
        tell(
            f"When {quantity(count, 'group')} committed to Kafka last is unknown, because no coordinator reports it. "
            "--offsets-topic reads the time; --history FOLDER shows it as far back as snapshots were kept"
        )
