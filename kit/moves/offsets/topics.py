"""Find the topic that a committed offset belongs to. Pure.

A topic that was deleted and created again has its old name and another id (KIP-516, brokers >= 2.8). An offset of the
old topic names another record in the new one, or none. If an id is unknown, an offset outside the log proves that
the offset belongs to another log; an offset within the log proves nothing.

A leader epoch above the partition's present one belongs to another log too. Java's consumer waits for metadata of that
epoch and never fetches (KIP-320), so no such epoch is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kit.engine.model.performer import Outcome
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.resets import bounds
from kit.moves.offsets.selection import Place
from kit.tables.groups import LogOffset


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as the brokers describe it.

    ``topic_id`` is Kafka's text of the id, None from brokers before 2.8. ``leader_epochs`` are the present ones, by
    partition; None from brokers before 2.1.
    """

    topic_id: str | None
    leader_epochs: Mapping[int, int | None]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """The reason for which an offset must not be written. REFUSED: for good; NOT_ATTEMPTED: a later try may know
    more.
    """

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Present:
    """The topics now, and the logs of those partitions whose topic has no known id.

    ``unsure``: topics of which it is unknown whether they exist, with the reason.
    """

    topics: Mapping[str, Topic]
    logs: Mapping[Place, LogOffset] = field(default_factory=dict)
    unsure: Mapping[str, str] = field(default_factory=dict)

    def is_gone(self, place: Place) -> bool:
        """Return whether no broker knows the partition any more."""
        if place[0] in self.unsure:
            return False
        topic = self.topics.get(place[0])
        return topic is None or place[1] not in topic.leader_epochs

    def misplaced(self, place: Place, stored: Stored) -> Misplaced | None:
        """Return why ``stored`` does not belong into this partition; None: it does, or the partition is gone."""
        if place[0] in self.unsure:
            return Misplaced(Outcome.NOT_ATTEMPTED, self.unsure[place[0]])
        if is_told_by_id(self.topics, place[0], stored):
            return made_again(self.topics, place[0], stored)
        if stored.offset is None or self.is_gone(place):
            return None
        if self._has_higher_epoch(place, stored):
            return Misplaced(
                Outcome.REFUSED,
                f"the topic's id is unknown, and leader epoch {stored.leader_epoch} is above the partition's present"
                f" one, {self.leader_epoch(place)}: the topic may have been deleted and created again",
            )
        return _outside(stored.offset, self.logs.get(place))

    def leader_epoch(self, place: Place) -> int | None:
        """The partition's present leader epoch; None if it is unknown."""
        topic = self.topics.get(place[0])
        return None if topic is None else topic.leader_epochs.get(place[1])

    def fetchable(self, place: Place, stored: Stored) -> Stored:
        """The offset without a leader epoch that is above the partition's, or can't be compared."""
        present = self.leader_epoch(place)
        if stored.leader_epoch is None or (present is not None and stored.leader_epoch <= present):
            return stored
        return replace(stored, leader_epoch=None)

    def dropped_epoch(self, place: Place, stored: Stored) -> str | None:
        """The note for an offset that is written without its leader epoch; None: it keeps its epoch or has none."""
        if self.fetchable(place, stored) == stored:
            return None
        present = self.leader_epoch(place)
        return (
            f"written without leader epoch {stored.leader_epoch}: the partition's present one is"
            f" {'unknown' if present is None else present}"
        )

    def _has_higher_epoch(self, place: Place, stored: Stored) -> bool:
        present = self.leader_epoch(place)
        return stored.leader_epoch is not None and present is not None and stored.leader_epoch > present


def hidden_reason(topic: str) -> str:
    """Return why offsets of a topic that the login may not describe are left alone, and what to do."""
    return (
        f"the login may not describe {topic!r}, so offramp can't determine whether the topic exists. Grant the login"
        " DESCRIBE on it, then try again"
    )


def contested_reason(topic: str) -> str:
    """Return why offsets of a topic that is listed here and not there are left alone, and what to do."""
    return (
        f"a broker does not list topic {topic!r}, and another broker or ZooKeeper does: the broker may have just"
        " started. Wait until all brokers list the topic, or none does. Then try again"
    )


def is_told_by_id(topics: Mapping[str, Topic], name: str, stored: Stored) -> bool:
    """Return whether both ids are known: the one of the offset's topic, and the one of the topic with this name now."""
    topic = topics.get(name)
    return topic is not None and topic.topic_id is not None and stored.topic_id is not None


def made_again(topics: Mapping[str, Topic], name: str, stored: Stored) -> Misplaced | None:
    """Return whether the topic was deleted and created again since the offset was read, by its id; None: not, or
    unknown.
    """
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
