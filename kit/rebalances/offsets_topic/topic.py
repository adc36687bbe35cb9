"""``__consumer_offsets`` → offset commits, group generations, group epochs, and an account of every partition."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from kit.errors import InputError, PartialRead, ReadError
from kit.profile import Profile
from kit.rebalances.offsets_topic import tasks
from kit.rebalances.offsets_topic.bounds import fetch_bounds
from kit.rebalances.offsets_topic.partition_summary import unread
from kit.rebalances.offsets_topic.selection import Selection
from kit.spark.needed import Spark, is_started, started
from kit.tables import schema as tables
from kit.tables.polars import as_polars
from kit.tables.schema import Table
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = 300_000
"""Offsets between the bounds that are read in this process, which takes it seconds; Spark's start takes more."""


@dataclass(frozen=True)
class OffsetsTopic:
    """``commits`` (``tables.OFFSET_COMMITS``), ``generations`` (``tables.GROUP_GENERATIONS``, of classic groups) and
    ``epochs`` (``tables.GROUP_EPOCHS``, of KIP-848's) are Spark's and lazy: each use reads the topic again, between the
    same bounds, unless cached. Of a small topic that was read without Spark they are polars frames. ``partitions``
    (``tables.OFFSETS_PARTITIONS``) accounts for every record and is there.
    """

    commits: Any
    generations: Any
    epochs: Any
    partitions: pl.DataFrame


def read_offsets_topic(
    spark: Spark,
    profile: Profile,
    group_pattern: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    _topic: str = OFFSETS_TOPIC,
) -> OffsetsTopic:
    """Read the topic in which the coordinators keep groups and offsets, partitions side by side.

    It is read once now, to account for it, and once for each use of a table; only committed transactions, as the
    coordinators do, no further than the end of the log at this moment. A partition that can't be read is named in the
    account. The topic is compacted: older records of a key may be gone.

    Args:
        spark: a session; or what starts one, which is done only for a topic that is not small.
        group_pattern: a regular expression for whole group ids; None: all groups.
        since, until: when records were written, with a time zone; ``until`` is not included.

    Raises:
        InputError: the pattern is no regular expression, or a time has no time zone.
        ConnectError, AuthenticationFailed, WrongCluster: see ``kit.clients.cluster.connect``.
        NotFound: there is no such topic yet.
        ReadError: not one partition can be read.
    """
    selection = _selection(group_pattern, since, until)
    bounds = fetch_bounds(profile, _topic, since)
    reading = tasks.Reading(profile, _topic, bounds.parts, selection)
    is_here = not is_started(spark) and sum(part.end - part.start for part in bounds.parts) <= SMALL
    frame_of = _read_here if is_here else partial(_frame, started(spark))
    accounted = frame_of(reading, tasks.account(reading), tables.OFFSETS_PARTITIONS)
    counted = as_polars(accounted)
    unreadable = tables.OFFSETS_PARTITIONS.from_rows(unread(*each) for each in bounds.errors.items())
    partitions = pl.concat([counted, pl.DataFrame(unreadable)]).sort("partition")
    if len(partitions) and partitions["error"].null_count() == 0:
        raise ReadError(f"cluster {profile.name!r}: no partition of {_topic} can be read: {partitions['error'][0]}")
    # The counted records are read later: not more, when a transaction has ended since.
    until_of = dict(partitions.filter(pl.col("error").is_null()).select("partition", "read_until").iter_rows())
    same = reading.of(
        replace(part, end=until_of[part.partition]) for part in bounds.parts if part.partition in until_of
    )
    return OffsetsTopic(
        frame_of(same, tasks.commits(same), tables.OFFSET_COMMITS),
        frame_of(same, tasks.generations(same), tables.GROUP_GENERATIONS),
        frame_of(same, tasks.epochs(same, bounds.topic_names), tables.GROUP_EPOCHS),
        partitions,
    )


def verify_offsets_topic(topic: OffsetsTopic) -> str:
    """Return what was read, in sentences.

    Raises:
        PartialRead: a partition could not be read, or a record not be decoded: which and why.
    """
    rows = topic.partitions

    def n(what: str) -> int:
        return int(rows[f"n_{what}"].sum())

    sentences = [
        f"{rows['error'].null_count()} of {quantity(len(rows), 'partition')}, {quantity(n('records'), 'record')}: "
        f"{quantity(n('commits'), 'offset commit')}, {quantity(n('generations'), 'group generation')}, "
        f"{quantity(n('epochs'), 'record')} of KIP-848 groups, {quantity(n('tombstones'), 'tombstone')} among them; "
        f"{n('filtered'):,} of groups or times not asked for, {n('unsupported'):,} of other kinds."
    ]
    waiting = rows.filter(pl.col("read_until") < pl.col("end_offset"))
    sentences += [
        f"Partition {partition} was read to offset {at} of {end}: a transaction is open there."
        for partition, at, end in waiting.select("partition", "read_until", "end_offset").iter_rows()
    ]
    wrong = [f"Partition {row['partition']}: {row['error']}." for row in rows.iter_rows(named=True) if row["error"]]
    wrong += [
        f"Partition {row['partition']}: {'; '.join(row['problems'])}."
        for row in rows.iter_rows(named=True)
        if row["problems"]
    ]
    if wrong:
        raise PartialRead(" ".join([*sentences, *map(visible, wrong)]))
    return "\n".join(sentences)


def _selection(group_pattern: str | None, since: datetime | None, until: datetime | None) -> Selection:
    try:
        re.compile(group_pattern or "")
    except re.error as error:
        raise InputError(f"the group pattern {group_pattern!r} is not a regular expression: {error}") from None
    return Selection(group_pattern, *(_epoch_ms(name, at) for name, at in (("since", since), ("until", until))))


def _epoch_ms(name: str, at: datetime | None) -> int | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise InputError(f"{name} {at} has no time zone: give one, for example tzinfo=datetime.UTC")
    return round(at.timestamp() * 1000)


def _frame(spark: SparkSession, reading: tasks.Reading, task: tasks.Task, table: Table) -> DataFrame:
    """Spark cuts the range into as many parts as it has cores for; a task for each partition would cost more."""
    return spark.range(len(reading.parts)).mapInArrow(task, table.spark_row_schema)


def _read_here(reading: tasks.Reading, task: tasks.Task, table: Table) -> pl.DataFrame:
    """By the same function that Spark's tasks run, for all parts."""
    numbers = pa.RecordBatch.from_pydict({"id": list(range(len(reading.parts)))})
    return pl.DataFrame(pa.Table.from_batches(task([numbers]), table.schema))
