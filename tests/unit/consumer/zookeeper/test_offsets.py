"""Offset stores where no server can be made to fail so: retries, errors per partition, what is not committed again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException

from kit.consumer.zookeeper.embedded import JOINING
from kit.consumer.zookeeper.offsets import COMMIT_BATCH, RECOMMIT_SECONDS, DualOffsets, Fetched, KafkaOffsets, Passing

A, B = ("t", 0), ("t", 1)
Answers = list[Mapping[tuple[str, int], int | KafkaError] | KafkaException]


class Coordinator:
    """Answers as told, one after the other, and keeps what it was asked; time continues only by sleeping."""

    def __init__(self, *answers: Mapping[tuple[str, int], int | KafkaError] | KafkaException) -> None:
        self.answers: Answers = list(answers)
        self.asked: list[dict[tuple[str, int], int]] = []
        self.now = 0.0

    def __call__(
        self, wanted: Mapping[tuple[str, int], int], seconds: float
    ) -> Mapping[tuple[str, int], int | KafkaError]:
        self.asked.append(dict(wanted))
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaException):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def store(self, commit_retries: int = 5) -> KafkaOffsets:
        return KafkaOffsets(self, self, 1.0, 5.0, commit_retries, lambda: self.now, self.sleep)


@pytest.mark.parametrize(
    "code",
    [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE],
)
def test_a_coordinator_that_moves_or_loads_is_asked_again_for_what_is_missing(code: int) -> None:
    coordinator = Coordinator({A: 5, B: KafkaError(code)}, {B: 7})
    assert coordinator.store().commit({A: 5, B: 7}, 10) == {}
    assert coordinator.asked == [{A: 5, B: 7}, {B: 7}]
    assert coordinator.now == 1.0


def test_a_commit_of_many_partitions_is_cut_to_what_a_coordinator_appends() -> None:
    wanted = {("t", number): number for number in range(2 * COMMIT_BATCH + 1)}
    parts = [dict(list(wanted.items())[start : start + COMMIT_BATCH]) for start in (0, COMMIT_BATCH, 2 * COMMIT_BATCH)]
    refused = KafkaError(KafkaError.INVALID_COMMIT_OFFSET_SIZE)
    coordinator = Coordinator(parts[0], dict.fromkeys(parts[1], refused), parts[2])
    assert coordinator.store().commit(wanted, 10).keys() == parts[1].keys()
    assert coordinator.asked == parts


def test_metadata_that_is_too_large_is_final_and_reported() -> None:
    coordinator = Coordinator({A: 5, B: KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)})
    errors = coordinator.store().commit({A: 5, B: 7}, 10)
    assert errors.keys() == {B}
    assert errors[B].startswith("OFFSET_METADATA_TOO_LARGE")


def test_commits_unanswered_until_the_deadline_are_reported() -> None:
    lost = KafkaException(KafkaError(KafkaError._WAIT_COORD))
    coordinator = Coordinator(*[lost] * 6)
    errors = coordinator.store().commit({A: 5, B: 7}, 3)
    assert errors.keys() == {A, B}
    assert len(coordinator.asked) == 3


@pytest.mark.parametrize("retries", [0, 2])
def test_a_commit_is_tried_again_as_often_as_the_setting_allows(retries: int) -> None:
    """``offsets.commit.max.retries``, as the old consumer's ``commitOffsets``."""
    lost = KafkaException(KafkaError(KafkaError._WAIT_COORD))
    coordinator = Coordinator(*[lost] * 10)
    assert coordinator.store(retries).commit({A: 5}, 60).keys() == {A}
    assert len(coordinator.asked) == 1 + retries
    assert coordinator.now == retries


def test_the_setting_of_commits_does_not_limit_fetches() -> None:
    loading = {A: KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)}
    assert Coordinator(loading, loading, {A: 7}).store(0).fetch([A]) == Fetched({A: 7})


def test_fetched_offsets_errors_and_partitions_without_one_are_three_things() -> None:
    denied = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    fetched = Coordinator({A: -1001, B: denied}).store().fetch([A, B])
    assert fetched.offsets == {}
    assert fetched.errors.keys() == {B}


def test_unchanged_offsets_are_committed_again_only_before_they_expire() -> None:
    coordinator = Coordinator({A: 5}, {A: 5})
    store = coordinator.store()
    assert store.commit({A: 5}, 10) == store.commit({A: 5}, 10) == {}
    coordinator.now += RECOMMIT_SECONDS + 1
    store.commit({A: 5}, 10)
    assert len(coordinator.asked) == 2


def test_a_position_that_is_not_known_does_not_spoil_the_request() -> None:
    coordinator = Coordinator({A: 5})
    assert coordinator.store().commit({A: 5, B: -1}, 10) == {}
    assert coordinator.asked == [{A: 5}]


class Store:
    def __init__(self, name: str, fetched: Fetched, errors: dict[tuple[str, int], str]) -> None:
        self.name, self.fetched, self.errors = name, fetched, errors
        self.committed: dict[tuple[str, int], int] = {}

    def fetch(self, partitions: object) -> Fetched:
        return self.fetched

    def commit(self, offsets: Mapping[tuple[str, int], int], timeout_seconds: float) -> dict[tuple[str, int], str]:
        self.committed |= offsets
        return self.errors


def test_both_stores_give_the_higher_offset_and_neither_waits_for_the_other() -> None:
    zookeeper = Store("zookeeper", Fetched({A: 3, B: 9}), {A: "gone"})
    kafka = Store("kafka", Fetched({A: 8}), {A: "refused", B: "refused"})
    both = DualOffsets(zookeeper, kafka)
    assert both.fetch([A, B]) == Fetched({A: 8, B: 9})
    assert both.commit({A: 10, B: 10}, 1) == {A: "zookeeper: gone; kafka: refused", B: "kafka: refused"}
    assert zookeeper.committed == kafka.committed == {A: 10, B: 10}


def test_a_store_that_cannot_be_read_leaves_the_partition_unknown() -> None:
    """Beginning at the other one's offset could read again what was read."""
    both = DualOffsets(Store("zookeeper", Fetched({A: 3, B: 4}), {}), Store("kafka", Fetched({}, {A: "loading"}), {}))
    assert both.fetch([A, B]) == Fetched({B: 4}, {A: "loading"})


def test_while_kafka_is_joined_only_a_failure_of_zookeeper_is_one() -> None:
    """A reason that ends by itself is no warning; beside another one it hides nothing."""
    kafka = Coordinator(KafkaException(JOINING)).store()
    both = DualOffsets(Store("zookeeper", Fetched({}), {A: "gone"}), kafka)
    reasons = both.commit({A: 10, B: 10}, 1)
    assert {pair: isinstance(reason, Passing) for pair, reason in reasons.items()} == {A: False, B: True}
