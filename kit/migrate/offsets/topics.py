"""Which topic a committed offset belongs to. Pure.

A topic that was deleted and created again has its old name and another id (KIP-516, brokers >= 2.8). An offset of the
old topic names another record in the new one, or none. Where an id is unknown, an offset outside the log proves that
the offset belongs to another log; an offset within the log proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kit.migrate.engine.performer import Outcome
from kit.migrate.offsets.moves import Stored
from kit.migrate.offsets.resets import bounds
from kit.migrate.offsets.selection import Place
from kit.tables.groups import LogOffset


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as the brokers describe it. ``topic_id`` is Kafka's text of the id, None from brokers before 2.8."""

    topic_id: str | None
    partitions: Collection[int]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Why an offset must not be written. REFUSED: for good; NOT_ATTEMPTED: a later try may know more."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Present:
    """The topics now, and the logs of the partitions whose topic can't be told by its id."""

    topics: Mapping[str, Topic]
    logs: Mapping[Place, LogOffset] = field(default_factory=dict)

    def is_gone(self, place: Place) -> bool:
        """Whether no broker knows the partition any more."""
        topic = self.topics.get(place[0])
        return topic is None or place[1] not in topic.partitions

    def misplaced(self, place: Place, stored: Stored) -> Misplaced | None:
        """Why ``stored`` does not belong into this partition; None: it does, or the partition is gone."""
        if is_told_by_id(self.topics, place[0], stored):
            return made_again(self.topics, place[0], stored)
        if stored.offset is None or self.is_gone(place):
            return None
        return _outside(stored.offset, self.logs.get(place))


def is_told_by_id(topics: Mapping[str, Topic], name: str, stored: Stored) -> bool:
    """Whether both ids are known: the one of the offset's topic, and the one of the topic with this name now."""
    topic = topics.get(name)
    return topic is not None and topic.topic_id is not None and stored.topic_id is not None


def made_again(topics: Mapping[str, Topic], name: str, stored: Stored) -> Misplaced | None:
    """Whether the topic was deleted and created again since the offset was read, by its id; None: not, or unknown."""
    if not is_told_by_id(topics, name, stored) or topics[name].topic_id == stored.topic_id:
        return None
    return Misplaced(
        Outcome.REFUSED,
        f"topic {name!r} was deleted and created again: its id is {topics[name].topic_id}, and the offset belongs to"
        f" the topic with id {stored.topic_id}",
    )


def _outside(offset: int, log: LogOffset | None) -> Misplaced | None:
    within = bounds(log)
    if within is None:
        why = "no leader" if log is None else log.error or "no answer"
        return Misplaced(
            Outcome.NOT_ATTEMPTED, f"the topic's id is unknown, and so are the start and the end of the log: {why}"
        )
    if within[0] <= offset <= within[1]:
        return None
    return Misplaced(
        Outcome.REFUSED,
        f"the topic's id is unknown, and {offset} is outside the log ({within[0]} to {within[1]}): the topic may have"
        " been deleted and created again",
    )
