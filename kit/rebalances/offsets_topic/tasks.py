"""The tasks of Spark, or of this process: each reads the partition ranges whose numbers it gets.

Spark runs them by ``mapInArrow`` over a range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
from confluent_kafka import KafkaException

from kit.errors import ProfileError, ReadError
from kit.profile import Profile
from kit.rebalances.offsets_topic.commits import commit_rows
from kit.rebalances.offsets_topic.epochs import epoch_rows
from kit.rebalances.offsets_topic.fetching import Fetch, PartitionRange, Records
from kit.rebalances.offsets_topic.generations import generation_rows
from kit.rebalances.offsets_topic.keys import Keys, parse_keys
from kit.rebalances.offsets_topic.partition_summary import Tally, unread
from kit.rebalances.offsets_topic.selection import Selection
from kit.tables import schema as tables
from kit.tables.rebalances import OffsetsPartition

Batches: TypeAlias = Iterable[pa.RecordBatch]
Task: TypeAlias = Callable[[Batches], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Reading:
    """All that tasks need. The profile names its secrets and holds none: each task resolves them where it runs."""

    profile: Profile
    topic: str
    parts: tuple[PartitionRange, ...]
    selection: Selection

    def of(self, parts: Iterable[PartitionRange]) -> Reading:
        """The same of other parts."""
        return replace(self, parts=tuple(parts))

    def fetch(self, numbers: Batches) -> Iterator[Fetch]:
        """The parts of each batch of numbers."""
        for batch in numbers:
            yield Fetch(self.profile, self.topic, [self.parts[number] for number in batch.column(0).to_pylist()])


def commits(reading: Reading) -> Task:
    """``tables.OFFSET_COMMITS``."""

    def offset_commits(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for records, keys in _decoded(reading, numbers):
            if len(keys.commits):
                yield commit_rows(records, keys)

    return offset_commits


def generations(reading: Reading) -> Task:
    """``tables.GROUP_GENERATIONS``."""

    def group_generations(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for records, keys in _decoded(reading, numbers):
            if len(keys.generations):
                yield from generation_rows(records, keys).to_batches()

    return group_generations


def epochs(reading: Reading, topic_names: Mapping[bytes, str]) -> Task:
    """``tables.GROUP_EPOCHS``; the names are by topic id."""

    def group_epochs(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for records, keys in _decoded(reading, numbers):
            if len(keys.epochs):
                yield from epoch_rows(records, keys, topic_names).to_batches()

    return group_epochs


def account(reading: Reading) -> Task:
    """``tables.OFFSETS_PARTITIONS``."""

    def offsets_partitions(numbers: Batches) -> Iterator[pa.RecordBatch]:
        for fetch in reading.fetch(numbers):
            yield from tables.OFFSETS_PARTITIONS.from_rows(_accounts(reading, fetch)).to_batches()

    return offsets_partitions


def _decoded(reading: Reading, numbers: Batches) -> Iterator[tuple[Records, Keys]]:
    for fetch in reading.fetch(numbers):
        for records in fetch:
            yield records, reading.selection.of(records, parse_keys(records.keys))
        for partition, error in fetch.errors.items():
            where = f"cluster {reading.profile.name!r}: {reading.topic}-{partition}"
            raise ReadError(f"{where} was read when it was counted, and can't be read now: {error}; read it again")


def _accounts(reading: Reading, fetch: Fetch) -> Iterator[OffsetsPartition]:
    tally = Tally()
    try:
        for records in fetch:
            keys = parse_keys(records.keys)
            asked = reading.selection.of(records, keys)
            rows = commit_rows(records, asked), generation_rows(records, asked), epoch_rows(records, asked, {})
            tally.add(records, keys, asked, *rows)
    except (ProfileError, KafkaException) as problem:
        # No fault of a partition: a secret or a certificate that is here and isn't there.
        errors = {
            part.partition: f"where the topic is read, no consumer can be made: {problem}" for part in fetch.parts
        }
    else:
        errors = fetch.errors
    for part in fetch.parts:
        error = errors.get(part.partition)
        yield (
            tally.row(part, fetch.read_until[part.partition]) if error is None else unread(part.partition, error, part)
        )
