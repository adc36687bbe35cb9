"""KIP-125's path on real servers: canary, toggle, plain Kafka consumers, and back; proved by what was delivered."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer as PlainConsumer
from confluent_kafka.admin import AdminClient

from kit import connect, load_profile, observe
from kit.analyze import member_flavours
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX
from kit.lab import faults
from kit.lab.members.handles import Consumer
from kit.lab.servers.tcp_proxy import TcpProxy
from kit.lab.topics import QUIET
from tests.interop.group import Group, gauges_of
from tests.soak import IS_SOAK, Record, report, soak_only

MakeGroup = Callable[..., Group]
TOGGLES = 50 if IS_SOAK else 8
CANARY_SECONDS = 1800.0 if IS_SOAK else 3.0
LOOK_SECONDS = 1.0


def assert_exclusive(shared: Group) -> dict[str, object]:
    """Nothing lost, no record in two members' hands, nothing without an owner znode by a member that has one."""
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)
    assert found["is_exclusive"], shared.proof().describe()
    return found


def test_a_canary_carries_its_fair_share_and_all_are_replaced(group: MakeGroup, record_property: Record) -> None:
    shared = group(24)
    old = [shared.add_old(1, version)[0] for version in ("1.1.1", "1.1.1", "0.10.2.2", "0.10.2.2", "0.8.2.2")]
    shared.await_agreed()
    (canary,) = shared.add_python("mezkcc")
    shared.await_agreed()
    assert abs(shared.shares()[canary.consumer_id] - 24 / 6) <= 1
    shared.await_(lambda: len(canary.handed_out()) == shared.shares()[canary.consumer_id], "the canary reads its share")
    end, looks = time.monotonic() + CANARY_SECONDS, 0
    while time.monotonic() < end:
        assert abs(shared.shares()[canary.consumer_id] - 24 / 6) <= 1
        looks += 1
        time.sleep(LOOK_SECONDS)  # The number of examinations; nothing is waited for.
    report(record_property, f"the canary had its share in each of {looks:,} observations in {CANARY_SECONDS:.0f} s")
    for each in old:
        shared.add_python("mezkcc")
        each.stop()
        shared.left(each)
        shared.await_agreed()
    assert_exclusive(shared)
    shared.assert_nothing_repeated()


def test_the_toggle_to_and_fro_under_load(group: MakeGroup, record_property: Record) -> None:
    """ZooKeeper's range and Kafka's roundrobin, so that three of four partitions change hands each time."""
    shared = group(24, rate=1000)
    other = {"coordination.migration.partition.assignment.strategy": "roundrobin"}
    members = shared.add_python("mezkcc", 4, threads=2, settings=other)
    shared.await_agreed()
    shared.await_(
        lambda: all(gauges_of(m)["KafkaOwnedPartitionsCount"] == 6 for m in members), "all in the Kafka group"
    )
    for _ in range(TOGGLES):
        shared.toggle("kafka")
        shared.await_mode(kafka=True, consumed=24)
        shared.toggle("zookeeper")
        shared.await_mode(kafka=False, consumed=24)
    found = assert_exclusive(shared)
    assert found["duplicates_tail"] == found["duplicates_stale"] == found["duplicates_rewind"] == 0
    n_pauses, told = pauses_of(shared)
    report(record_property, f"{2 * TOGGLES} toggles: {n_pauses} partitions changed their owners; pauses in ms: {told}")
    assert n_pauses > 24
    assert not IS_SOAK or told["p99"] < 1000  # Beside other tests the machine decides.


@soak_only
def test_stopping_and_restarting_everything(group: MakeGroup, record_property: Record) -> None:
    """The migration people do without KIP-125, to be compared with the toggle: all down, all new ones up."""
    shared = group(24, rate=1000)
    members = shared.add_python("mezkcc", 4, threads=2)
    shared.await_(
        lambda: all(gauges_of(m)["KafkaOwnedPartitionsCount"] == 6 for m in members), "all in the Kafka group"
    )
    shared.await_(lambda: len({pair for m in members for pair in m.handed_out()}) == 24, "all partitions are read")
    for each in members:
        each.process.signal(signal.SIGTERM)
    for each in members:
        each.stop()
        shared.left(each)
    shared.add_python("kc", 4)
    assert_exclusive(shared)
    n_pauses, told = pauses_of(shared)
    report(record_property, f"{n_pauses} partitions changed their owners; pauses in ms: {told}")
    assert n_pauses >= 24


def pauses_of(shared: Group) -> tuple[int, dict[str, float]]:
    """Return how many partitions changed hands, and how long nobody delivered meanwhile."""
    pauses = shared.proof().handovers["gap_ms"].drop_nulls()
    return len(pauses), {f"p{part}": float(pauses.quantile(part / 100) or 0) for part in (50, 90, 99, 100)}


@soak_only
@pytest.mark.parametrize("plain", ["java", "confluent"])
def test_plain_kafka_consumers_roll_in_and_out(group: MakeGroup, plain: str) -> None:
    shared = group(12)
    members = shared.add_python("mezkcc", 3)
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    joined = shared.add_console() if plain == "java" else shared.add_python("kc")[0]
    shared.await_mode(kafka=True, consumed=9)
    faults.stop(members[0])
    shared.left(members[0])
    shared.await_mode(kafka=True, consumed=8)
    shared.await_(lambda: len(joined.handed_out()) >= 4, "the plain consumer reads its share")
    shared.add_python("mezkcc")
    shared.await_mode(kafka=True, consumed=9)
    joined.stop()
    shared.left(joined)
    shared.await_mode(kafka=True, consumed=12)
    assert_exclusive(shared)


def test_a_plain_consumer_with_a_members_client_id_is_plain(group: MakeGroup, tmp_path: Path) -> None:
    """Deployers hand that id out. Taken for the embedded consumer, it read with the members for as long as it ran."""
    shared = group(12)
    members = shared.add_python("mezkcc", 2)
    shared.await_agreed()
    shared.await_mode(kafka=False, consumed=12)
    namesake = PlainConsumer(
        {**QUIET, "bootstrap.servers": shared.lab.bootstrap_servers, "group.id": shared.name}
        | {"client.id": members[0].consumer_id, "auto.offset.reset": "latest"}
    )
    namesake.subscribe(list(shared.topics))
    taken: list[tuple[str, int]] = []

    def is_polled() -> bool:
        message = namesake.poll(0.05)
        if message is not None and message.error() is None:
            taken.append((message.topic(), message.partition()))
        return bool(namesake.assignment())

    try:
        shared.await_(is_polled, "the plain consumer is assigned partitions")
        theirs = {(each.topic, each.partition) for each in namesake.assignment()}
        shared.await_(lambda: is_polled() and in_kafka_mode(shared, 12 - len(theirs)), "the members left them to it")
        seen, taken[:] = of_partitions(shared, theirs), []
        shared.await_(lambda: is_polled() and set(taken) == theirs, "it reads each of them")
        assert of_partitions(shared, theirs) == seen
        path = tmp_path / "offramp.toml"
        path.write_text(shared.lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            flavours = member_flavours(observe(cluster, shared.name).members)
        told = {row["member_id"]: row["flavour"] for row in flavours.rows(named=True) if row["source"] == "kafka"}
        assert sorted(told.values()) == ["EKC", "EKC", "KC"]
        assert told[namesake.memberid()] == "KC"
    finally:
        namesake.close()
    shared.await_mode(kafka=False, consumed=12)


def in_kafka_mode(shared: Group, consumed: int) -> bool:
    gauges = [gauges_of(member) for member in shared.members]
    are_there = all(each["ActiveKafkaCoordinationCount"] for each in gauges)
    return are_there and sum(each["ConsumedPartitionsCount"] for each in gauges) == consumed


def of_partitions(shared: Group, partitions: set[tuple[str, int]]) -> set[tuple[str, int, int]]:
    """The records of these that members took."""
    return {each for each in shared.handed_out() if each[:2] in partitions}


def test_the_listener_gets_the_whole_groups_assignment_in_kafka_mode(group: MakeGroup) -> None:
    """The assignment has every member, plain Kafka consumers included, as the coordinator has it; and again when it
    changes.
    """
    shared = group(12)
    members = shared.add_python("mezkcc", 2, threads=2)
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    (plain,) = shared.add_python("kc")
    shared.await_mode(kafka=True, consumed=8)
    assert await_told(shared, members)[0] == {m.consumer_id: 4 for m in members} | {"a plain consumer": 4}
    plain.stop()
    shared.left(plain)
    shared.await_mode(kafka=True, consumed=12)
    by_member, by_thread = await_told(shared, members)
    assert by_member == {member.consumer_id: 6 for member in members}
    assert set(by_thread.values()) == {3}


def await_told(shared: Group, members: list[Consumer]) -> tuple[dict[str, int], dict[str, int]]:
    """Return what both members' listeners received, once it is what the coordinator and the owner znodes have:
    partitions by member, and by thread.
    """
    admin = AdminClient({"bootstrap.servers": shared.lab.bootstrap_servers, "log_level": 0})
    ids = {member.consumer_id for member in members}

    def known() -> dict[tuple[str, int], str]:
        found = admin.describe_consumer_groups([shared.name])[shared.name].result().members
        return {
            (each.topic, each.partition): member.client_id if member.client_id in ids else f"{member.member_id}-0"
            for member in found
            for each in member.assignment.topic_partitions
        }

    def told(member: Consumer) -> dict[tuple[str, int], str]:
        whole = member.group_assignment() or {}
        names = {pair: thread.rpartition("-")[0] for pair, thread in whole.items()}
        return {pair: name if name in ids else whole[pair] for pair, name in names.items()}

    def mine() -> dict[tuple[str, int], str]:
        return {pair: thread for pair, thread in shared.owners().items() if not thread.endswith(RESERVATION_SUFFIX)}

    def agreed() -> bool:
        whole = members[0].group_assignment() or {}
        return len(known()) == 12 and all(told(each) == known() for each in members) and mine().items() <= whole.items()

    shared.await_(agreed, "the listeners are reported what the coordinator knows")
    whole = members[0].group_assignment() or {}
    names = [thread.rpartition("-")[0] for thread in whole.values()]
    by_member = Counter(name if name in ids else "a plain consumer" for name in names)
    return dict(by_member), dict(Counter(whole.values()))


def test_an_old_consumer_that_joins_in_kafka_mode_brings_the_group_back(group: MakeGroup) -> None:
    """R3: without plain Kafka consumers the group falls back at once, and shares."""
    shared = group(12)
    shared.add_python("mezkcc", 2)
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    (old,) = shared.add_old(1)
    shared.await_mode(kafka=False, consumed=8)
    shared.await_agreed()
    assert shared.shares()[old.consumer_id] == 4
    old.stop()
    shared.left(old)
    shared.await_mode(kafka=True, consumed=12)
    assert_exclusive(shared)


@soak_only
def test_an_old_consumer_beside_plain_kafka_consumers_gets_nothing(group: MakeGroup) -> None:
    """R5: it gets nothing, loudly, and nothing is read twice."""
    shared = group(12)
    shared.add_python("mezkcc", 2)
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    (plain,) = shared.add_python("kc")
    shared.await_mode(kafka=True, consumed=8)
    (old,) = shared.lab.start_old_consumers(shared.old_wish(), wait=False)
    shared.everyone.append(old)
    shared.await_(lambda: sum(gauges_of(m)["FencedPartitionsCount"] for m in shared.members[:2]) == 4, "reservations")
    shared.await_(
        lambda: "conflict" in old.process.last_lines() or "attempt failed" in old.process.last_lines(), "fails"
    )
    assert old.records() == []
    old.kill()
    plain.stop()
    shared.left(plain)
    shared.await_mode(kafka=True, consumed=12)
    assert_exclusive(shared)


def test_zookeeper_comes_back_while_kafka_coordinates(group: MakeGroup) -> None:
    """I4: no record while ZooKeeper can't be asked for longer than the lease; then all continue by themselves."""
    shared = group(12)
    shared.add_python("mezkcc", 2)
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    server = shared.lab.servers.zookeeper

    def is_silent() -> bool:
        return shared.producer.acknowledged()[-1]["at_ms"] > shared.last_ms() + 1000

    server.process.pause()
    try:
        shared.await_(is_silent, "records of a whole second are written, and none is delivered")
    finally:
        resumed_ms = time.time() * 1000
        server.process.resume()
    shared.await_record_after(resumed_ms)
    shared.await_mode(kafka=True, consumed=12)
    assert_exclusive(shared)


def test_a_member_that_is_cut_off_from_zookeeper_leaves_the_kafka_group(group: MakeGroup) -> None:
    """R12: nobody can tell it that its session has ended, and the others must not wait for it."""
    shared = group(12)
    with TcpProxy(shared.lab.zookeeper_connect) as proxy:
        (cut_off,) = shared.add_python("mezkcc", settings={"zookeeper.connect": proxy.address})
        (other,) = shared.add_python("mezkcc")
        shared.toggle("kafka")
        shared.await_mode(kafka=True, consumed=12)
        proxy.cut()
        shared.await_(lambda: gauges_of(other)["ConsumedPartitionsCount"] == 12, "the other has all")
        shared.await_(lambda: gauges_of(cut_off)["KafkaOwnedPartitionsCount"] == 0, "it is no Kafka member")
        proxy.mend()
        shared.await_mode(kafka=True, consumed=12)
        shared.await_(lambda: gauges_of(cut_off)["ConsumedPartitionsCount"] == 6, "they share again")
        assert_exclusive(shared)


@soak_only
def test_a_member_that_slept_out_of_the_kafka_group_delivers_nothing(group: MakeGroup) -> None:
    """R13: its ZooKeeper session lives, but plain Kafka consumers have its partitions when it wakes."""
    shared = group(12)
    (sleeper,) = shared.add_python("mezkcc", settings={"zookeeper.session.timeout.ms": "30000"})
    shared.toggle("kafka")
    shared.await_mode(kafka=True, consumed=12)
    (plain,) = shared.add_python("kc")
    shared.await_mode(kafka=True, consumed=6)
    faults.pause(sleeper)
    shared.await_(lambda: len(plain.partitions()) == 12, "the plain consumer has all")
    shared.await_(lambda: len(plain.handed_out()) == 12, "the plain consumer reads all")
    woken_ms = time.time() * 1000
    faults.resume(sleeper)
    shared.await_(lambda: len(plain.partitions()) == 6, "they share again")
    shared.await_mode(kafka=True, consumed=6)
    shared.assert_silent_when_woken(sleeper, woken_ms, plain.events("ASSIGN")[-1].at_ms)
