"""A KafkaConsumer refuses some calls before it has met a broker, and answers to commits find their callbacks."""

from __future__ import annotations

import struct

import pytest
from confluent_kafka import IllegalStateException, IsolationLevel, KafkaError, KafkaException, TopicPartition

from kit.consumer.kafka.commits import Commits
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.kafka.settings import KafkaSettings
from kit.consumer.kafka.values import ConsumerGroupMetadata, OffsetAndMetadata
from kit.errors import InputError, ReadError

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"group.id": ""}, "'group.id'"),
        ({"group.id": None}, "'group.id'"),
        ({"bootstrap.servers": ""}, "'bootstrap.servers'"),
        ({"on_commit": print}, "'on_commit' can't be set: pass a callback to commit_async"),
        ({"stats_cb": print}, "'stats_cb' can't be set"),
        ({"enable.auto.offset.store": False}, "'enable.auto.offset.store' can't be set"),
        ({"default.topic.config": {}}, "'default.topic.config' can't be set"),
        ({"partition.assignment.strategy": "range,cooperative-sticky"}, "mixes eager"),
        ({"partition.assignment.strategy": "sticky"}, "has 'sticky'; librdkafka has cooperative-sticky, range, roundr"),
        ({"nosuch.setting": 1}, 'No such configuration property: "nosuch.setting"'),
        ({"group.protocol": "share"}, "group.protocol"),
        ({"group.protocol": "consumer", "session.timeout.ms": 6000}, "defined broker side"),
        ({"auto.offset.reset": "none"}, 'Invalid value "none"'),
        ({"max.poll.interval.ms": 1000}, "max.poll.interval.ms"),
    ],
)
def test_unsuitable_settings_are_refused(change, said):
    with pytest.raises(InputError, match=said):
        KafkaConsumer({**NOWHERE, **change})


@pytest.mark.parametrize(
    ("change", "incremental"),
    [
        ({}, False),
        ({"partition.assignment.strategy": "range"}, False),
        ({"partition.assignment.strategy": "cooperative-sticky"}, True),
        ({"group.protocol": "consumer"}, True),
        ({"group.protocol": "CONSUMER"}, True),
        ({"group.protocol": "classic"}, False),
    ],
)
def test_the_way_to_assign_follows_from_the_settings(change, incremental):
    assert KafkaSettings.of({**NOWHERE, **change}).incremental is incremental


def test_further_settings_follow():
    plain = KafkaSettings.of({**NOWHERE, "client.id": "c", "sasl.mechanism": "PLAIN", "fetch.min.bytes": 1})
    assert (plain.reset, plain.isolation, plain.auto_commits) == ("latest", IsolationLevel.READ_COMMITTED, True)
    shared = {"bootstrap.servers", "log_level", "client.id", "sasl.mechanism"}
    assert plain.connection.keys() == shared
    other = KafkaSettings.of(
        {
            **NOWHERE,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": "false",
        }
    )
    assert (other.reset, other.isolation, other.auto_commits) == ("error", IsolationLevel.READ_UNCOMMITTED, False)


@pytest.fixture
def consumer():
    with KafkaConsumer({**NOWHERE, "statistics.interval.ms": 0}) as made:
        yield made


def test_options_that_librdkafka_lacks_are_refused_by_name(consumer):
    for refused, said in (
        (lambda: consumer.commit_sync(timeout=1), "commit_sync: librdkafka has no time-out"),
        (lambda: consumer.client_instance_id(), "client_instance_id: librdkafka does not publish"),
        (lambda: consumer.metrics(), "statistics.interval.ms is 0"),
    ):
        with pytest.raises(InputError, match=said):
            refused()


def test_wrong_arguments(consumer):
    here = TopicPartition("t", 0)
    for wrong, kind, said in (
        (lambda: consumer.subscribe("topic"), InputError, "takes a list of topic names, not 'topic'"),
        (lambda: consumer.subscribe([""]), InputError, "takes a list of topic names"),
        (lambda: consumer.subscribe(["^("]), InputError, "refuses to subscribe"),
        (lambda: consumer.subscribe(["t"], listener=object()), InputError, "no rebalance listener"),
        (lambda: consumer.set_rebalance_listener(object()), InputError, "no rebalance listener"),
        (lambda: consumer.consume(0), InputError, "at least 1"),
        (lambda: consumer.seek(here, -1), InputError, "-1 of t-0 is negative"),
        (lambda: consumer.offsets_for_times({here: -1}), InputError, "t-0 is negative"),
        (lambda: consumer.seek(here, 1), IllegalStateException, "not assigned to this consumer: t-0"),
        (lambda: consumer.position(here), IllegalStateException, "t-0"),
        (lambda: consumer.pause([here]), IllegalStateException, "t-0"),
        (lambda: consumer.resume([here]), IllegalStateException, "t-0"),
        (lambda: consumer.current_lag(here), IllegalStateException, "t-0"),
    ):
        with pytest.raises(kind, match=said):
            wrong()


def test_nothing_works_after_close(consumer):
    consumer.close()
    consumer.close()
    for name, arguments in {
        "poll": (0,), "consume": (1, 0), "subscribe": (["t"],), "unsubscribe": (), "subscription": (),
        "set_rebalance_listener": (None,), "assignment": (), "commit_sync": (), "commit_async": (), "metrics": (),
        "committed": ([],), "list_topics": (), "group_metadata": (),
    }.items():  # fmt: skip
        with pytest.raises(IllegalStateException, match="closed"):
            getattr(consumer, name)(*arguments)


class Broker:
    """Takes commits and answers them in the order asked for."""

    def __init__(self) -> None:
        self.sent: list[list[TopicPartition]] = []

    def commit(self, offsets, asynchronous):
        assert asynchronous
        self.sent.append(offsets)


class Answer:
    """A partition in librdkafka's answer to a commit."""

    def __init__(self, offset: int, partition: int, error: KafkaError) -> None:
        self.topic, self.partition, self.offset, self.error = "t", partition, offset, error


def at(offset: int, partition: int = 0) -> dict[TopicPartition, OffsetAndMetadata]:
    return {TopicPartition("t", partition): OffsetAndMetadata(offset, "note")}


def test_each_answer_finds_its_own_callback():
    commits, broker, answers = Commits(), Broker(), []
    for number, offsets in enumerate((at(1), at(2), at(1), at(3, partition=1))):
        commits.begin(broker, offsets, lambda offsets, error, number=number: answers.append((number, offsets, error)))
    commits.begin(broker, at(9), None)
    first, second, third, _, fifth = broker.sent
    refused = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    commits.on_commit(None, fifth)
    commits.on_commit(refused, second)
    commits.on_commit(None, [TopicPartition("t", 0, 77)])
    assert answers == []
    commits.tell()
    assert [(number, offsets) for number, offsets, _ in answers] == [(1, at(2))]
    assert answers[0][2].args[0].code() == KafkaError.REBALANCE_IN_PROGRESS
    commits.on_commit(None, third)
    commits.on_commit(None, first)
    commits.tell()
    commits.on_commit(None, [Answer(3, 1, KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE))])
    assert [(number, error) for number, _, error in answers[1:]] == [(0, None), (2, None)]
    commits.tell()
    assert answers[3][0] == 3
    assert answers[3][2].args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    assert len(answers) == 4


def test_a_commit_without_an_answer_is_reported_at_the_end():
    commits, answers = Commits(), []
    commits.begin(Broker(), at(1), lambda offsets, error: answers.append((offsets, error)))
    commits.abandon()
    commits.tell()
    ((offsets, error),) = answers
    assert offsets == at(1)
    assert error.args[0].code() == KafkaError._DESTROY


def test_nothing_to_commit_is_a_success_and_a_raising_callback_keeps_the_rest():
    commits, broker, answers = Commits(), Broker(), []

    def fail(offsets, error):
        raise ZeroDivisionError

    commits.begin(broker, {}, fail)
    commits.begin(broker, {}, lambda offsets, error: answers.append((offsets, error)))
    assert broker.sent == []
    with pytest.raises(ZeroDivisionError):
        commits.tell()
    commits.tell()
    assert answers == [({}, None)]


def test_a_synchronous_commit_reports_a_single_partition():
    class Refusing:
        def commit(self, offsets, asynchronous):
            (offset,) = offsets
            answer = type("Answer", (), {"error": KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)})
            return [offset, answer()]

    with pytest.raises(KafkaException) as raised:
        Commits().commit(Refusing(), at(1))
    assert raised.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def native(generation: int, member: bytes, instance: bytes | None) -> bytes:
    tail = b"\1" if instance is None else b"\0" + instance + b"\0"
    return b"CGMDv2:" + struct.pack("=i", generation) + b"group\0" + member + b"\0" + tail


@pytest.mark.parametrize(
    ("blob", "expected"),
    [
        (native(-1, b"", None), ("group", None, None, None)),
        (native(7, b"member-1", None), ("group", 7, "member-1", None)),
        (native(7, b"member-1", b"static"), ("group", 7, "member-1", "static")),
    ],
)
def test_group_metadata(blob, expected):
    metadata = ConsumerGroupMetadata.of(blob)
    assert (metadata.group_id, metadata.generation_id, metadata.member_id, metadata.group_instance_id) == expected
    assert metadata.native == blob


@pytest.mark.parametrize("blob", [b"", b"CGMDv3:\0\0\0\0g\0m\0\1", b"CGMDv2:\0\0", b"CGMDv2:\0\0\0\0g"])
def test_group_metadata_of_another_form_is_an_error(blob):
    with pytest.raises(ReadError, match="an unknown form"):
        ConsumerGroupMetadata.of(blob)
