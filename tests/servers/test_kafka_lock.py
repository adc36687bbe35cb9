"""The lock of a run in Kafka, on three brokers: who gets it, who keeps it, and when nobody can tell."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from threading import Barrier

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from kit import observe
from kit.clients.broker_client import Deadline
from kit.clients.cluster import Cluster, connect, connect_kafka
from kit.errors import LockLost, OfframpError, RunError, TargetBusy
from kit.lab import Lab, faults
from kit.lab.topics import QUIET
from kit.moves.locks import held_locks, lease
from kit.moves.locks.kafka_lock import MOST_LEASES, WHOLE_CLUSTER, KafkaLock, LockGroups, fetch_locks, lock_group
from kit.moves.locks.lease import TOPIC, Lease, Member
from kit.moves.locks.mark import Mark
from kit.moves.offsets.kafka import ACCEPTED, KafkaWriter, answer_of
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.requests import commit_codes, commit_of
from kit.profile import load_profile
from tests.adversary.mistakes import BLIND_RETRIES, put_back
from tests.servers.awaiting import SECONDS, awaited

BRIEF_S = 4.0
"""A session that is waited out; the brokers of a lab allow one second."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(brokers=3, kraft=True) as started:
        (started.folder / "offramp.toml").write_text(started.profile_toml())
        yield started


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with connect(load_profile(file=lab.folder / "offramp.toml")) as connected:
        yield connected


@pytest.fixture
def locks(cluster: Cluster) -> Iterator[Callable[[], KafkaLock]]:
    made = list[KafkaLock]()

    def lock() -> KafkaLock:
        made.append(KafkaLock(LockGroups(cluster)))
        return made[-1]

    yield lock
    for each in made:
        each.release()


class Holder:
    """Another process that has the lock of a group."""

    def __init__(self, lab: Lab, group: str, run_id: str, session_s: float) -> None:
        words = [str(lab.folder / "offramp.toml"), str(session_s), group, run_id]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.lock_holder", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "held"

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def confirm(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()


@contextmanager
def holder(lab: Lab, group: str, run_id: str, session_s: float = BRIEF_S) -> Iterator[Holder]:
    held = Holder(lab, group, run_id, session_s)
    try:
        yield held
    finally:
        held.process.communicate()  # At the end of its input it releases the lock.


def take(lock: KafkaLock, group: str, run_id: str) -> None:
    """Return when the lock is had: the one who has it now will lose it."""

    def is_had() -> bool:
        try:
            lock.acquire([group], run_id)
        except TargetBusy:
            return False
        return True

    awaited(is_had, bool, f"the lock of {group}")


def coordinator_of(cluster: Cluster, group: str) -> int | None:
    name = lock_group(group)
    client = cluster.broker_client
    return client.run(client.find_coordinators, [name], Deadline(5.0)).get(name)


def test_one_run_has_the_lock_and_another_one_learns_of_whom(lab, cluster, locks):
    with holder(lab, "orders", "run-1"):
        with pytest.raises(TargetBusy, match=r"group orders is locked by a run: run run-1 of .+ on .+ since 20"):
            locks().acquire(["payments", "orders"], "run-2")
        states = {each.group_id: each for each in fetch_locks(cluster)}
        assert not states[lock_group("payments")].is_held, "all or none"
        assert states[lock_group("orders")].members[0].client_id == "offramp run-1"
    groups = observe(cluster).groups["group_id"].to_list()
    assert not [each for each in groups if each.startswith("offramp.lock")]


def test_a_killed_holder_has_lost_the_lock_after_its_session(lab, locks):
    with holder(lab, "killed", "run-1") as first:
        first.process.kill()
        lock = locks()
        take(lock, "killed", "run-2")
        lock.assert_held()


def test_a_holder_that_was_stalled_longer_than_its_session_learns_it_before_its_next_write(lab, locks):
    with holder(lab, "still", "run-1") as first:
        first.process.send_signal(signal.SIGSTOP)
        lock = locks()
        take(lock, "still", "run-2")
        first.process.send_signal(signal.SIGCONT)
        assert first.confirm() == "LockLost"
        lock.assert_held()


class BlindLease(Lease):
    """It sees no member, as if two had examined the same time."""

    async def _found(self) -> tuple[str, list[Member]]:
        return "", []


def test_a_newcomer_disturbs_no_holder(lab, cluster):
    newcomer = Mark("run-2", "host", "ann", "2026-01-31T12:00:00+00:00")
    with holder(lab, "newcomer", "run-1", session_s=10.0) as first:
        lease = BlindLease(connect_kafka(cluster.profile), lock_group("newcomer"), "group newcomer", newcomer)
        with pytest.raises(TargetBusy, match="run-1"):
            lease.take()
        lease.close()
        assert [first.confirm() for _ in range(3)] == ["held"] * 3


def test_two_that_begin_at_once_do_not_both_get_the_lock(locks):
    for number in range(4):
        both, start = [locks(), locks()], Barrier(2)

        def begin(lock: KafkaLock, run_id: str, start: Barrier = start, group: str = f"race-{number}") -> bool:
            start.wait()
            try:
                lock.acquire([group], run_id)
            except TargetBusy:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            had = list(pool.map(begin, both, ["run-1", "run-2"]))
        assert sum(had) <= 1
        for lock, has in zip(both, had):
            if has:
                lock.assert_held()
            lock.release()


def test_a_run_of_many_groups_and_one_of_a_single_group_exclude_each_other(cluster, locks):
    many = [f"many-{number}" for number in range(MOST_LEASES + 1)]
    whole, single = locks(), locks()
    whole.acquire(many, "run-1")
    assert [each.group_id for each in fetch_locks(cluster) if each.is_held] == [WHOLE_CLUSTER]
    with pytest.raises(TargetBusy, match="a run holds the lock of the whole cluster: run run-1"):
        single.acquire(["outside"], "run-2")
    whole.mark(many, "run-1")
    assert single.followed_by(many, "run-0") == dict.fromkeys(many, "run-1")
    whole.release()
    single.acquire(["outside"], "run-2")
    with pytest.raises(TargetBusy, match=r"group outside is locked by a run \(run run-2"):
        whole.acquire(many, "run-3")


def test_a_mark_outlives_the_lock_and_names_the_last_run_that_changed_the_group(locks):
    first, later = locks(), locks()
    first.acquire(["marked"], "run-1")
    first.mark(["marked"], "run-1")
    assert first.followed_by(["marked"], "run-1") == {}
    first.release()
    later.acquire(["marked"], "run-2")
    assert later.followed_by(["marked"], "run-1") == {}, "run-2 has the lock, and has written nothing"
    later.mark(["marked"], "run-2")
    assert later.followed_by(["marked"], "run-1") == {"marked": "run-2"}


@pytest.mark.parametrize("loss", ["group deleted", "topic deleted"])
def test_without_its_mark_no_one_can_report_whether_a_later_run_changed_the_group(lab, locks, loss):
    group, lock = loss.replace(" ", "-"), locks()
    lock.acquire([group], "run-1")
    lock.mark([group], "run-1")
    lock.release()
    if loss == "group deleted":
        lab.admin.delete_consumer_groups([lock_group(group)])[lock_group(group)].result(SECONDS)
    else:
        lab.admin.delete_topics([TOPIC])[TOPIC].result(SECONDS)

    def refused() -> str:
        try:
            lock.followed_by([group], "run-1")
        except RunError as error:
            return str(error)
        return ""

    assert "Make a new plan" in awaited(refused, bool, "the loss of the mark")
    lock.acquire([group], "run-2")
    lock.assert_held()


def test_a_broken_lock_is_the_one_that_was_seen(cluster, locks):
    """Another run may have taken it since the list was read."""
    first, second = locks(), locks()
    take(first, "seen", "run-1")
    (shown,) = [each for each in held_locks.held_locks(cluster) if each.target == "seen"]
    first.release()
    take(second, "seen", "run-2")
    held_locks.end(cluster, shown)
    second.assert_held()
    held_locks.break_locks(cluster, "seen", "run-2")
    with pytest.raises(LockLost):
        second.assert_held()


def test_an_offset_of_another_topic_in_a_locks_group_is_no_mark(lab, cluster, locks):
    group = lock_group("marked")
    foreign = {(group, topic, 0): Stored(3, "somebody's") for topic in (f"a-{TOPIC}", f"z-{TOPIC}")}
    for _, topic, _ in foreign:
        lab.create_topic(topic, 1)
    assert {each.error for each in KafkaWriter(cluster.broker_client).write(foreign, {}).values()} == {None}
    lock = locks()
    take(lock, "marked", "run-1")
    (held,) = [each for each in held_locks.held_locks(cluster) if each.place == group]
    assert held.run_id == "run-1"


def test_another_application_in_a_group_of_the_locks_name_is_refused(lab, locks):
    consumer = Consumer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": lock_group("foreign")})
    lab.create_topic("foreign", 1)
    consumer.subscribe(["foreign"])
    awaited(lambda: (consumer.poll(0.1), consumer.assignment())[1], bool, "the consumer's partition")
    with pytest.raises(TargetBusy, match="group foreign is locked by a run: client 'rdkafka'"):
        locks().acquire(["foreign"], "run-1")
    consumer.close()
    with pytest.raises(RunError, match="another application uses a group of this name"):
        locks().acquire(["foreign"], "run-1")


def test_a_session_below_the_brokers_shortest_one_is_refused(locks, monkeypatch):
    monkeypatch.setattr(lease, "SESSION_S", 0.5)
    with pytest.raises(RunError, match=r"group.min.session.timeout.ms of the brokers is above 500"):
        locks().acquire(["brief"], "run-1")


def test_a_holder_keeps_the_lock_when_the_coordinator_moves(lab, cluster, locks):
    lock = locks()
    lock.acquire(["moved"], "run-1")
    old = coordinator_of(cluster, "moved")
    assert old is not None
    broker = faults.broker(lab, old)
    faults.stop(broker)
    awaited(lambda: coordinator_of(cluster, "moved"), lambda now: now not in (None, old), "the new coordinator")
    lock.assert_held()
    with pytest.raises(TargetBusy, match="run run-1"):
        locks().acquire(["moved"], "run-2")
    broker.launch()
    broker.await_started()
    lab.servers.await_known(broker)


@pytest.mark.parametrize("is_blind", [False, True], ids=["as-it-is", "the-mistake"])
def test_a_commit_is_not_tried_again_over_what_members_committed_meanwhile(lab, cluster, monkeypatch, is_blind):
    """The first attempt goes to a broker that is not the coordinator any more. Then a member commits."""
    group, topic = f"late-{is_blind}", f"late-{is_blind}"
    lab.create_topic(topic, 1)
    key, writer = (group, topic, 0), KafkaWriter(cluster.broker_client)
    awaited(lambda: writer.write({key: Stored(5)}, {})[key], lambda answer: answer == ACCEPTED, "the topic to be known")
    known = writer.read([key])
    writer._coordinators[group] = next(
        each.broker_id for each in lab.servers.brokers if each.broker_id != coordinator_of(cluster, group)
    )
    forget = writer.forget
    with closing(Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group})) as member:

        def commit_between(groups: object) -> None:
            member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
            forget(groups)  # type: ignore[arg-type]

        monkeypatch.setattr(writer, "forget", commit_between)
        with put_back(BLIND_RETRIES) if is_blind else nullcontext():
            answer = writer.write({key: Stored(9)}, known)[key]
    assert (answer == ACCEPTED) is is_blind
    assert writer.read([key])[key].offset == (9 if is_blind else 7)


def test_a_commit_that_waits_too_long_for_its_followers_is_made_all_the_same(lab, cluster):
    """The coordinator appended it, so COORDINATOR_NOT_AVAILABLE refuses nothing for certain."""
    key, writer, client = ("unconfirmed", "unconfirmed", 0), KafkaWriter(cluster.broker_client), cluster.broker_client
    lab.create_topic(key[1], 1)
    awaited(lambda: writer.write({key: Stored(5)}, {})[key], lambda answer: answer == ACCEPTED, "the topic to be known")
    coordinator = coordinator_of(cluster, key[0])
    followers = [each for each in lab.servers.brokers if each.broker_id != coordinator]
    asked = {key[1:]: Stored(9)}
    for each in followers:
        faults.pause(each)
    try:
        response = client.run(client.send_within, commit_of(key[0], asked), coordinator, SECONDS)
    finally:
        for each in followers:
            faults.resume(each)
    codes = dict(commit_codes(asked)(response))
    assert codes == {key[1:]: 15}
    assert not answer_of(codes[key[1:]]).is_refused
    awaited(lambda: writer.read([key])[key].offset, lambda offset: offset == 9, "the commit")


def in_sync(lab: Lab) -> list[int]:
    partitions = lab.admin.list_topics("__consumer_offsets", timeout=SECONDS).topics["__consumer_offsets"].partitions
    return [len(each.isrs) for each in partitions.values()]


def test_without_enough_replicas_no_one_confirms_and_no_one_takes_a_lock(lab, cluster, locks, monkeypatch):
    lock = locks()
    lock.acquire(["replicas"], "run-1")
    monkeypatch.setattr(lease, "SESSION_S", BRIEF_S)
    monkeypatch.setattr(lease, "_ANSWER_S", BRIEF_S)
    monkeypatch.setattr(lease, "_JOIN_S", BRIEF_S)
    topic = ConfigResource(ConfigResource.Type.TOPIC, "__consumer_offsets")
    strict = ConfigEntry("min.insync.replicas", "3", incremental_operation=AlterConfigOpType.SET)
    topic.add_incremental_config(strict)
    lab.admin.incremental_alter_configs([topic])[topic].result(SECONDS)
    broker = next(each for each in lab.servers.brokers if each.broker_id != coordinator_of(cluster, "replicas"))
    faults.stop(broker)
    awaited(lambda: in_sync(lab), lambda isrs: set(isrs) == {2}, "the replicas in sync without the stopped broker")
    with pytest.raises(LockLost, match=r"__consumer_offsets-\d has 2 of 3 replicas in sync"):
        lock.assert_held()
    with pytest.raises(OfframpError, match=r"2 of 3 replicas in sync"):
        locks().acquire(["nobody"], "run-2")
    broker.launch()
    broker.await_started()
    lab.servers.await_known(broker)
