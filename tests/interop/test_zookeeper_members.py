"""Python members in one group with real JVM consumers: same assignment, nothing lost, nothing read twice."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest

from kit.consumer.zookeeper.config import HASH_0_8_2, HASH_1_0
from kit.consumer.zookeeper.rebalance_loop import RECHECK_SECONDS
from kit.lab import Lab, faults
from kit.lab.members.python import PythonMember
from tests.interop.group import Group
from tests.soak import IS_SOAK, Record, first, report

MakeGroup = Callable[..., Group]
JOINS = 100 if IS_SOAK else 3
RELEASE_SECONDS, LAST_TRY_SECONDS = 1.5, 6.0
"""The time that a Python member aims at, and the time at which an old consumer of default settings begins its last
try.
"""
HASHES = {"1.1.1": HASH_1_0, "0.10.2.2": HASH_0_8_2, "0.8.2.2": HASH_0_8_2}


@pytest.mark.parametrize("version", HASHES)
@pytest.mark.parametrize("strategy", first(["roundrobin", "range"]))
def test_the_same_assignment_as_jvm_members(group: MakeGroup, version: str, strategy: str) -> None:
    """Three members, so that the two orders of roundrobin differ for these names."""
    form = HASHES[version]
    shared = group({f"clickstream-{version}-{strategy}": 12, f"audit_log-{version}-{strategy}": 4}, rate=200)
    shared.add_old(2, version, threads=1, assignor=strategy)
    (member,) = shared.add_python("ozkcc", threads=3, assignor=strategy, settings={"roundrobin.hash": form})
    shared.await_agreed(strategy, form)
    shared.await_(lambda: len(member.handed_out()) == shared.shares()[member.consumer_id], "it reads what it owns")
    member.stop()
    shared.left(member)
    shared.await_agreed(strategy, form)
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)
    assert max(shared.handed_out().values()) == 1


def test_members_of_three_releases_and_twelve_threads(group: MakeGroup) -> None:
    """More threads than most have, ordered as text: -0, -1, -10, -11, -2 …"""
    shared = group(48)
    for version in HASHES:
        shared.add_old(1, version, threads=2)
    shared.add_python("ozkcc", threads=12)
    shared.await_agreed()
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)


def test_wildcards_follow_topics_that_come_and_grow(lab: Lab, group: MakeGroup) -> None:
    shared = group({"wild-a": 4, "wild-b": 2}, name="wild-g")
    shared.add_old(1, topics="~wild-.*", threads=2)
    shared.add_python("ozkcc", allow="wild-.*", threads=2)
    shared.await_agreed()
    shared.topics["wild-c"] = 4
    lab.create_topic("wild-c", 4)
    shared.await_agreed()
    lab.grow_topic("wild-a", 8)
    shared.topics["wild-a"] = 8
    shared.await_agreed()
    assert len(shared.owners()) == 14


def test_members_that_order_roundrobin_otherwise_are_refused_with_the_reason(lab: Lab, group: MakeGroup) -> None:
    shared = group({"clickstream-mixed": 12, "audit_log-mixed": 4}, rate=50)
    shared.add_old(2, "0.10.2.2", assignor="roundrobin")
    shared.await_agreed("roundrobin", HASH_0_8_2)
    owned = shared.owners()
    wanted = PythonMember("ozkcc", shared.name, list(shared.topics), assignor="roundrobin")
    (wrong,) = lab.start_python_members([wanted], wait=False)
    shared.await_(lambda: bool(wrong.events("ERR")), "it is refused")
    assert "Set roundrobin.hash=0.8.2" in wrong.events("ERR")[0].details
    shared.await_(lambda: shared.owners() == owned, "the others have what they had")


def test_a_killed_member_leaves_only_its_uncommitted_tail(group: MakeGroup) -> None:
    shared = group(12)
    shared.add_old(1)
    (victim,) = shared.add_python("ozkcc")
    (killed,) = shared.add_python("ozkcc")
    shared.await_agreed()
    shared.await_(lambda: len(killed.handed_out()) == 4, "it reads")
    faults.kill(killed)
    shared.left(killed)
    shared.await_agreed()
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)
    assert found["duplicates_stale"] == found["duplicates_rewind"] == 0
    assert victim.records()


def test_a_stopped_member_delivers_nothing_when_it_wakes(group: MakeGroup) -> None:
    """SIGSTOP until its session ended: a JVM member reads on for a while then, a Python one must not."""
    shared = group(12)
    shared.add_old(1)
    (sleeper,) = shared.add_python("ozkcc", settings={"zookeeper.session.timeout.ms": "4000"})
    shared.await_agreed()
    shared.await_(lambda: len(sleeper.handed_out()) == 6, "it reads")
    faults.pause(sleeper)
    shared.left(sleeper)
    shared.await_agreed()
    woken_ms = time.time() * 1000
    faults.resume(sleeper)
    shared.members.append(sleeper)
    shared.await_agreed()
    shared.assert_silent_when_woken(sleeper, woken_ms, shared.registered_ms(sleeper)[1])


def test_a_real_member_that_joins_is_served_within_one_of_its_tries(group: MakeGroup, record_property: Record) -> None:
    """From its registration until a Python member let go and it owns its share."""
    shared = group(24)
    shared.add_python("ozkcc", threads=2)
    shared.await_agreed()
    for _ in range(JOINS):
        (joiner,) = shared.add_old(1, threads=2)
        shared.await_agreed()
        joiner.stop()
        shared.left(joiner)
        shared.await_agreed()
    seconds = sorted(shared.release_seconds())
    assert len(seconds) == JOINS
    median, longest = statistics.median(seconds), seconds[-1]
    report(record_property, f"{JOINS} joins: a share after {median:.3f} s (median), {longest:.3f} s (longest)")
    assert median < RELEASE_SECONDS
    assert longest < LAST_TRY_SECONDS


def test_a_stolen_owner_znode_is_noticed_at_once(group: MakeGroup) -> None:
    """R15: an old consumer deletes owner znodes without looking whose they are; a JVM member reads on."""
    shared = group(4)
    shared.add_python("ozkcc")
    shared.await_agreed()
    shared.await_(lambda: len(shared.members[0].handed_out()) == 4, "it reads")
    pair = min(shared.partitions)
    thief = shared.zookeeper.transaction()
    path = shared.path(f"owners/{pair[0]}/{pair[1]}")
    thief.delete(path)
    thief.create(path, b"thief-0", ephemeral=True)
    assert [type(each) for each in thief.commit()] == [bool, str]
    stolen_ms = time.time() * 1000

    def stands_still() -> bool:
        """The producer continues: what comes after is known by its other partitions."""
        others = max(last_ms(shared, each) for each in shared.partitions - {pair})
        return others > max(stolen_ms, last_ms(shared, pair)) + 1000

    shared.await_(stands_still, "it reads the partition no more, and the others still")
    assert last_ms(shared, pair) - stolen_ms < RECHECK_SECONDS * 1000, "by the watch, not by the observation"
    shared.zookeeper.delete(path)
    shared.await_agreed()
    shared.await_all_read()
    assert shared.proof().summary["lost"][0] == 0


def last_ms(shared: Group, pair: tuple[str, int]) -> float:
    """Return when a record of that partition was delivered last."""
    return max(r["at_ms"] for m in shared.everyone for r in m.records() if (r["topic"], r["partition"]) == pair)


def test_a_broker_restarts_under_load(lab: Lab, group: MakeGroup) -> None:
    shared = group(8)
    shared.add_old(1)
    shared.add_python("ozkcc")
    shared.await_agreed()
    faults.stop(faults.broker(lab, 1))
    stopped_ms = time.time() * 1000
    faults.restart_broker(lab, 1)
    shared.await_record_after(stopped_ms)
    shared.await_agreed()
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)


def test_zookeeper_restarts_under_load(lab: Lab, group: MakeGroup) -> None:
    """Sessions outlive a short absence of the server; Python members is stalled while it is in doubt.

    An old consumer that comes back too late for its session is a stale owner meanwhile: only then records may overlap.
    """
    shared = group(8)
    (old,) = shared.add_old(1)
    shared.add_python("ozkcc")
    shared.await_agreed()
    faults.restart_zookeeper(lab)
    shared.await_record_after(time.time() * 1000)
    shared.await_agreed()
    shared.await_all_read()
    found = shared.summary()
    assert found["lost"] == 0
    assert set(shared.proof().unowned_consumption["consumer"]) <= {old.consumer_id}
    assert found["overlaps"] == 0 or len(shared.registered_ms(old)) > 1
