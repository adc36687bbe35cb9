"""Interleavings of librdkafka's callbacks that a server can't be made to show on demand."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest
from confluent_kafka import IllegalStateException, KafkaError, KafkaException, TopicPartition

from kit.consumer.kafka.commits import Commits
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.kafka.listener import RebalanceListener, adapt
from kit.consumer.kafka.rebalance import Rebalances

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, "enable.auto.commit": False}
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


class Steps:
    """Means the assignment and for a listener: notes in which order both are called."""

    def __init__(self, *raising: str) -> None:
        self.made: list[str] = []
        self.raising = raising

    def step(self, name: str) -> None:
        self.made.append(name)
        if name in self.raising:
            raise ZeroDivisionError(name)

    def begin_adding(self, partitions):
        self.step("begin_adding")

    def finish_adding(self):
        self.step("finish_adding")

    def remove(self, partitions):
        self.step("remove")

    def on_partitions_assigned(self, partitions, view):
        self.step("assigned")

    def on_partitions_revoked(self, partitions, view):
        self.step("revoked")

    def on_partitions_lost(self, partitions, view):
        self.step("lost")


def rebalances(steps: Steps, listener: object) -> Rebalances:
    made = Rebalances(None, steps, Commits())
    made.use(adapt(listener))
    made.begin_poll()
    return made


@pytest.mark.parametrize("raising", [(), ("assigned",), ("begin_adding",), ("assigned", "finish_adding")])
def test_an_assignment_is_applied_after_the_listener_whatever_it_raises(raising):
    steps = Steps(*raising)
    made = rebalances(steps, steps)
    made.assigned(None, [ZERO])
    heard = [] if "begin_adding" in raising else ["assigned", "finish_adding"]
    assert steps.made == ["begin_adding", *heard]
    assert bool(made.failures) == bool(raising)


@pytest.mark.parametrize("raising", [(), ("revoked",)])
def test_partitions_go_after_the_listener_when_revoked(raising):
    steps = Steps(*raising)
    rebalances(steps, steps).revoked(None, [ZERO])
    assert steps.made == ["revoked", "remove"]


@pytest.mark.parametrize("raising", [(), ("lost",), ("remove",)])
def test_partitions_go_before_the_listener_when_lost(raising):
    steps = Steps(*raising)
    rebalances(steps, steps).lost(None, [ZERO])
    assert steps.made == ["remove", "lost"]


def test_a_replaced_listener_stays_in_force_until_the_next_poll():
    steps, old, new = Steps(), Steps(), Steps()
    made = rebalances(steps, old)
    made.revoked(None, [ZERO])
    made.use(adapt(new))
    made.assigned(None, [])
    assert (old.made, new.made) == (["revoked", "assigned"], [])
    made.begin_poll()
    made.revoked(None, [ZERO])
    assert (old.made, new.made) == (["revoked", "assigned"], ["revoked"])


def test_the_first_failure_is_raised_once_and_reports_of_the_rest():
    steps = Steps("revoked", "assigned")
    made = rebalances(steps, steps)
    made.revoked(None, [ZERO])
    made.assigned(None, [ONE])
    with pytest.raises(ZeroDivisionError, match="revoked") as raised:
        made.raise_failure()
    assert raised.value.__notes__ == [
        "another rebalance callback of the same poll raised ZeroDivisionError('assigned')"
    ]
    made.raise_failure()


def test_an_interrupt_in_a_callback_is_not_lost():
    class Interrupting(Steps):
        def step(self, name):
            raise KeyboardInterrupt

    made = rebalances(Steps(), Interrupting())
    made.revoked(None, [ZERO])
    with pytest.raises(KeyboardInterrupt):
        made.raise_failure()


class Record:
    """The part of a Message that is read."""

    def __init__(self, partition: int, offset: int) -> None:
        self.place = partition, offset

    def topic(self):
        return "t"

    def partition(self):
        return self.place[0]

    def offset(self):
        return self.place[1]

    def leader_epoch(self):
        return 5

    def error(self):
        return None


class Script:
    """librdkafka's consumer by a script: each poll gives a record, nothing, or makes a callback first."""

    def __init__(self, *steps) -> None:
        self.steps = list(steps)
        self.owned: list[TopicPartition] = []
        self.stored: list[TopicPartition] = []
        self.commits: list[tuple[int, int]] = []
        self.is_member = True

    def poll(self, timeout):
        step = self.steps.pop(0) if self.steps else None
        return step() if callable(step) else step

    def assign(self, partitions):
        self.owned = list(partitions)

    def unassign(self):
        self.owned = []

    def assignment(self):
        return self.owned

    def position(self, partitions):
        return partitions

    def seek(self, partition):
        """Only the wrapper's own records matter here."""

    pause = resume = seek

    def store_offsets(self, offsets):
        self.stored = offsets

    def commit(self, offsets, asynchronous):
        self.commits += [(each.partition, each.offset) for each in offsets if self.is_member]
        return offsets

    def close(self):
        """Leave the group, then commit: so does librdkafka when a revocation still waits for a poll."""
        self.is_member = False
        self.commit(self.stored, asynchronous=True)


@contextmanager
def scripted(listener: object, *steps, auto_commits: bool = False):
    """A consumer whose librdkafka follows the script; steps by name are callbacks for partition 0."""
    consumer = KafkaConsumer(NOWHERE | {"enable.auto.commit": auto_commits})
    consumer._raw.close()
    consumer.set_rebalance_listener(listener)
    callbacks = {
        name: partial(getattr(consumer._rebalances, name), None, [ZERO]) for name in ("assigned", "revoked", "lost")
    }
    script = Script(*(callbacks.get(step, step) for step in steps))
    consumer._raw = consumer._assignment._raw = script
    yield consumer, script
    consumer.close()


def places(messages) -> list[tuple[int, int]]:
    return [message.place for message in messages]


class Committing(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer):
        pass

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync()


def test_a_batch_leaves_out_and_commits_nothing_of_what_is_revoked_meanwhile():
    early, late, other = Record(0, 7), Record(0, 8), Record(1, 3)
    with scripted(Committing(), "assigned", early, other, late, "revoked", None) as (consumer, script):
        assert places([consumer.poll(1)]) == [(0, 7)]
        assert places(consumer.consume(5, 0.3)) == [(1, 3)]
        # The records of poll are processed, as the application has come back; what the batch held is the next owner's.
        assert script.commits == [(0, 8)]


@pytest.mark.parametrize(("handed_over", "committed"), [(True, 9), (False, 8)])
def test_the_last_automatic_commit_is_sent_before_the_consumer_leaves_the_group(caplog, handed_over, committed):
    steps = ("assigned", Record(0, 7), Record(0, 8))
    with scripted(None, *steps, auto_commits=True) as (consumer, script):
        assert places([consumer.poll(1), consumer.poll(1)]) == [(0, 7), (0, 8)]
        consumer.close(handed_over)
        assert script.commits == [(0, committed)]
    assert "the last commit of t-0 failed: the consumer was closed before the broker answered" in caplog.text


def test_a_revocation_while_the_consumer_closes_knows_the_assignment():
    """librdkafka's group is ended already if the consumer is closed amid a rebalance."""
    seen = []

    class Noting(Committing):
        def on_partitions_revoked(self, partitions, consumer):
            seen.append(consumer.assignment())

    def refuse():
        raise KafkaException(KafkaError(KafkaError._DESTROY))

    with scripted(Noting(), "assigned", Record(0, 7)) as (consumer, script):
        consumer.poll(1)
        script.assignment = refuse
        script.close = partial(consumer._rebalances.revoked, None, [ZERO])
        consumer.close()
        assert seen == [{ZERO}]
        assert consumer._assignment.partitions() == set()


def test_without_automatic_commits_the_end_commits_nothing():
    with scripted(None, "assigned", Record(0, 7)) as (consumer, script):
        assert places([consumer.poll(1)]) == [(0, 7)]
        consumer.close()
        assert script.commits == []


def test_an_exception_takes_no_record_with_it():
    with scripted(Steps("revoked"), "assigned", Record(1, 3), "revoked", Record(1, 4)) as (consumer, _):
        assert places(consumer.consume(5, 0.3)) == [(1, 3)]
        with pytest.raises(ZeroDivisionError):
            consumer.consume(5, 0.3)
        assert places(consumer.consume(1, 0.3)) == [(1, 4)]


def test_an_interrupted_batch_is_delivered_later():
    def interrupt():
        raise KeyboardInterrupt

    with scripted(None, "assigned", Record(0, 1), interrupt, Record(0, 2)) as (consumer, _):
        with pytest.raises(KeyboardInterrupt):
            consumer.consume(5, 0.3)
        assert places(consumer.consume(2, 0.3)) == [(0, 1), (0, 2)]


def test_a_lost_partition_is_not_committed():
    class Losing(Committing):
        def on_partitions_lost(self, partitions, consumer):
            assert consumer.assignment() == set()
            with pytest.raises(IllegalStateException):
                consumer.position(ZERO)
            consumer.commit_sync()

    with scripted(Losing(), "assigned", Record(0, 1), "lost") as (consumer, script):
        assert places([consumer.poll(0.3)]) == [(0, 1)]
        assert consumer.position(ZERO) == 2
        consumer.poll(0.1)
        assert script.commits == []


def test_a_seek_in_a_callback_is_not_undone_by_records_in_hand():
    """A partition that stays keeps its seek: cooperative groups and KIP-848 rebalance in the middle of a batch."""
    consumer: KafkaConsumer
    steps = ["assigned", Record(0, 7), Record(0, 8), lambda: consumer.seek(ZERO, 3), Record(0, 3)]
    with scripted(None, *steps) as (consumer, _):
        assert places(consumer.consume(3, 0.5)) == [(0, 3)]
        assert consumer.position(ZERO) == 4


def test_a_pause_in_a_callback_holds_back_the_records_in_hand_until_the_partition_is_resumed():
    consumer: KafkaConsumer
    steps = ["assigned", Record(0, 7), Record(0, 8), lambda: consumer.pause([ZERO])]
    with scripted(None, *steps) as (consumer, script):
        assert consumer.consume(3, 0.3) == []
        consumer.commit_sync()
        assert script.commits == []
        consumer.resume([ZERO])
        assert places(consumer.consume(2, 0.3)) == [(0, 7), (0, 8)]
        assert consumer.position(ZERO) == 9


def test_records_held_back_go_with_their_partition():
    consumer: KafkaConsumer
    steps = ["assigned", Record(0, 7), lambda: consumer.pause([ZERO]), "revoked", "assigned"]
    with scripted(None, *steps) as (consumer, _):
        assert consumer.consume(3, 0.3) == []
        assert consumer.consume(3, 0.3) == []
        consumer.resume([ZERO])
        assert consumer.consume(3, 0.1) == []


def test_the_record_delivered_last_is_not_committed_after_an_exception():
    with scripted(None, "assigned", Record(0, 7), Record(0, 8)) as (consumer, script):
        consumer.consume(1, 0.3)
        consumer.consume(1, 0.3)
        consumer._assignment.take_back()
        consumer.commit_sync()
        assert script.commits == [(0, 8)]
