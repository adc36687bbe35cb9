"""Topics and their partitions as ZooKeeper has them, by columns: there may be a million.

Few of them differ in what they hold: each state and each placement is understood once, and every row reports which one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from kazoo.client import KazooClient

from kit.clients.multiread import Znode, fetch_batches, refusal
from kit.errors import ReadError
from kit.kraft.read import metadata_values as values
from kit.kraft.read.control_znodes import DELETIONS
from kit.kraft.read.metadata_reader import ZOOKEEPER, Reader, item
from kit.kraft.read.metadata_values import BadValue, StateValue, TopicValue
from kit.tables import schema as tables
from kit.tables.metadata import MetadataItem

TOPICS = "/brokers/topics"

Ids: TypeAlias = tuple[int, ...]
Placement: TypeAlias = tuple[Ids, Ids, Ids]
"""Replicas, and those that are added and removed."""
Distinct = TypeVar("Distinct")
Topic: TypeAlias = tuple[str, TopicValue, int]
"""Name, value, mzxid."""
Partition: TypeAlias = tuple[str, int]
"""Topic and number."""


def fetch_replicas(client: KazooClient) -> dict[Partition, Ids]:
    """The broker ids of every partition, without topics that wait for their deletion. No state is read.

    Raises:
        ConnectError: ZooKeeper stopped answering.
        ReadError: a topic is not known, because its znode or the list of topics can't be read.
    """
    reader = Reader(client)
    topics = list(_topics(reader))
    deleted = reader.children([DELETIONS], "topic")[DELETIONS]
    if reader.errors:
        raise ReadError(f"the partitions are not all known: {reader.errors[0].error}")
    return {
        (name, number): replicas
        for name, topic, _ in topics
        if name not in deleted
        for number, replicas in topic.replicas.items()
    }


def fetch_topics(reader: Reader) -> tuple[pa.Table, list[MetadataItem], int | None]:
    """``tables.METADATA_PARTITIONS``, the topics' ids, and the highest ``controller_epoch`` of any state."""
    topics = list(_topics(reader))
    items = [item("topic", name, "id", topic.topic_id, mzxid) for name, topic, mzxid in topics]
    numbers = [sorted(topic.replicas) for _, topic, _ in topics]
    states = _States(reader.client, list(_paths(topics, numbers)))
    return _table(topics, numbers, states), items, states.highest_epoch


def _topics(reader: Reader) -> Iterator[Topic]:
    names = reader.children([TOPICS], "topic")[TOPICS]
    for name, (path, held) in zip(names, reader.znodes([f"{TOPICS}/{name}" for name in names])):
        if held is not None:
            topic = reader.parse([("topic", name), ("partition", name)], path, held, values.topic_value)
            if topic is not None and isinstance(held, Znode):
                yield name, topic, held.mzxid


def _paths(topics: Sequence[Topic], numbers: Sequence[list[int]]) -> Iterator[str]:
    for (name, _, _), some in zip(topics, numbers):
        folder = f"{TOPICS}/{name}/partitions"
        yield from (f"{folder}/{number}/state" for number in some)


class _Codes(Generic[Distinct]):
    """Values, each once, and which of them each row has."""

    def __init__(self) -> None:
        self.values: list[Distinct] = []
        self._rows = array("i")

    def add(self, value: Distinct) -> int:
        """The number of a new value."""
        self.values.append(value)
        return len(self.values) - 1

    def extend(self, codes: Iterable[int]) -> None:
        self._rows.extend(codes)

    @property
    def rows(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        return np.frombuffer(self._rows, np.int32) if self._rows else np.empty(0, np.int32)

    def column(self, kind: pa.DataType, of_each: Iterable[Any]) -> pa.Array:
        """A column of the rows, from one value for each of ``values``."""
        return pa.array(list(of_each), kind).take(pa.array(self.rows))


class _States:
    """The states at some paths. ``errors`` and ``refused`` by row; ``mzxids`` are 0 where no state is known."""

    def __init__(self, client: KazooClient, paths: Sequence[str]) -> None:
        self.codes = _Codes[StateValue | None]()
        self.errors: dict[int, str] = {}
        self.refused = set[int]()
        self._known: dict[bytes | None, int] = {None: self.codes.add(None)}
        self._wrong: dict[int, str] = {}
        mzxids = array("q")
        for batch in fetch_batches(client, paths):
            start = len(mzxids)
            self._understand(set(batch.data) - self._known.keys())
            self.codes.extend(map(self._known.__getitem__, batch.data))
            mzxids.extend(mzxid or 0 for mzxid in batch.stat("mzxid"))
            self.errors.update({start + at: f"it {refusal(each)}" for at, each in batch.refusals.items()})
            self.refused.update(start + at for at in batch.refusals)
        self.mzxids = np.array(mzxids, np.int64)
        self._note_wrong()
        self.errors = {row: f"{paths[row]}: {problem}" for row, problem in self.errors.items()}

    def _understand(self, some: Iterable[bytes | None]) -> None:
        for data in some:
            try:
                code = self.codes.add(values.state_value(data or b""))
            except BadValue as problem:
                code = self.codes.add(None)
                self._wrong[code] = str(problem)
            self._known[data] = code

    def _note_wrong(self) -> None:
        """Note a znode that holds no state: its change shows nothing about the partition."""
        if self._wrong:
            rows = self.codes.rows
            at = np.flatnonzero(np.isin(rows, list(self._wrong)))
            self.errors.update(zip(at.tolist(), (self._wrong[code] for code in rows[at].tolist())))
            self.mzxids[at] = 0

    @property
    def highest_epoch(self) -> int | None:
        return max((state.controller_epoch for state in self.codes.values if state), default=None)

    def column(self, name: str) -> pa.Array:
        return self.codes.column(_type(name), (state and getattr(state, name) for state in self.codes.values))

    def isr(self) -> list[Ids]:
        return [state.isr if state else () for state in self.codes.values]


def _table(topics: Sequence[Topic], numbers: Sequence[list[int]], states: _States) -> pa.Table:
    counts = [len(some) for some in numbers]
    placed = _placements(topics, numbers)
    replicas, adding, removing = ([each[at] for each in placed.values] for at in range(3))
    topic_of = np.repeat(np.arange(len(topics)), counts)
    of_topic = np.array([mzxid for _, _, mzxid in topics], np.int64)
    errors = list(map(states.errors.get, range(len(topic_of)))) if states.errors else repeat(None, len(topic_of))
    return tables.METADATA_PARTITIONS.from_columns(
        {
            "side": pa.repeat(pa.scalar(ZOOKEEPER), len(topic_of)),
            "topic": pa.array([name for name, _, _ in topics], pa.string()).take(pa.array(topic_of)),
            "topic_id": pa.array([each.topic_id for _, each, _ in topics], pa.string()).take(pa.array(topic_of)),
            "partition": pa.array(np.fromiter(chain.from_iterable(numbers), np.int32, len(topic_of))),
            "replicas": placed.column(_type("replicas"), replicas),
            "adding": placed.column(_type("adding"), adding),
            "removing": placed.column(_type("removing"), removing),
            "isr": states.codes.column(_type("isr"), states.isr()),
            "assignment_key": placed.column(pa.string(), (assignment_key(*each) for each in placed.values)),
            "isr_key": states.codes.column(pa.string(), (",".join(map(str, sorted(isr))) for isr in states.isr())),
            **{name: states.column(name) for name in ("leader", "leader_epoch", "recovery", "controller_epoch")},
            "mzxid": pa.array(np.maximum(of_topic[topic_of], states.mzxids)),
            "error": pa.array(errors, pa.string()),
            "is_refused": pa.array(np.isin(np.arange(len(topic_of)), list(states.refused))),
        }
    )


def _type(name: str) -> pa.DataType:
    return tables.METADATA_PARTITIONS.schema.field(name).type


def _placements(topics: Sequence[Topic], numbers: Sequence[list[int]]) -> _Codes[Placement]:
    codes, known = _Codes[Placement](), dict[Placement, int]()
    for (_, topic, _), some in zip(topics, numbers):
        parts = [_of_each(each, some) for each in (topic.replicas, topic.adding, topic.removing)]
        for placement in (row := list(zip(*parts))):
            if placement not in known:
                known[placement] = codes.add(placement)
        codes.extend(map(known.__getitem__, row))
    return codes


def _of_each(ids: Mapping[int, Ids], numbers: list[int]) -> Iterable[Ids]:
    return [ids.get(number, ()) for number in numbers] if ids else repeat((), len(numbers))


def assignment_key(replicas: Iterable[int], adding: Iterable[int], removing: Iterable[int]) -> str:
    """Replicas in order, then what is added and removed, sorted: ``1,2,3 +3 -1``."""
    parts = [
        ",".join(map(str, replicas)),
        *(f"+{each}" for each in sorted(adding)),
        *(f"-{each}" for each in sorted(removing)),
    ]
    return " ".join(parts)
