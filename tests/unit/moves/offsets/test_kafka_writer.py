"""The writer of offsets waits while coordinators come late: no server can be made to take just that long."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetFetchRequest

from kit.clients.broker_client import backoff_s
from kit.engine.model.performer import Outcome
from kit.moves.offsets import group_deleter
from kit.moves.offsets.kafka import Answer, KafkaWriter
from kit.moves.offsets.moves import NOTHING, Stored, item_of
from kit.moves.offsets.performer import _Batch
from kit.moves.offsets.topics import Present
from tests.adversary import mistakes
from tests.adversary.mistakes import put_back
from tests.reporting import Permissive

DEADLINE_S = 0.5
SLOW_S = 0.6
"""One request takes longer than the whole deadline."""
ANSWERED_S = 60.0
"""The time after which an answer ends the attempts: no busy machine makes it late."""


class SlowBroker:
    """One broker, whose group ``late`` has a coordinator from the lookup number ``ready`` on."""

    def __init__(self, ready: int) -> None:
        self.ready, self.lookups = ready, 0

    def run(self, coroutine: Any, *arguments: Any) -> Any:
        return asyncio.run(coroutine(*arguments))

    async def gather(self, coroutines: Any) -> list[Any]:
        return [await each() for each in coroutines]

    async def pause(self, attempt: int) -> None:
        await asyncio.sleep(backoff_s(attempt))

    async def find_coordinators(self, group_ids: list[str], deadline: Any) -> dict[str, int]:
        self.lookups += 1
        return {each: 1 for each in group_ids if each != "late" or self.lookups >= self.ready}

    def supports(self, request: Any, version: int) -> bool:
        return True

    async def send(self, request: Any, broker_id: int) -> Any:
        await asyncio.sleep(SLOW_S)
        if hasattr(request, "groups") and request.groups:
            groups = [SimpleNamespace(group_id=each.group_id, error_code=0, topics=[]) for each in request.groups]
            return SimpleNamespace(groups=groups)
        partition = SimpleNamespace(partition_index=0, error_code=0)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[partition])])


@pytest.fixture
def wanted():
    return {(group_id, "t", 0): Stored(7) for group_id in ("early", "late")}


def test_a_write_that_gets_on_asks_again_for_a_coordinator_after_its_deadline(wanted):
    answers = KafkaWriter(SlowBroker(ready=2), DEADLINE_S).write(wanted, {})
    assert {key[0]: answer.error for key, answer in answers.items()} == {"early": None, "late": None}


def test_a_read_that_gets_on_asks_again_for_a_coordinator_after_its_deadline(wanted):
    stored = KafkaWriter(SlowBroker(ready=2), DEADLINE_S).read(wanted)
    assert {key[0]: each.error for key, each in stored.items()} == {"early": None, "late": None}


def test_a_coordinator_that_never_comes_is_reported_after_the_deadline(wanted):
    broker = SlowBroker(ready=1000)
    answers = KafkaWriter(broker, DEADLINE_S).write(wanted, {})
    assert answers["late", "t", 0].error == "the group's coordinator was not found or did not answer"
    assert 2 <= broker.lookups <= 4


class SmallBatches(SlowBroker):
    """A coordinator that appends at most ``limit`` bytes at once. It refuses a larger request by code ``refusal``."""

    def __init__(self, limit: int, refusal: int = 28) -> None:
        super().__init__(ready=1)
        self.limit, self.refusal = limit, refusal
        self.committed, self.sizes = dict[tuple[str, int], int](), list[int]()

    async def send(self, request: Any, broker_id: int) -> Any:
        rows = [(topic.name, each) for topic in request.topics for each in topic.partitions]
        size = sum(len(name) + len(each.committed_metadata or "") + 60 for name, each in rows)
        self.sizes.append(size)
        code = self.refusal if size > self.limit else 0
        if code == 0:
            self.committed |= {(name, each.partition_index): each.committed_offset for name, each in rows}
        answers = [
            SimpleNamespace(
                name=name, partitions=[SimpleNamespace(partition_index=each.partition_index, error_code=code)]
            )
            for name, each in rows
        ]
        return SimpleNamespace(topics=answers)


@pytest.mark.parametrize(("limit", "refusal"), [(1_048_576, 28), (100_000, 28), (5_000, 28), (100_000, -1)])
def test_offsets_of_one_group_are_cut_into_batches_that_the_coordinator_takes(limit: int, refusal: int) -> None:
    broker = SmallBatches(limit, refusal)
    wanted = {("g", "t" * 80, number): Stored(number, metadata="m" * 4_000) for number in range(300)}
    answers = KafkaWriter(broker, ANSWERED_S).write(wanted, {})
    assert {each.error for each in answers.values()} == {None}
    assert broker.committed == {("t" * 80, number): number for number in range(300)}
    assert max(broker.sizes) < 600_000


def test_one_offset_that_is_larger_than_a_batch_is_refused_and_the_rest_are_committed() -> None:
    broker = SmallBatches(2_000)
    wanted = {("g", "t", number): Stored(number, metadata="m" * (4_000 if number == 3 else 10)) for number in range(9)}
    answers = KafkaWriter(broker, ANSWERED_S).write(wanted, {})
    (refused,) = [(key, each) for key, each in answers.items() if each.error is not None]
    assert refused[0] == ("g", "t", 3)
    assert refused[1].is_refused
    assert "max.message.bytes" in refused[1].error
    assert len(broker.committed) == 8


KEY = ("g", "t", 0)
LOADING = 14


class ContestedBroker(SlowBroker):
    """One group with one offset. The first write meets ``first``, then another client commits ``theirs``, if any.

    Later writes are answered by the code ``later``.
    """

    def __init__(self, stored: int | None, first: Callable[[Any], int], theirs: int | None = None) -> None:
        super().__init__(ready=1)
        self.stored, self.first, self.theirs, self.writes = stored, first, theirs, 0
        self.later = 0

    async def send(self, request: Any, broker_id: int) -> Any:
        if isinstance(request, OffsetFetchRequest):
            return SimpleNamespace(groups=[SimpleNamespace(group_id="g", error_code=0, topics=self._topics())])
        self.writes += 1
        try:
            code = self.first(request) if self.writes == 1 else self.later
        finally:
            self.stored = self.stored if self.theirs is None else self.theirs
        result = SimpleNamespace(group_id="g", partition_index=0, error_code=code)
        topics = [SimpleNamespace(name="t", partitions=[result])]
        return SimpleNamespace(error_code=0, topics=topics, results=[result])

    def _topics(self) -> list[Any]:
        if self.stored is None:
            return []
        fields = {"committed_offset": self.stored, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}
        return [SimpleNamespace(name="t", partitions=[SimpleNamespace(partition_index=0, **fields)])]


def loading(request: Any) -> int:
    return LOADING


def mute(request: Any) -> int:
    raise kafka_errors.RequestTimedOutError


def write(broker: Any, wanted: Stored) -> Answer:
    return KafkaWriter(broker, ANSWERED_S).write({KEY: wanted}, {KEY: Stored(5)})[KEY]


@pytest.mark.parametrize("wanted", [Stored(7), NOTHING], ids=["commit", "deletion"])
@pytest.mark.parametrize(("first", "is_certain"), [(loading, True), (mute, False)])
def test_a_write_is_not_tried_again_over_what_members_committed_meanwhile(wanted, first, is_certain):
    broker = ContestedBroker(5, first, theirs=6)
    answer = write(broker, wanted)
    assert (broker.writes, broker.stored) == (1, 6)
    assert answer.error == "another client committed between two attempts of this write: the offset is 6 now"
    assert answer.is_certain == is_certain


@pytest.mark.parametrize("code", [7, 15, 16])
def test_a_write_that_was_appended_and_not_confirmed_is_this_runs_own(code):
    """A coordinator answers so if its followers were late, or elected another leader, after it appended the commit."""
    broker = ContestedBroker(5, lambda request: code, theirs=7)
    reader = KafkaWriter(broker, ANSWERED_S)
    (told,) = _Batch({KEY: Stored(5)}, {KEY: Stored(7)}).carry_out(reader, lambda offsets: Present({}), Permissive())
    assert (broker.writes, told.outcome) == (1, Outcome.CONFIRMED)


@pytest.mark.parametrize("code", [7, 15, 16])
def test_a_deletion_of_a_group_that_was_appended_and_not_confirmed_is_accepted(code):
    broker = ContestedBroker(5, lambda request: code)
    broker.later = 69
    answers = KafkaWriter(broker, ANSWERED_S).delete_groups({"g": {("t", 0): Stored(5)}})
    assert answers["g"].error is None


@pytest.mark.parametrize("first", [loading, mute])
def test_a_write_is_tried_again_while_no_one_has_committed(first):
    broker = ContestedBroker(5, first)
    assert (write(broker, Stored(7)).error, broker.writes) == (None, 2)


@pytest.mark.parametrize("first", [loading, mute])
def test_a_group_is_not_deleted_by_a_second_attempt_once_members_have_committed(first):
    broker = ContestedBroker(5, first, theirs=6)
    answers = KafkaWriter(broker, ANSWERED_S).delete_groups({"g": {("t", 0): Stored(5)}})
    assert (broker.writes, answers["g"].error is None) == (1, False)
    calm = ContestedBroker(5, first)
    assert KafkaWriter(calm, ANSWERED_S).delete_groups({"g": {("t", 0): Stored(5)}})["g"].error is None
    assert calm.writes == 2


class Rival:
    """A store that answers ``answer``, and in which another client has written the wanted value by then."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.is_written = answer, False

    def read(self, keys: Any) -> dict[Any, Stored]:
        return {key: Stored(7 if self.is_written else 5) for key in keys}

    def take_made_parents(self):
        return {}

    def write(self, wanted: Mapping[Any, Stored], known: Mapping[Any, Stored]) -> dict[Any, Answer]:
        self.is_written = True
        return dict.fromkeys(wanted, self.answer)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer("the group has members now"), Outcome.UNCHANGED),
        (Answer("no answer", is_certain=False), Outcome.CONFIRMED),
        (Answer(), Outcome.CONFIRMED),
    ],
)
def test_a_value_whose_write_was_refused_for_certain_is_another_clients(answer, outcome):
    """An undo undoes what is CONFIRMED."""
    (told,) = _Batch({KEY: Stored(5)}, {KEY: Stored(7)}).carry_out(
        Rival(answer), lambda offsets: Present({}), Permissive()
    )
    assert (told.item, told.outcome, told.error) == (item_of(KEY), outcome, None)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Answer("the group has members now"), Outcome.UNCHANGED), (Answer("no answer", False), Outcome.CONFIRMED)],
)
def test_a_group_whose_write_was_refused_for_certain_was_deleted_or_restored_by_another_client(answer, outcome):
    offsets = {("t", 0): Stored(5)}
    assert group_deleter._deleted("g", offsets, answer, {}).outcome == outcome
    assert group_deleter._restored("g", offsets, {("g", "t", 0): answer}, offsets).outcome == outcome


@pytest.mark.parametrize(
    ("mistake", "race", "args"),
    [
        (
            mistakes.BLIND_RETRIES,
            test_a_write_is_not_tried_again_over_what_members_committed_meanwhile,
            (Stored(7), loading, True),
        ),
        (
            mistakes.THEIRS_CONFIRMED,
            test_a_value_whose_write_was_refused_for_certain_is_another_clients,
            (Answer("no"), Outcome.UNCHANGED),
        ),
    ],
)
def test_the_mistake_is_found(mistake, race, args):
    with put_back(mistake), pytest.raises(AssertionError):
        race(*args)
