"""Another operator makes a topic again, hides a topic or opens a transaction between any two requests of an actor."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from kit.engine.model.performer import ActedRecord, Outcome
from kit.engine.model.step import Step
from kit.errors import OfframpError
from kit.moves.offsets import topics as topics_module
from kit.moves.offsets.kafka import ACCEPTED, Answer
from kit.moves.offsets.moves import NOTHING, OffsetTarget, Stored, clamp, item_of
from kit.moves.offsets.performer import OffsetsActor
from kit.moves.offsets.selection import Key
from kit.moves.offsets.steps import offset_steps
from kit.moves.offsets.topics import Present, Topic
from kit.tables.groups import LogOffset
from tests.reporting import Permissive

TOPICS = ("orders", "clicks")
N_PARTITIONS, MANY = 3, 20_000
N_WALKS = 200
END = 1_000
MINE, THEIRS = 50, 70


class Contested:
    """Kafka's offsets of one group. ``wrongs``: what an actor did to another operator's data, or forgot."""

    def __init__(self, rng: random.Random, n_partitions: int = N_PARTITIONS) -> None:
        self.rng, self.n_partitions = rng, n_partitions
        self.ids = dict.fromkeys(TOPICS, 1)
        self.hidden: set[str] = set()
        self.sent: dict[Key, int] = {}
        self.offsets = {("g", topic, number): 10 for topic in TOPICS for number in range(n_partitions)}
        self.wrongs: list[str] = []
        self.is_calm = False

    def strike(self) -> None:
        if self.is_calm or self.rng.random() < 0.6:
            return
        self.rng.choice((self.make_again, self.hide, self.show, self.begin, self.end, self.commit))()

    def make_again(self) -> None:
        """Brokers forget the offsets of a deleted topic."""
        topic = self.rng.choice(TOPICS)
        self.ids[topic] += 1
        self.offsets = {key: offset for key, offset in self.offsets.items() if key[1] != topic}
        self.sent = {key: offset for key, offset in self.sent.items() if key[1] != topic}

    def hide(self) -> None:
        self.hidden.add(self.rng.choice(TOPICS))

    def show(self) -> None:
        self.hidden.clear()

    def begin(self) -> None:
        self.sent[self._any()] = THEIRS

    def end(self) -> None:
        self.offsets |= self.sent
        self.sent.clear()

    def commit(self) -> None:
        self.offsets[self._any()] = THEIRS

    def _any(self) -> Key:
        return ("g", self.rng.choice(TOPICS), self.rng.randrange(self.n_partitions))

    # The actor's view

    def read(self, keys: Any) -> dict[Key, Stored]:
        self.strike()
        return {key: self._stored(key) for key in keys}

    def _stored(self, key: Key) -> Stored:
        if key in self.sent:
            return Stored(error="an open transaction has sent an offset")
        if key[1] in self.hidden:
            return Stored(error="TOPIC_AUTHORIZATION_FAILED")
        offset = self.offsets.get(key)
        return NOTHING if offset is None else Stored(offset)

    def write(self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored]) -> dict[Key, Answer]:
        """No other operator strikes between a read and the write behind it: Kafka has no condition for that."""
        for key, stored in wanted.items():
            if key in self.sent:
                self.wrongs.append(f"{item_of(key)} was written over an open transaction")
            if stored.offset is not None and stored.topic_id != f"id-{self.ids[key[1]]}":
                self.wrongs.append(f"{item_of(key)}: the offset belongs to another topic")
            if self.offsets.get(key) == THEIRS:
                self.wrongs.append(f"{item_of(key)} was written over another operator's commit")
            if stored.offset is None:
                self.offsets.pop(key, None)
            else:
                self.offsets[key] = stored.offset
        return dict.fromkeys(wanted, ACCEPTED)

    def take_made_parents(self) -> Mapping[str, int]:
        return {}

    def remove_parents(self, made: Mapping[str, int]) -> None:
        pass

    def present(self) -> Present:
        described = {
            topic: Topic(f"id-{number}", dict.fromkeys(range(self.n_partitions), 0))
            for topic, number in self.ids.items()
            if topic not in self.hidden
        }
        logs = {(topic, number): LogOffset(topic, number, 0, END) for topic in described for number in range(3)}
        return Present(described, logs, dict.fromkeys(self.hidden, "hidden"))


class Actor(OffsetsActor):
    """The real one on the contested offsets."""

    def __init__(self, contested: Contested) -> None:
        super().__init__(SimpleNamespace(broker_client=None))  # type: ignore[arg-type]
        self.contested = contested

    def _present(self, offsets: Any) -> Present:
        list(offsets)
        return self.contested.present()

    def _writer(self, step: Step) -> Any:
        return self.contested


def step_of(contested: Contested, is_deletion: bool) -> Step:
    ids = {topic: f"id-{number}" for topic, number in contested.ids.items()}
    moves = [
        clamp(OffsetTarget(key, Stored(offset), None if is_deletion else MINE), 0, END)
        for key, offset in contested.offsets.items()
    ]
    (step,) = offset_steps("kafka", moves, can_delete=True, missing_parents=(), new_groups=(), topic_ids=ids)
    return step


def wander(seed: int, n_partitions: int = N_PARTITIONS) -> list[str]:
    """A run and two undos beside another operator, then one undo in peace: what went wrong.

    No undo follows one that ended without an error.
    """
    rng = random.Random(seed)
    contested = Contested(rng, n_partitions)
    step, actor = step_of(contested, rng.random() < 0.5), Actor(contested)
    ids = dict(contested.ids)
    outcomes = [*actor.act(step, Permissive())]
    is_over = False
    for is_last in (False, False, True):
        if is_last:
            contested.is_calm, contested.hidden, contested.sent = True, set(), {}
        if not is_over:
            outcomes, is_over = _undone(actor, step, outcomes)
    if ids == contested.ids:
        left = [it.item for it in outcomes if it.outcome == Outcome.CONFIRMED]
        contested.wrongs += [f"{item} was not brought back, and no reason was given" for item in left]
    return contested.wrongs


def _undone(actor: Actor, step: Step, outcomes: list[Any]) -> tuple[list[Any], bool]:
    """The outcomes of the run without those that are settled now, and whether the undo ended without an error."""
    report, is_over = Permissive(), False
    with suppress(OfframpError):
        actor.undo(step, ActedRecord(step.step_id, tuple(outcomes)), report)
        is_over = True
    settled = {it.item for it in report.told if it.outcome in {Outcome.CONFIRMED, Outcome.UNCHANGED, Outcome.REFUSED}}
    return [it for it in outcomes if it.item not in settled], is_over


def test_a_change_by_another_operator_meanwhile_is_left_alone():
    assert {seed: wrongs for seed in range(N_WALKS) if (wrongs := wander(seed))} == {}


def test_a_group_of_twenty_thousand_partitions():
    assert wander(7, MANY // len(TOPICS)) == []


def blind_to_transactions(self: Contested, key: Key) -> Stored:
    offset = self.offsets.get(key)
    return NOTHING if offset is None else Stored(offset)


def hidden_is_gone(self: Present, place: tuple[str, int]) -> bool:
    topic = self.topics.get(place[0])
    return topic is None or place[1] not in topic.leader_epochs


MISTAKES = {
    "a topic is reported by its name": (
        topics_module,
        "made_again",
        lambda topics, name, stored: None,
        "another topic",
    ),
    "sent offsets are not asked for": (Contested, "_stored", blind_to_transactions, "open transaction"),
}


@pytest.mark.parametrize(("where", "name", "mistake", "what"), MISTAKES.values(), ids=MISTAKES)
def test_walks_find_the_mistake(where, name, mistake, what):
    with patch.object(where, name, mistake):
        assert any(what in wrong for seed in range(N_WALKS) for wrong in wander(seed))


def test_walks_find_that_a_hidden_topic_is_taken_for_a_deleted_one():
    with (
        patch.object(Present, "is_gone", hidden_is_gone),
        patch.object(Present, "misplaced", lambda self, place, stored: None),
        patch.object(Contested, "_stored", blind_to_transactions),
    ):
        assert any("not brought back" in wrong for seed in range(N_WALKS) for wrong in wander(seed))
