"""Three brokers and three controllers in dual write: changes, faults and findings; and a diff that is never wrong.

A part of ``make soak``: six nodes take five minutes of two cores before the first test; the workload half an hour.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import polars as pl
import pytest
from confluent_kafka import ElectionType
from confluent_kafka.admin import ConfigResource
from kazoo.exceptions import NodeExistsError, NoNodeError

from kit.errors import ConnectError, LabError
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.metadata_log import Controllers, read_log
from kit.lab import Lab, faults
from kit.lab.entities import alter_config, await_reassigned, done, reassign, set_quotas
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from tests.servers.checkpoints import Checkpoint, checkpoints
from tests.servers.kraft_changes import Changes
from tests.servers.kraft_kinds import set_metrics
from tests.servers.kraft_walk import (
    LEFT_OVER,
    NO_CHECKPOINT,
    KraftWalk,
    await_a_leader_named_alone,
    set_checkpoint,
    stands_still,
)
from tests.soak import report, soak_only

WORKLOAD_S = 1800.0
CATCH_UP_S = 300.0
"""A controller tries a write to ZooKeeper that failed again after a minute at most."""
STANDS_S = 120.0
"""Dual write that has not gone on after so long is stalled."""

pytestmark = [
    pytest.mark.timeout(WORKLOAD_S + 600),
    soak_only,
]


@dataclass
class DualWriteWalk(KraftWalk):
    under_load: list[MetadataDiff] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    damaged: list[Checkpoint] = field(default_factory=list)
    remade: set[str] = field(default_factory=set)
    """Topics of which the log holds two ids."""
    n_changes: int = 0
    """Changes of the cluster under load."""
    lost: str = ""
    """The partition whose state was deleted."""
    mended: list[str] = field(default_factory=list)
    """Partitions that got a state znode manually, so that dual write continued."""
    stood: Counter[str] = field(default_factory=Counter)
    """The causes that diffs named while it did."""

    def checkpoints_so_far(self) -> list[Checkpoint]:
        """Read from the files of the running servers."""
        log = read_log(Controllers(self.lab.migration.controller_addresses))
        bodies = log.records.filter(pl.col("name") == "Topic")["body"]
        made = Counter(json.loads(each)["name"] for each in bodies)
        self.remade |= {name for name, times in made.items() if times > 1}
        return list(checkpoints(self.lab.folder / "zookeeper" / "data", log))

    def lost_by_elections(self, checkpoint: Checkpoint) -> set[tuple[str, ...]]:
        """Return what ZooKeeper lacked of topics whose name another one had before."""
        missing = {key for key, (held, _) in checkpoint.early.items() if held is None}
        return {key for key in missing if key[0] in ("topic", "partition") and key[1] in self.remade}


@pytest.fixture(scope="module")
def walk() -> Iterator[DualWriteWalk]:
    with Lab(brokers=3, controllers=3) as lab:
        seen = DualWriteWalk(lab)
        lab.create_topics({"orders": 4, "moved": 2}, 3)
        set_quotas(lab.migration, {(("client-id", f"app {n}"),): {"consumer_byte_rate": 10.0} for n in range(6)})
        before_dual_write(seen)
        lab.migration.reach("dual-write")
        seen.status("dual write")
        seen.diff("copied")
        change_replicas(seen)
        lose_a_state(seen)
        under_load(seen)
        seen.checkpoints = seen.checkpoints_so_far()
        damage(seen)
        stop_dual_write(seen)
        finalise_by_accident(seen)
        yield seen


def before_dual_write(seen: DualWriteWalk) -> None:
    """One controller alone first; a ``/migration`` of another operator or tool; a flag forgotten."""
    lab, servers = seen.lab, seen.lab.migration
    faults.start_controller_alone(lab, 3001)
    servers.start_controllers()

    leader = await_a_leader_named_alone(seen)
    set_checkpoint(lab, b"")
    seen.status("null checkpoint")
    set_checkpoint(lab, json.dumps(LEFT_OVER).encode())
    seen.status("left-over checkpoint")
    set_checkpoint(lab, json.dumps(NO_CHECKPOINT).encode())
    follower = next(each for each in servers.controllers if each.broker_id != leader.node_id)
    faults.forget_flag(lab, follower.broker_id)
    seen.status("flags differ")
    servers.restart_controller(follower, has_flag=True)


def change_replicas(seen: DualWriteWalk) -> None:
    """Reassignments, a killed broker, its return, an election of the preferred leaders: a diff after each."""
    lab, servers = seen.lab, seen.lab.migration
    reassign(servers, {("moved", 0): [3, 1], ("moved", 1): [2]})
    await_reassigned(servers)
    seen.diff("reassigned")
    victim = servers.migrating[1]
    faults.kill(victim)
    with connected(lab.zookeeper_connect) as client:
        path = "/brokers/topics/orders/partitions/0/state"
        wait_until(lambda: 2 not in json.loads(client.get(path)[0])["isr"], "an ISR without broker 2", 60)
    seen.diff("broker killed")
    servers.roll_broker(victim, victim.mode)
    seen.diff("broker back")
    lab.admin.elect_leaders(ElectionType.PREFERRED).result(30)
    seen.diff("elected")


def lose_a_state(seen: DualWriteWalk) -> None:
    """A partition without a state znode, as a controller leaves it that is killed while it adds one; an election."""
    lab, servers = seen.lab, seen.lab.migration
    with connected(lab.zookeeper_connect) as client:
        paths = [f"/brokers/topics/orders/partitions/{number}" for number in range(4)]
        changed = [path for path in paths if json.loads(client.get(f"{path}/state")[0])["leader_epoch"] > 0]
        client.delete(changed[0], recursive=True)
    seen.lost = f"orders-{changed[0][-1]}"
    active = faults.controller(lab, servers.controlling() or 0)
    faults.kill(active)

    seen.await_status("no state", stands_still, "the finding of a dual write that is stalled")
    make_states(seen, seen.diff("no state", settle_s=1))
    servers.await_fail_over(active.broker_id, CATCH_UP_S)
    servers.restart_controller(active, has_flag=True)
    seen.diff("state made")


def under_load(seen: DualWriteWalk) -> None:
    """Changes of every kind, ZooKeeper delayed by 0 to 5 s, controllers killed: a diff after the other.

    Partitions are added and topics made again all the time, so sooner or later Kafka's faults with them stop dual
    write: it is repaired as docs/kraft.md says.
    """
    dice, ends = random.Random(1), time.monotonic() + WORKLOAD_S
    with Changes(seen.lab) as changes, ThreadPoolExecutor(1) as pool:
        trouble = pool.submit(make_trouble, seen, ends)
        while not trouble.done():
            with contextlib.suppress(ConnectError):  # During an election no controller has the log.
                seen.under_load.append(seen.diff("under load", settle_s=dice.choice([2.0, 8.0, 15.0])))
                seen.status("under load")
                if stands_still(seen.statuses["under load"]):
                    seen.stood.update(set(seen.under_load[-1].differences["cause"].drop_nulls()))
                    make_states(seen, seen.under_load[-1])
        trouble.result()
    assert min(changes.made.values()) > 0, changes

    def has_caught_up() -> bool:
        return not set(seen.diff("after the load").differences["verdict"]) & {"in_flight", "unknown"}

    wait_until(has_caught_up, "ZooKeeper with all that was changed under load", CATCH_UP_S)
    seen.n_changes = sum(changes.made.values())


def make_states(seen: DualWriteWalk, found: MetadataDiff) -> None:
    """Follow docs/kraft.md for partitions without a state znode."""
    stateless = found.differences.filter(pl.col("cause") == "no_state")
    with connected(seen.lab.zookeeper_connect) as client:
        for topic, number, wanted in stateless.select("entity", "item", "kraft_value").iter_rows():
            replicas = [int(each) for each in wanted.split(" ")[0].split(",")]
            state = {"controller_epoch": 0, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
            path = f"/brokers/topics/{topic}/partitions/{number}"
            with contextlib.suppress(NodeExistsError, NoNodeError):
                client.create(path)
            with contextlib.suppress(NodeExistsError, NoNodeError):  # It came meanwhile, or its topic went.
                client.create(f"{path}/state", json.dumps(state).encode())
                seen.mended.append(f"{topic}-{number}")


def make_trouble(seen: DualWriteWalk, ends: float) -> None:
    """In turn: what the controllers send to ZooKeeper comes later; the active controller is killed."""
    dice, pause, lab = random.Random(2), threading.Event(), seen.lab
    while time.monotonic() < ends:
        for _ in range(3):
            faults.delay_controllers_to_zookeeper(lab, dice.uniform(0, 5))
            pause.wait(dice.uniform(3, 6))
            faults.delay_controllers_to_zookeeper(lab, 0)
            pause.wait(dice.uniform(1, 6))
        # After a topic was made again, the second restart helps.
        if not any(fails_over(lab, STANDS_S) for _ in range(2)):
            assert fails_over(lab, CATCH_UP_S), "dual write is stalled after two more elections"


def fails_over(lab: Lab, seconds: float) -> bool:
    """Return whether dual write continues by another controller, after the active one was killed; it comes back."""
    servers = lab.migration
    active = faults.controller(lab, servers.controlling() or 0)
    faults.kill(active)
    try:
        servers.await_fail_over(active.broker_id, seconds)
    except LabError:
        return False
    finally:
        servers.restart_controller(active, has_flag=True)
    return True


def damage(seen: DualWriteWalk) -> None:
    """Kafka's fault with the last quota, what else it leaves unwritten, and edits manually; an election heals.

    A controller that was restarted since a topic was deleted brings its settings back when it is elected.
    """
    lab, servers = seen.lab, seen.lab.migration
    lab.create_topic("gone", 1)
    alter_config(lab.admin, ConfigResource.Type.TOPIC, "gone", {"retention.ms": "77777"})
    done(lab.admin.delete_topics(["gone"]), "topic")
    quotas = {(("client-id", f"app {n}"),): {"consumer_byte_rate": 20.0} for n in range(1, 6)}
    set_quotas(servers, {(("client-id", "app 0"),): {"consumer_byte_rate": None}} | quotas)
    with connected(lab.zookeeper_connect) as client:
        client.set("/config/topics/orders", b'{"version":1,"config":{"retention.ms":"7"}}')
        path = "/brokers/topics/moved/partitions/1/state"
        client.set(path, json.dumps(json.loads(client.get(path)[0]) | {"isr": [1, 2]}).encode())
    seen.diff("damaged")
    seen.damaged = seen.checkpoints_so_far()
    for each in servers.controllers:
        if each.broker_id != servers.controlling():
            servers.restart_controller(each, has_flag=True)
    servers.restart_controller(faults.kill_active_controller(lab), has_flag=True)
    seen.diff("healed")


def stop_dual_write(seen: DualWriteWalk) -> None:
    """A client-metrics setting; after the next election dual write is stalled, until the setting is gone."""
    lab, servers = seen.lab, seen.lab.migration
    set_metrics(lab, "1000")
    seen.diff("client metrics")
    active = faults.controller(lab, servers.controlling() or 0)
    faults.kill(active)
    wait_until(lambda: servers.controlling() != active.broker_id, "another controller", 60)
    alter_config(lab.admin, ConfigResource.Type.TOPIC, "orders", {"segment.ms": "123456"})
    seen.diff("stuck", settle_s=1)

    seen.await_status("stuck", stands_still, "the finding of a dual write that is stalled")
    set_metrics(lab, None)
    servers.await_fail_over(active.broker_id)
    seen.diff("unstuck")


def finalise_by_accident(seen: DualWriteWalk) -> None:
    """One controller without its flag; ``/migration`` deleted; all controllers dead; all back without the flag."""
    lab, servers = seen.lab, seen.lab.migration
    stopped = next(each for each in servers.controllers if each.process is None or not each.process.running)
    faults.forget_flag(lab, stopped.broker_id)
    seen.status("a flag forgotten")
    with connected(lab.zookeeper_connect) as client:
        client.delete("/migration")
    seen.status("no checkpoint")
    for each in servers.controllers:
        faults.kill(each)
    seen.status("controllers dead")
    for each in servers.controllers:
        faults.forget_flag(lab, each.broker_id)

    seen.await_status(
        "finalised too early", lambda status: status.state.phase == "finalised", "the end of the migration"
    )


SOUND = [
    "copied", "reassigned", "broker killed", "broker back", "elected", "after the load", "healed", "client metrics",
    "unstuck",
]  # fmt: skip
SINCE_HEALED = ("healed", "client metrics", "unstuck")
COME_BACK = {("topics/gone", "retention.ms", "deleted_topic")}
"""The settings that a restarted controller writes to ZooKeeper when it is elected, and that no one removes
(docs/kraft.md).
"""


@pytest.mark.parametrize("moment", SOUND)
def test_both_stores_hold_the_same(walk, moment):
    found = walk.diffs[moment]
    rows = found.of("diverged", "in_flight", "unknown").select("entity", "item", "cause").rows()
    assert set(rows) <= (COME_BACK if moment in SINCE_HEALED else set()), rows
    assert len(found.of("equal").filter(pl.col("kind") == "partition")) >= 6


@pytest.mark.parametrize(
    ("moment", "partition", "part"),
    [
        ("reassigned", ("moved", "0"), "3,1 isr 1,3 "),
        ("reassigned", ("moved", "1"), "2 isr 2 "),
        ("broker killed", ("orders", "0"), " isr 1,3 "),
        ("broker back", ("orders", "0"), " isr 1,2,3 "),
    ],
)
def test_replicas_are_compared_as_they_change(walk, moment, partition, part):
    rows = walk.diffs[moment].of("equal").filter(pl.col("kind") == "partition")
    (row,) = rows.filter(pl.col("entity") == partition[0], pl.col("item") == partition[1]).to_dicts()
    assert part in row["kraft_value"]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("null checkpoint", ("Z02", "block")),
        ("left-over checkpoint", ("Z02", "block")),
        ("one controller named", ("L01", "warn")),
        ("flags differ", ("L01", "block")),
        ("dual write", ("Z16", "warn")),
        ("stuck", ("P02", "alarm")),
        ("a flag forgotten", ("P01", "alarm")),
        ("no checkpoint", ("P01", "alarm")),
        ("controllers dead", ("Z03", "block")),
        ("finalised too early", ("P01", "alarm")),
    ],
)
def test_each_fault_raises_its_finding(walk, moment, expected):
    assert expected in walk.found(moment)


def test_an_alarm_reports_which_node_or_znode(walk):
    def subjects(moment: str) -> set[str]:
        return {each.subject for each in walk.statuses[moment].findings if each.check_id == "P01"}

    assert any(each.startswith("controller 127.0.0.1:") for each in subjects("a flag forgotten"))
    assert "/migration" in subjects("no checkpoint")
    assert subjects("finalised too early") == {"brokers 1, 2 and 3", "/brokers/ids"}


def test_a_sound_cluster_raises_neither_alarm_nor_block(walk):
    for moment in ("controllers", "dual write"):
        assert {severity for _, severity in walk.found(moment)} <= {"warn"}


def test_nothing_is_called_diverged_while_everything_changes(walk, record_property):
    n_rows = sum(len(each.differences) for each in walk.under_load)
    report(record_property, f"{walk.n_changes:,} changes under load; {len(walk.under_load)} diffs of {n_rows:,} rows")
    wrong = [
        each.of("diverged").filter(pl.col("cause").ne_missing("made_again")).to_dicts() for each in walk.under_load
    ]
    assert wrong == [[]] * len(wrong)
    assert len(wrong) >= WORKLOAD_S / 6, "a diff in six seconds, where 50 a minute were made"


def test_the_checkpoint_moves_only_after_the_writes_of_its_changes(walk):
    """And no later ones: at every move ZooKeeper held exactly what KRaft had at that offset.

    But for the first, which the copy itself sets: what changed meanwhile follows; and for topics that were made again,
    which a controller deletes in ZooKeeper when it is elected (``test_kraft_made_again.py``).
    """
    moved = walk.checkpoints[1:]
    assert sum(each.n_changed for each in moved) > WORKLOAD_S / 4, "where 150 a minute were seen"
    assert [each for each in moved if set(each.early) - walk.lost_by_elections(each)] == []
    assert [each for each in walk.damaged if each.early], "an edit manually is seen, so a late write would be"


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (("quota", "clients/app%200", "consumer_byte_rate"), "last_quota"),
        (("config", "topics/orders", "retention.ms"), "hand_edit"),
        (("partition", "moved", "1"), "hand_edit"),
    ],
)
def test_a_diverged_value_has_its_cause(walk, key, cause):
    rows = walk.diffs["damaged"].of("diverged").select("kind", "entity", "item", "cause").rows()
    assert (*key, cause) in rows


def test_a_partition_without_its_state_znode_is_named_and_the_remedy_heals(walk):
    rows = walk.diffs["no state"].differences.filter(pl.col("cause") == "no_state").select("entity", "item").rows()
    assert [f"{topic}-{number}" for topic, number in rows] == [walk.lost]
    assert walk.mended[0] == walk.lost
    verdicts = walk.diffs["state made"].differences.filter(pl.col("kind") == "partition")["verdict"]
    assert set(verdicts) == {"equal"}


def test_settings_of_a_deleted_topic_come_back_with_a_restarted_controller(walk):
    found = walk.diffs["healed"].of("diverged").filter(pl.col("kind") == "config")
    rows = found.select("entity", "item", "zookeeper_value", "kraft_value", "cause").rows()
    assert rows == [("topics/gone", "retention.ms", "77777", None, "deleted_topic")]


def test_values_that_kafka_leaves_unwritten_behind_its_fault_are_failed_writes(walk):
    rows = walk.diffs["damaged"].of("diverged").filter(pl.col("cause") == "failed_write")
    assert set(rows["entity"]) <= {f"clients/app%20{n}" for n in range(1, 6)}
    assert set(rows.select("zookeeper_value", "kraft_value").rows()) == {("10", "20")}


def test_client_metrics_are_named_before_and_while_they_stop_dual_write(walk):
    named = walk.diffs["client metrics"].differences.filter(pl.col("cause") == "client_metrics")
    assert named.select("entity", "verdict").rows() == [("client-metrics/watchers", "expected")]
    waiting = walk.diffs["stuck"].of("in_flight").filter(pl.col("entity") == "topics/orders")
    assert set(waiting["cause"]) == {"client_metrics"}
    assert walk.diffs["stuck"].of("diverged").is_empty()
