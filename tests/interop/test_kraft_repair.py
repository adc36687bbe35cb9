"""A move that somebody undid manually, and badly, repaired by plans; and the active controller moved by one.

One broker, three controllers, a producer. One controller runs alone first, so that KRaft's epoch is above
``/controller_epoch``. In dual write the active controller is moved. Then a hand stops the controllers, wipes them,
deletes ``/controller`` and nothing else, and stops the broker at once: a stale ``/migration``, an epoch too low, a
broker that hangs. Each is found, planned, approved, repaired and proven by itself. Then, with two brokers: one
that ignores the controller; partitions that nobody is elected for; and the bomb armed, with controllers that run and
have claimed ``/controller``. It is defused, and the move begins again. ``make soak``.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient

from kit.errors import NothingToDo, PlanError, UnsafePlan
from kit.kraft.move.problems import names_controller
from kit.kraft.status import broker_addresses
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected, json_at
from kit.lab.topics import QUIET
from tests.interop.kraft_scene import KraftScene
from tests.servers.awaiting import SECONDS
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(900), soak_only]
HANGS = "Notifying KRaft of controlled shutdown"
REPAIRS = ("repair /migration", "repair /controller_epoch", "repair brokers")


@dataclass
class Repairs(KraftScene):
    """``before``, ``after``: ZooKeeper's control znodes around each plan's run, by the plan's name."""

    before: dict[str, dict[str, str | None]] = field(default_factory=dict)
    after: dict[str, dict[str, str | None]] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    active: list[int | None] = field(default_factory=list)
    n_offline: list[int] = field(default_factory=list)
    was_hung: bool = False

    def run_plan(self, to: str) -> None:
        """Plan, approve, act in this process, and look again."""
        before = self.control()
        plan = self.carry_out(f"plan {len(self.plans)}", to)
        name = str(plan.parameters["to_phase"])
        self.before[name], self.after[name] = before, self.control()
        self.states.append(name)
        self.status(name)

    def control(self) -> dict[str, str | None]:
        with connected(self.lab.zookeeper_connect) as client:
            paths = ("/controller", "/controller_epoch", "/migration")
            return {path: client.get(path)[0].decode() if client.exists(path) else None for path in paths}


def dual_write(seen: Repairs) -> None:
    """With an epoch of KRaft that is above ``/controller_epoch``, and a topic whose state says so."""
    lab = seen.lab
    seen.refuse_plan("nothing", "repair", NothingToDo)
    seen.dump("before")
    faults.start_controller_alone(lab, 3001)
    lab.migration.reach("dual-write")
    seen.active.append(lab.migration.controlling())
    seen.run_plan("fail over")
    seen.active.append(lab.migration.controlling())
    lab.create_topic("born", 1)
    seen.refuse_plan("sound dual write", "repair", NothingToDo)


def take_back_badly(seen: Repairs) -> None:
    """Undo like a person who reads half of the guide: the broker is stopped too early, of the znodes
    ``/controller`` deleted.
    """
    lab, victim = seen.lab, faults.running(faults.broker(seen.lab, 1))
    end_controllers(lab)
    seen.refuse_plan("claim", "repair", UnsafePlan)
    victim.signal(signal.SIGTERM)
    wait_until(lambda: HANGS in victim.log.read_text(), "a request of the broker to KRaft", 30)
    with connected(lab.zookeeper_connect) as client:
        client.delete("/controller")
        wait_until(lambda: "brokerid" in json_at(client, "/controller"), "the broker's election", 30)
    lab.migration.phase = "zookeeper"


def end_controllers(lab: Lab) -> None:
    lab.migration.stop_controllers()
    for each in lab.migration.controllers:
        each.added = {}
        shutil.rmtree(lab.folder / each.name / "data", ignore_errors=True)


def repair(seen: Repairs) -> None:
    """Each by a plan of its own; the hung broker is the last."""
    seen.refuse_plan("with a bomb", "controllers", PlanError)
    for _ in REPAIRS[:-1]:
        seen.run_plan("repair")
    hung = faults.running(faults.broker(seen.lab, 1))
    seen.was_hung = hung.running
    hung.stop = partial(hung.stop, 5.0)  # The host's own limit, until it kills.
    seen.run_plan("repair")
    seen.refuse_plan("repaired", "repair", NothingToDo)


def arm_and_defuse(seen: Repairs) -> None:
    """Fresh controllers claim a cluster whose ``/migration`` is of others; the next election would delete topics."""
    lab = seen.lab
    with connected(lab.zookeeper_connect) as client:
        stale = {"kraft_controller_id": 3000, "kraft_controller_epoch": 90, "kraft_metadata_epoch": 90}
        client.create("/migration", json.dumps({"version": 0, "kraft_metadata_offset": 142, **stale}).encode())
        lab.migration.start_controllers()
        first, second = lab.migration.migrating
        lab.migration.roll_broker(first, "migration")
        lab.move_node("broker", second.broker_id, "restart", "migration")
        second.await_started()
        wait_until(lambda: client.get("/controller")[1].ephemeralOwner == 0, "the claim", 60)
    seen.run_plan("repair")
    seen.run_plan("repair")
    seen.refuse_plan("defused", "repair", NothingToDo)
    for phase in ("controllers", "dual write"):
        seen.run_plan(phase)
    seen.run_plan("zookeeper")


@pytest.fixture(scope="module")
def walk() -> Iterator[Repairs]:
    with Lab(brokers=1, controllers=3) as lab:
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=50)
        seen = Repairs(lab)
        for verb in (dual_write, take_back_badly, repair):
            verb(seen)
        seen.dump("after")
        producer.stop()
        seen.read_back("orders", 2)
        yield seen


def test_each_damage_has_a_plan_of_its_own_with_its_own_words(walk):
    assert walk.states == ["fail over", *REPAIRS]
    plans = [*walk.plans.values()]
    assert [plan.subject for plan in plans] == [f"{name} lab" for name in walk.states]
    assert [[step.kind for step in plan.steps] for plan in plans[1:]] == [
        ["repair ZooKeeper"],
        ["repair ZooKeeper"],
        ["roll brokers"],
    ]


def test_damage_that_is_left_for_another_plan_is_reported(walk):
    first = walk.plans["plan 1"]
    assert first.risks[0].startswith("/migration records a migration up to offset")
    assert [each.split(":")[0] for each in first.risks[1:]] == ["This plan does not repair"] * 2


def test_the_stale_migration_is_deleted_and_nothing_else(walk):
    before, after = walk.before["repair /migration"], walk.after["repair /migration"]
    assert json.loads(before["/migration"])["kraft_metadata_offset"] > 0
    assert (after["/migration"], after["/controller"]) == (None, before["/controller"])
    assert after["/controller_epoch"] == before["/controller_epoch"]


def test_the_epoch_is_raised_above_every_partition_and_a_broker_elected_again(walk):
    before, after = walk.before["repair /controller_epoch"], walk.after["repair /controller_epoch"]
    highest = walk.statuses["repair /controller_epoch"].read.control.max_state_epoch
    assert int(before["/controller_epoch"]) < highest
    assert int(after["/controller_epoch"]) > highest
    assert after["/controller"] != before["/controller"]


def test_a_broker_that_hangs_in_its_end_comes_back_in_zookeeper_mode(walk):
    assert walk.was_hung, "it was ordered to stop before the first repair, and ran still at the last"
    status = walk.statuses["repair brokers"]
    assert [each.mode for each in status.read.brokers] == ["zookeeper"]
    assert (status.state.phase, [each.severity for each in status.findings]) == ("zookeeper", [])


def test_a_cluster_without_damage_has_nothing_to_repair(walk):
    for name in ("nothing", "sound dual write", "repaired"):
        assert "has nothing to repair" in walk.refusals[name]


def test_a_claim_is_not_deleted_unless_a_person_vouches_for_the_disks(walk):
    assert "controllers_gone" in walk.refusals["claim"]
    assert "start the controllers, then offramp plan kraft --to zookeeper" in walk.refusals["claim"]


def test_nothing_begins_on_a_stale_migration(walk):
    assert "offramp plan kraft --repair" in walk.refusals["with a bomb"]


def test_no_topic_and_no_acknowledged_record_is_lost(walk, record_property):
    walk.report(record_property)
    born = {path for path in walk.dumps["after"] if path.startswith(("/brokers/topics/born", "/config/topics/born"))}
    assert set(walk.changed("before", "after")) <= born
    assert "/brokers/topics/born" in born
    assert walk.n_acknowledged > 500
    assert walk.lost == set()


def test_the_active_controller_is_moved(walk):
    first, second = walk.active
    assert first != second
    status = walk.statuses["fail over"]
    assert (status.state.phase, status.read.leader.node_id) == ("dual write", second)
    assert len([each for each in status.read.controllers if each.error is None]) == 3


@pytest.fixture(scope="module")
def trapped() -> Iterator[Repairs]:
    """Two brokers. One ignores the controller; after a badly made way back one dies, and nobody is elected; a bomb."""
    with Lab(brokers=2, controllers=1) as lab:
        seen = Repairs(lab)
        lab.create_topic("orders", 2, 2)
        producer = lab.start_producer("orders", rate=50)
        forget_epoch(seen)
        seen.run_plan("repair")
        seen.refuse_plan("followed again", "repair", NothingToDo)
        offline(seen)
        seen.n_offline.append(leaderless(lab))
        seen.run_plan("repair")
        seen.n_offline.append(leaderless(lab))
        lab.migration.roll_broker(
            next(each for each in lab.migration.migrating if not each.process.running), "zookeeper"
        )
        seen.run_plan("repair")
        seen.refuse_plan("repaired", "repair", NothingToDo)
        seen.dump("before")
        arm_and_defuse(seen)
        seen.dump("after")
        producer.stop()
        seen.read_back("orders", 2)
        yield seen


def forget_epoch(seen: Repairs) -> None:
    """``/controller_epoch`` deleted with ``/controller``, as KIP-866 says, and no partition's state shows."""
    lab = seen.lab
    for _ in range(4):
        before = elected_anew(lab, ["/controller"])
        await_followed(seen, before)
    while elected_anew(lab, ["/controller", "/controller_epoch"]) == before:
        await_followed(seen, before)
        before = elected_anew(lab, ["/controller"])
        await_followed(seen, before)


def await_followed(seen: Repairs, holder: int) -> None:
    """A claim that is deleted while a controller begins is taken by nobody: Kafka 3.9.1 misses the event."""
    with seen.connected() as cluster:
        brokers = broker_addresses(cluster)
        wait_until(lambda: names_controller(cluster, brokers, holder) is None, f"broker {holder} followed", SECONDS)


def offline(seen: Repairs) -> None:
    """KRaft's epoch is far above; undone without it, the broker that does not control is killed."""
    lab, servers = seen.lab, seen.lab.migration
    servers.start_controllers()
    servers.stop_controllers()
    state = lab.folder / "controller-3000" / "data" / "__cluster_metadata-0" / "quorum-state"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"leaderEpoch": 5000}))
    servers.start_controllers()
    servers.reach("dual-write")
    lab.create_topic("trapped", 4, 2)
    end_controllers(lab)
    holder = elected_anew(lab, ["/controller", "/migration"])
    faults.kill(next(each for each in servers.migrating if each.broker_id != holder))
    wait_until(lambda: leaderless(lab) > 0, "partitions without a leader", 60)


def leaderless(lab: Lab) -> int:
    admin = AdminClient({**QUIET, "bootstrap.servers": lab.bootstrap_servers})
    topics = admin.list_topics(timeout=20).topics
    return sum(each.leader < 0 for topic in topics.values() for each in topic.partitions.values())


def elected_anew(lab: Lab, paths: list[str]) -> int:
    """Return who holds ``/controller`` after these were deleted in one transaction."""
    with connected(lab.zookeeper_connect) as client:
        before = client.exists("/controller").czxid
        change = client.transaction()
        for path in paths:
            change.delete(path)
        assert not [each for each in change.commit() if isinstance(each, Exception)]
        wait_until(
            lambda: (found := client.exists("/controller")) is not None and found.czxid > before, "an election", 30
        )
        return json_at(client, "/controller")["brokerid"]


def test_a_controller_below_what_brokers_remember_is_followed_again(trapped):
    assert "ignores the controller" in trapped.plans["plan 0"].risks[0]
    assert "has nothing to repair" in trapped.refusals["followed again"]


def test_partitions_that_no_one_might_elect_a_leader_for_have_one_again(trapped):
    before, after = trapped.n_offline
    assert before > 0
    assert after == 0
    assert trapped.states[:3] == ["repair /controller_epoch", "repair /controller_epoch", "repair brokers"]


def test_controllers_that_claimed_with_a_stale_migration_are_stopped_before_they_write(trapped):
    (plan,) = [each for each in trapped.plans.values() if each.parameters["to_phase"] == "repair /controller"]
    assert [step.kind for step in plan.steps] == ["stop controllers", "repair ZooKeeper", "wipe controllers"]
    assert int(trapped.after["repair /controller"]["/controller_epoch"]) > 90
    assert trapped.states[-5:] == ["repair /controller", "repair brokers", "controllers", "dual write", "zookeeper"]
    assert trapped.statuses["zookeeper"].state.phase == "zookeeper"


def test_the_bomb_deleted_nothing(trapped, record_property):
    trapped.report(record_property)
    assert trapped.dumps["after"] == trapped.dumps["before"]
    assert "/brokers/topics/trapped" in trapped.dumps["after"]
    assert trapped.n_acknowledged > 1000
    assert trapped.lost == set()
