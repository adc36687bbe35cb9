"""KAFKA-20385 on a real broker: eager, cooperative and KIP-848 groups, their listeners and the restricted view."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from contextlib import ExitStack
from itertools import count

import pytest
from confluent_kafka import IllegalStateException, KafkaError, KafkaException, Producer, TopicPartition

from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.kafka.listener import RebalanceListener
from kit.consumer.kafka.values import OffsetAndMetadata, PartitionInfo
from kit.errors import InputError
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from tests.soak import first

CLASSIC = {"session.timeout.ms": 10_000, "heartbeat.interval.ms": 100}
PROTOCOLS = {
    "eager": {**CLASSIC, "partition.assignment.strategy": "range"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "kip-848": {"group.protocol": "consumer"},
}
RECORDS = 10
"""Per partition, before a test."""
SECONDS = 90.0
numbers = count(1)


class Recorder(RebalanceListener):
    """Notes every callback with its partitions and the assignment seen inside, then does what the test wants."""

    def __init__(self, **then):
        self.events: list[tuple[str, list[int], list[int]]] = []
        self.then = then
        self.views = []

    def note(self, name, partitions, consumer):
        self.views.append(consumer)
        self.events.append((name, ids(partitions), ids(consumer.assignment())))
        self.then.get(name, lambda partitions, consumer: None)(partitions, consumer)

    def on_partitions_assigned(self, partitions, consumer):
        self.note("assigned", partitions, consumer)

    def on_partitions_revoked(self, partitions, consumer):
        self.note("revoked", partitions, consumer)

    def on_partitions_lost(self, partitions, consumer):
        self.note("lost", partitions, consumer)

    def told(self) -> list[tuple[str, list[int]]]:
        """Callbacks without the assignment."""
        return [(name, partitions) for name, partitions, _ in self.events]


def ids(partitions) -> list[int]:
    return sorted(each.partition for each in partitions)


class Group:
    """One group on one topic; everything its members read is in ``read``: (partition, offset) → how often."""

    def __init__(self, lab, producer: Producer, protocol: str):
        self.lab, self.producer, self.protocol = lab, producer, protocol
        self.topic = f"view-{protocol}-{next(numbers)}"
        self.members: list[KafkaConsumer] = []
        self.read: Counter[tuple[int, int]] = Counter()
        self.all = [0, 1]
        lab.create_topic(self.topic, len(self.all))
        self.produce(RECORDS)

    def produce(self, each: int) -> None:
        """Write records to every partition."""
        for partition in self.all * each:
            self.producer.produce(self.topic, b"record", partition=partition)
        assert self.producer.flush(30) == 0

    def at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)

    def join(self, listener=None, **settings) -> KafkaConsumer:
        member = KafkaConsumer(
            {
                **QUIET,
                "bootstrap.servers": self.lab.bootstrap_servers,
                "group.id": self.topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                **PROTOCOLS[self.protocol],
                **{name if name == "log_level" else name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.members.append(member)
        member.set_rebalance_listener(listener)
        member.subscribe([self.topic])
        return member

    def poll(self, *members: KafkaConsumer) -> None:
        for member in members:
            message = member.poll(0.02)
            if message is not None:
                assert message.error() is None, message.error()
                self.read[message.partition(), message.offset()] += 1

    def until(self, ready, what: str, *members: KafkaConsumer) -> None:
        """Poll these (all by default) until a condition holds."""

        def polled() -> bool:
            self.poll(*(members or self.members))
            return bool(ready())

        wait_until(polled, f"{self.protocol}: {what}", SECONDS)

    def until_shared(self, *members: KafkaConsumer) -> None:
        """Every partition has one owner, every member at least one partition."""

        def shared() -> bool:
            owned = [member.assignment() for member in members]
            return all(owned) and sorted(each.partition for mine in owned for each in mine) == self.all

        self.until(shared, "partitions shared out", *members)

    def until_read(self, expected: set[tuple[int, int]], *members: KafkaConsumer) -> None:
        self.until(lambda: expected <= self.read.keys(), f"{len(expected)} records read", *members)

    def records(self, first: int = 0, end: int = RECORDS, partitions=None) -> set[tuple[int, int]]:
        return {(p, offset) for p in (self.all if partitions is None else partitions) for offset in range(first, end)}

    def close(self) -> None:
        """Close all: a member that nobody closes can block whichever thread collects it later."""
        with ExitStack() as ended:
            for member in self.members:
                ended.callback(member.close)


@pytest.fixture(scope="module")
def producer(kraft_lab):
    return Producer({**QUIET, "bootstrap.servers": kraft_lab.bootstrap_servers, "linger.ms": 0})


@pytest.fixture(params=PROTOCOLS)
def group(request, kraft_lab, producer):
    made = Group(kraft_lab, producer, request.param)
    yield made
    made.close()


def test_offsets_kept_elsewhere_are_sought_on_assignment(group):
    elsewhere = {0: 7, 1: 3}

    def seek(partitions, consumer):
        assert consumer.committed(partitions) == dict.fromkeys(partitions)
        for each in partitions:
            consumer.seek(each, elsewhere[each.partition])
            assert consumer.position(each) == elsewhere[each.partition]

    listener = Recorder(assigned=seek)
    member = group.join(listener)
    sought = group.records(7, partitions=[0]) | group.records(3, partitions=[1])
    group.until_read(sought)
    assert group.read == Counter(sought)
    # The new partitions are part of the assignment inside the callback, as in Java.
    assert listener.events == [("assigned", [0, 1], [0, 1])]
    assert member.position(group.at(0)) == RECORDS
    member.seek(group.at(0), OffsetAndMetadata(2))
    assert member.position(group.at(0)) == 2
    member.commit_sync()
    committed = {each.partition: found.offset for each, found in member.committed(member.assignment()).items()}
    assert committed == {0: 2, 1: RECORDS}
    again = group.records(2, partitions=[0])
    group.until(lambda: sum(group.read.values()) == len(sought) + len(again), "what lies after the seek")
    assert group.read == Counter(sought) + Counter(again)


def test_revoked_records_are_committed_and_read_once(group):
    listener = Recorder(revoked=lambda partitions, consumer: consumer.commit_sync())
    first = group.join(listener)
    group.until_read(group.records())
    other = Recorder(revoked=lambda partitions, consumer: consumer.commit_sync())
    second = group.join(other)
    group.until_shared(first, second)
    (kept,), (moved,) = ids(first.assignment()), ids(second.assignment())
    if group.protocol == "eager":
        assert listener.events == [
            ("assigned", [0, 1], [0, 1]),
            ("revoked", [0, 1], [0, 1]),
            ("assigned", [kept], [kept]),
        ]
    else:
        # Only what moves is revoked; empty additions follow (cooperative: of both rebalances) and are reported too.
        assert listener.events[:2] == [("assigned", [0, 1], [0, 1]), ("revoked", [moved], [0, 1])]
        assert set(map(str, listener.events[2:])) == {str(("assigned", [], [kept]))}
    assert [event for event in other.told() if event[1]] == [("assigned", [moved])]
    group.produce(2)
    group.until_read(group.records(end=RECORDS + 2))
    second.close()
    assert other.told()[-1] == ("revoked", [moved])
    group.until(lambda: len(first.assignment()) == 2, "everything back", first)
    assert group.read == Counter(group.records(end=RECORDS + 2))
    assert listener.told()[-1] == ("assigned", [0, 1] if group.protocol == "eager" else [moved])


def test_a_pause_on_assignment_holds_until_the_revocation(group):
    pause_first = Recorder(assigned=lambda partitions, consumer: consumer.pause([group.at(0)]))
    first = group.join(pause_first)
    group.until_read(group.records(partitions=[1]))
    group.produce(1)
    # The last record of the other partition is here, so an unpaused one would have been read too.
    group.until_read(group.records(end=RECORDS + 1, partitions=[1]))
    assert set(group.read) == group.records(end=RECORDS + 1, partitions=[1])
    assert first.paused() == {group.at(0)}
    first.resume([group.at(0)])
    group.until_read(group.records(end=RECORDS + 1))
    first.commit_sync()

    first.pause([group.at(0), group.at(1)])
    first.set_rebalance_listener(None)
    second = group.join()
    group.until_shared(first, second)
    assert second.paused() == set()
    assert first.paused() == (set() if group.protocol == "eager" else first.assignment())
    (moved,) = second.assignment()
    second.close()
    group.until(lambda: len(first.assignment()) == 2, "everything back", first)
    assert moved not in first.paused()
    group.produce(1)
    # Eager: everything was revoked, so nothing is paused any more.
    unpaused = group.records(RECORDS + 1, RECORDS + 2, None if group.protocol == "eager" else [moved.partition])
    group.until_read(unpaused, first)
    assert group.read == Counter(group.records(end=RECORDS + 1) | unpaused)


def lose(group: Group, member: KafkaConsumer, interval_s: float) -> None:
    """Not polling for longer than ``max.poll.interval.ms`` is the fault itself; librdkafka's first word is an error."""
    time.sleep(interval_s + 0.7)
    message = member.poll(SECONDS)
    assert message.error().code() == KafkaError._MAX_POLL_EXCEEDED


def test_a_lost_partition_is_gone_before_the_callback(group):
    refused, rejected = [], []

    def after(partitions, consumer):
        for use in (consumer.position, lambda each: consumer.seek(each, 0), lambda each: consumer.pause([each])):
            for each in partitions:
                with pytest.raises(IllegalStateException, match=f"not assigned to this consumer: {group.topic}"):
                    use(each)
                refused.append(each.partition)
        consumer.commit_sync()
        with pytest.raises(KafkaException, match=f"{group.topic}-0 lost") as refusal:
            consumer.commit_sync({group.at(0): OffsetAndMetadata(1)})
        rejected.append(refusal.value.args[0].code())
        consumer.commit_async(
            {group.at(0): OffsetAndMetadata(1)}, lambda _, error: rejected.append(error.args[0].code())
        )

    listener = Recorder(lost=after)
    settings = {} if group.protocol == "kip-848" else {"session_timeout_ms": 3000}
    member = group.join(listener, max_poll_interval_ms=3000, **settings)
    group.until_read(group.records())
    member.pause([group.at(0)])
    lose(group, member, 3.0)
    group.until(
        lambda: len(listener.events) >= 3 and len(rejected) >= 2, "lost and assigned again, both commits answered"
    )
    assert listener.events == [("assigned", [0, 1], [0, 1]), ("lost", [0, 1], []), ("assigned", [0, 1], [0, 1])]
    assert refused == [0, 1] * 3
    assert rejected == [KafkaError.UNKNOWN_MEMBER_ID] * 2
    assert member.paused() == set()
    # Nothing was committed, so everything comes a second time, the paused partition too.
    group.until(lambda: sum(group.read.values()) == 2 * len(group.records()), "read again")
    assert set(group.read.values()) == {2}


def fail(partitions, consumer):
    raise ZeroDivisionError(f"in a callback for {len(partitions)}")


def test_an_exception_comes_out_of_poll_and_the_rebalance_continues(group):
    listener = Recorder(assigned=fail, revoked=fail)
    first = group.join(listener)
    with pytest.raises(ZeroDivisionError, match="for 2"):
        group.until(lambda: False, "the callback's exception")
    assert ids(first.assignment()) == [0, 1]
    listener.then["assigned"] = lambda partitions, consumer: None
    group.until_read(group.records())
    first.commit_sync()
    second = group.join()
    with pytest.raises(ZeroDivisionError):
        group.until(lambda: False, "the callback's exception")
    group.until_shared(first, second)
    revoked = [index for index, event in enumerate(listener.events) if event[0] == "revoked"]
    assert len(revoked) == 1
    assert listener.events[revoked[0] + 1][0] == "assigned"
    group.produce(1)
    group.until_read(group.records(end=RECORDS + 1))
    assert group.read == Counter(group.records(end=RECORDS + 1))
    with pytest.raises(ZeroDivisionError):
        first.close()
    with pytest.raises(IllegalStateException, match="closed"):
        first.poll(0)
    group.until(lambda: len(second.assignment()) == 2, "the other member owning everything", second)


def test_the_listener_can_be_replaced_between_polls(group):
    given_at_subscribe, first_listener, second_listener = Recorder(), Recorder(), Recorder()
    first = group.join()
    first.subscribe([group.topic], listener=given_at_subscribe)
    first.set_rebalance_listener(first_listener)
    group.until(lambda: first_listener.events, "the assignment")
    assert first_listener.told() == [("assigned", [0, 1])]
    first.set_rebalance_listener(second_listener)
    second = group.join()
    group.until_shared(first, second)
    assert second_listener.told()[0][0] == "revoked"
    told = len(second_listener.events)
    first.set_rebalance_listener(None)
    second.close()
    group.until(lambda: len(first.assignment()) == 2, "everything back", first)
    assert len(second_listener.events) == told
    assert len(first_listener.events) == 1
    assert given_at_subscribe.events == []


@pytest.mark.parametrize("group", first(["cooperative", "kip-848"]), indirect=True)
def test_a_seek_in_a_callback_holds_in_the_middle_of_a_batch(group):
    """The rebalance comes while ``consume`` has records of a partition that stays in hand."""

    def seek_what_stays(partitions, consumer):
        for each in consumer.assignment() - set(partitions):
            consumer.seek(each, 0)

    listener = Recorder(revoked=seek_what_stays)
    first = group.join(listener)
    group.until_read(group.records(), first)
    second, stopping = group.join(), threading.Event()

    def poll_second() -> None:
        while not stopping.is_set():
            second.poll(0.1)

    polling = threading.Thread(target=poll_second)
    polling.start()
    batch = []
    try:
        while not any(name == "revoked" for name, _ in listener.told()):
            group.produce(1)
            batch = first.consume(1000, 3)
    finally:
        stopping.set()
        polling.join()
    (kept,) = ids(first.assignment())

    def offsets() -> list[int]:
        """In the order in which they came; the rebalance may have come late in its batch."""
        return [message.offset() for message in batch if message.partition() == kept]

    wait_until(lambda: len(offsets()) >= RECORDS or batch.extend(first.consume(RECORDS, 1)), "what was sought", SECONDS)
    assert offsets()[:RECORDS] == list(range(RECORDS))


@pytest.mark.parametrize("group", first(["cooperative", "eager", "kip-848"]), indirect=True)
def test_a_pattern_takes_what_matches_and_what_is_created_later(group):
    """``^`` makes a topic's name a pattern; a broker (KIP-848) wants it to match the whole name, librdkafka doesn't."""
    later = f"{group.topic}-later"
    member = group.join(topic_metadata_refresh_interval_ms=500)
    member.subscribe([f"^{group.topic}.*"])
    group.until_read(group.records(), member)
    assert {each.topic for each in member.assignment()} == {group.topic}
    group.lab.create_topic(later, 1)
    group.until(lambda: TopicPartition(later, 0) in member.assignment(), "the new topic is assigned", member)
    assert {each.topic for each in member.assignment()} == {group.topic, later}
    assert member.subscription() == {f"^{group.topic}.*"}


class OneArgument:
    def __init__(self):
        self.told = []

    def on_partitions_assigned(self, assigned):
        self.told.append(("assigned", ids(assigned)))

    def on_partitions_revoked(self, revoked):
        self.told.append(("revoked", ids(revoked)))


def test_a_listener_with_one_argument_and_the_view_after_its_callback(group):
    listener, keeper, elsewhere = OneArgument(), Recorder(), []

    def from_another_thread(partitions, consumer):
        def use() -> None:
            try:
                consumer.assignment()
            except IllegalStateException as error:
                elsewhere.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()

    keeper.then["assigned"] = from_another_thread
    first = group.join(listener)
    group.until(lambda: listener.told, "the assignment")
    second = group.join(keeper)
    group.until_shared(first, second)
    assert [name for name, partitions in listener.told if partitions][:2] == ["assigned", "revoked"]
    assert elsewhere
    assert all("thread" in said for said in elsewhere)
    for view in keeper.views:
        with pytest.raises(IllegalStateException, match="until its rebalance callback returned"):
            view.commit_sync()


def test_every_method_of_the_view_in_a_callback(group, caplog):
    """With statistics and a logger, whose callbacks in the same poll end the process where a method is unsafe."""
    answers, committed, began_ms = {}, [], int(time.time() * 1000)

    def use_everything(partitions, consumer):
        zero, one = group.at(0), group.at(1)
        answers["assignment"] = ids(consumer.assignment())
        answers["position, derived"] = [consumer.position(each, timeout=10) for each in (zero, one)]
        consumer.seek_to_beginning([zero])
        consumer.seek_to_end([one])
        answers["position, sought"] = [consumer.position(each) for each in (zero, one)]
        consumer.seek(zero, OffsetAndMetadata(4, "ignored"))
        answers["current_lag"] = consumer.current_lag(zero)
        consumer.pause([zero, one])
        consumer.resume([zero])
        answers["paused"] = consumer.paused()
        answers["ends"] = (consumer.beginning_offsets([zero], 10), consumer.end_offsets([zero, one], 10))
        answers["times"] = consumer.offsets_for_times({zero: 0, one: began_ms + 10_000_000}, 10)
        answers["partitions_for"] = consumer.partitions_for(group.topic, 10)
        answers["no such topic"] = consumer.partitions_for("nosuch-topic")
        answers["list_topics"] = consumer.list_topics(10)[group.topic]
        answers["group_metadata"] = consumer.group_metadata()
        answers["metrics"] = consumer.metrics()
        consumer.commit_sync({one: OffsetAndMetadata(6, "kept elsewhere", 0)})
        answers["committed"] = consumer.committed([zero, one], 10)
        consumer.commit_async({zero: OffsetAndMetadata(2)}, lambda offsets, error: committed.append((offsets, error)))
        consumer.commit_async()
        for unsupported in (lambda: consumer.client_instance_id(1), lambda: consumer.commit_sync(timeout=1)):
            with pytest.raises(InputError, match="librdkafka"):
                unsupported()

    listener = Recorder(assigned=use_everything, revoked=lambda partitions, consumer: consumer.metrics())
    caplog.set_level(logging.DEBUG)
    told = {"statistics_interval_ms": 50, "logger": logging.getLogger("librdkafka"), "log_level": 7, "debug": "cgrp"}
    member = group.join(listener, **told)
    group.until(lambda: committed, "the answer to the asynchronous commit")
    zero, one = group.at(0), group.at(1)
    assert answers["assignment"] == [0, 1]
    assert answers["position, derived"] == [0, 0]
    assert answers["position, sought"] == [0, RECORDS]
    assert answers["current_lag"] is None
    assert answers["paused"] == {one}
    assert answers["ends"] == ({zero: 0}, {zero: RECORDS, one: RECORDS})
    assert answers["times"][zero].offset == 0
    assert abs(answers["times"][zero].timestamp_ms - began_ms) < 60_000
    assert answers["times"][one] is None
    assert answers["partitions_for"] == [PartitionInfo(group.topic, each, 1, (1,), (1,)) for each in (0, 1)]
    assert answers["partitions_for"] == answers["list_topics"]
    assert answers["no such topic"] == []
    assert answers["group_metadata"].group_id == group.topic
    assert answers["group_metadata"].member_id
    assert answers["group_metadata"].generation_id >= 1
    assert answers["committed"] == {zero: None, one: OffsetAndMetadata(6, "kept elsewhere", 0)}
    assert committed == [({zero: OffsetAndMetadata(2)}, None)]
    assert not answers["metrics"] or answers["metrics"]["type"] == "consumer"
    group.until_read(group.records(4, partitions=[0]))
    assert set(group.read) == group.records(4, partitions=[0])
    assert member.current_lag(zero) == 0
    group.until(lambda: member.metrics(), "statistics")
    assert member.metrics()["cgrp"]["assignment_size"] == 2
    # The commit without offsets came last: what was sought.
    group.until(lambda: member.committed([zero])[zero].offset == 4, "the commit of the sought offset")
    second = group.join()
    listener.then["assigned"] = lambda partitions, consumer: consumer.metrics()
    group.until_shared(member, second)
    assert caplog.records


def test_methods_forbidden_in_a_callback_are_refused_through_the_consumer_too(group):
    refused = []

    def misuse(partitions, consumer):
        for call in (
            lambda: member.poll(0),
            lambda: member.consume(1, 0),
            lambda: member.close(),
            lambda: member.subscribe(["other"]),
            lambda: member.unsubscribe(),
        ):
            with pytest.raises(IllegalStateException, match="in a rebalance callback"):
                call()
            refused.append(call)

    member = group.join(Recorder(assigned=misuse, revoked=misuse))
    group.until_read(group.records())
    member.close()
    assert len(refused) == 10


def test_records_by_the_batch_and_automatic_commits(group):
    member = group.join(enable_auto_commit=True, auto_commit_interval_ms=100)
    found = []

    def batch() -> bool:
        found.extend((message.partition(), message.offset()) for message in member.consume(7, 0.2))
        return len(found) == len(group.records())

    wait_until(batch, "all records in batches", SECONDS)
    assert Counter(found) == Counter(group.records())
    assert all([offset for p, offset in found if p == each] == list(range(RECORDS)) for each in group.all)
    member.close()
    late = group.join()
    assert {found.offset for found in late.committed([group.at(0), group.at(1)]).values()} == {RECORDS}


def test_close_revokes_while_commits_still_work(group):
    asynchronous = []

    def commit(partitions, consumer):
        with pytest.raises(IllegalStateException, match="can't be called while the consumer closes"):
            consumer.committed(partitions)
        assert consumer.end_offsets(partitions) == {group.at(0): RECORDS, group.at(1): RECORDS}
        consumer.commit_sync({group.at(0): OffsetAndMetadata(3)})
        consumer.commit_async(
            {group.at(1): OffsetAndMetadata(4)}, lambda offsets, error: asynchronous.append((offsets, error))
        )

    listener = Recorder(revoked=commit)
    member = group.join(listener)
    group.until_read(group.records())
    member.close()
    assert listener.told() == [("assigned", [0, 1]), ("revoked", [0, 1])]
    ((offsets, error),) = asynchronous
    assert offsets == {group.at(1): OffsetAndMetadata(4)}
    late = group.join()
    found = late.committed([group.at(0), group.at(1)])
    assert found[group.at(0)] == OffsetAndMetadata(3)
    # The report of the broker's answer is true.
    assert (found[group.at(1)] == OffsetAndMetadata(4)) if error is None else isinstance(error, KafkaException)


def test_leaving_by_unsubscribing(group):
    listener = Recorder()
    member = group.join(listener)
    group.until_read(group.records())
    member.unsubscribe()
    group.until(lambda: len(listener.events) == 2, "the revocation")
    assert listener.told()[-1] == ("revoked", [0, 1])
    assert member.assignment() == set()
    member.subscribe([group.topic])
    group.until(lambda: len(listener.events) == 3, "the next assignment")
    assert listener.told()[-1] == ("assigned", [0, 1])


CALLS = {
    "assignment": lambda member, at: member.assignment(),
    "committed": lambda member, at: member.committed([at]),
    "position": lambda member, at: member.position(at),
    "pause": lambda member, at: member.pause([at]),
    "paused": lambda member, at: member.paused(),
    "resume": lambda member, at: member.resume([at]),
    "seek": lambda member, at: member.seek(at, RECORDS),
    "seek_to_end": lambda member, at: member.seek_to_end([at]),
    "commit_sync": lambda member, at: member.commit_sync({at: OffsetAndMetadata(1)}),
    "commit_async": lambda member, at: member.commit_async({at: OffsetAndMetadata(2)}),
    "beginning_offsets": lambda member, at: member.beginning_offsets([at]),
    "current_lag": lambda member, at: member.current_lag(at),
    "group_metadata": lambda member, at: member.group_metadata(),
    "metrics": lambda member, at: member.metrics(),
    "subscription": lambda member, at: member.subscription(),
    "subscribe": lambda member, at: member.subscribe([at.topic]),
    "set_rebalance_listener": lambda member, at: member.set_rebalance_listener(None),
}


@pytest.mark.parametrize("group", first(["cooperative", "eager", "kip-848"]), indirect=True)
def test_a_call_from_another_thread_does_not_wait_for_the_poll(group):
    """It waits for a tenth of a second, and on a loaded machine for less than half of the poll's eight."""
    member = group.join()
    group.until_read(group.records(), member)
    member.pause(member.assignment())
    spent: dict[str, float] = {}

    def call_all() -> None:
        for name, call in CALLS.items():
            began = time.monotonic()
            call(member, group.at(0))
            spent[name] = time.monotonic() - began

    caller = threading.Thread(target=call_all)
    caller.start()
    while caller.is_alive():
        member.poll(8)
    caller.join()
    assert {name: seconds for name, seconds in spent.items() if seconds > 4} == {}
