"""Three brokers, three controllers, a producer and members: to KRaft and back by commands that are killed, nodes too.

The cluster has one of every kind of metadata: topics, settings, quotas, SCRAM users, ACLs, a token.
Every verb is a process of its own (``kraft_scene``). Runs are killed at their items and between them, and resumed; a
broker and the active controller are killed in a roll. In the end the cluster is finalised. ``make soak``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kit.errors import LabError, UnsafePlan
from kit.lab import Lab, faults
from kit.lab.entities import make_one_of_everything
from kit.lab.members.handles import Consumer
from kit.lab.members.new_consumers import PacedProducer
from kit.lab.process import wait_until
from tests.interop.kraft_scene import TRANSACTION, VERB_S, KraftScene, LeaderWatch
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(900), soak_only]
PARTITIONS = 6
RATE = 1500.0
FEWEST_RECORDS = 500_000
TOPIC = "load"


def kill_broker(scene: KraftScene, broker_id: int) -> None:
    """kill -9 of a broker that the roll has not ordered, and its start as it was."""
    victim = faults.broker(scene.lab, broker_id)
    faults.kill(victim)
    faults.await_gone(scene.lab, f"/brokers/ids/{broker_id}")
    victim.launch()


def forward_and_back(scene: KraftScene) -> None:
    """From dual write, our own process killed at every item of the way there and back."""
    scene.go_killed("controllers", ("attempted/01-start", 0.5), ("verified/01-start/ok", 0.0))
    scene.look("controllers")
    scene.go_killed(
        "dual write",
        ("attempted/01-roll-to-migration/*", 1.0),
        ("acted/01-roll-to-migration/*/CONFIRMED", 0.0),
        ("verified/01-roll-to-migration/ok", 0.0),
        ("attempted/02-roll-to-migration-last/*", 1.0),
    )
    scene.look("dual write")
    scene.go_killed(
        "zookeeper",
        ("verified/01-compare/ok", 0.0),
        ("attempted/02-stop-controllers", 0.3),
        ("verified/02-stop-controllers/ok", 0.0),
        (TRANSACTION, 0.0),
        ("attempted/04-roll-to-zookeeper/*", 1.0),
        ("acted/04-roll-to-zookeeper/*/CONFIRMED", 0.0),
        ("attempted/05-wipe", 0.0),
    )
    scene.look("back from dual write")


def kraft_and_back(scene: KraftScene) -> None:
    """A broker and the active controller are killed in the roll to KRaft mode; our process on the way back."""
    lab = scene.lab
    scene.go("controllers")
    scene.go("dual write")
    scene.refuse("old members", UnsafePlan, "plan", "kraft", "--to", "kraft")
    for old in lab.consumers("shop"):
        old.stop()
    _await_no_members(scene)
    killing = scene.meanwhile("acted/01-roll-to-kraft/broker 1/*", lambda: kill_broker(scene, 3))
    run, ended = scene.begin("kraft")
    killing.result(VERB_S)
    scene.await_sound()
    if ended.exit_code != 0:
        ended = scene.resume(run)
        assert ended.exit_code == 0, ended.stderr
    scene.look("kraft")
    assert scene.resume(run, verb="undo").exit_code == 0
    scene.look("undone")
    active = lab.migration.controlling()
    victim = faults.controller(lab, active)
    killing = scene.meanwhile("acted/01-roll-to-kraft/broker 2/*", lambda: faults.kill(victim))
    run, ended = scene.begin("kraft")
    killing.result(VERB_S)
    assert ended.exit_code != 0
    scene.refusals["controller killed"] = ended.stderr
    lab.migration.restart_controller(victim, has_flag=True)
    scene.await_sound()
    ended = scene.resume(run)
    assert ended.exit_code == 0, ended.stderr
    scene.look("kraft again")
    scene.go_killed(
        "zookeeper",
        ("attempted/01-roll-to-migration/*", 1.0),
        ("attempted/04-hand-back/*", 0.0),
        ("attempted/05-roll-to-zookeeper/*", 1.0),
    )
    scene.look("back from kraft")


def finalise(scene: KraftScene) -> None:
    for phase in ("controllers", "dual write", "kraft"):
        scene.go(phase)
    scene.go_killed("finalised", ("attempted/03-finalise/*", 1.0), ("acted/03-finalise/*/CONFIRMED", 0.0))
    scene.look("finalised")


def _await_no_members(scene: KraftScene) -> None:
    faults.await_gone(scene.lab, f"/consumers/shop/ids/{scene.lab.consumers('shop')[0].consumer_id}")


@pytest.fixture(scope="module")
def scene() -> Iterator[KraftScene]:
    with Lab(brokers=3, controllers=3) as lab:
        make_one_of_everything(lab.migration, secrets.token_hex(12))
        lab.create_topic(TOPIC, PARTITIONS, 3)
        producer = lab.start_producer(TOPIC, RATE)
        readers = [lab.start_new_consumer("readers", TOPIC) for _ in range(2)]
        lab.start_old_consumer("shop", TOPIC)
        seen = KraftScene(lab)
        watch = LeaderWatch(seen)
        watch.start()
        seen.look("before")
        forward_and_back(seen)
        kraft_and_back(seen)
        finalise(seen)
        watch.end()
        producer.stop()
        seen.read_back(TOPIC, PARTITIONS)
        seen.noted = {"unread": unread(producer, readers), "pauses": seen.longest_pauses_ms(), "n_looks": watch.n_looks}
        yield seen


def unread(producer: PacedProducer, members: list[Consumer]) -> set[tuple[int, int]]:
    """Partition and offset of each acknowledged record that no member has read in time.

    What was sent again is acknowledged without its offset: it is among the lost, if it is.
    """
    acknowledged = {(row["partition"], row["offset"]) for row in producer.acknowledged() if row["offset"] is not None}

    def missing() -> set[tuple[int, int]]:
        return acknowledged - {(row["partition"], row["offset"]) for each in members for row in each.records()}

    with suppress(LabError):
        wait_until(lambda: not missing(), "the members to read all", 120)
    return missing()


def test_no_acknowledged_record_is_lost(scene, record_property):
    scene.report(record_property, f"{scene.n_killed} of {len(scene.ended)} processes of ours killed")
    assert scene.n_acknowledged > FEWEST_RECORDS
    assert scene.lost == set()
    assert scene.noted["unread"] == set()


def test_no_partition_is_offline_longer_than_a_restart(scene):
    """Every partition has three replicas: none is without a leader, but where a node was killed."""
    assert scene.noted["n_looks"] > 1000
    assert max((seconds for each in scene.offline.values() for seconds in each), default=0.0) < 20.0
    assert len(scene.noted["pauses"]) == PARTITIONS
    assert max(scene.noted["pauses"]) < 60_000


def test_each_run_ends_in_its_phase_however_often_it_was_killed(scene):
    assert scene.phases == {
        "before": "zookeeper",
        "controllers": "controllers",
        "dual write": "dual write",
        "back from dual write": "zookeeper",
        "kraft": "kraft",
        "undone": "dual write",
        "kraft again": "kraft",
        "back from kraft": "zookeeper",
        "finalised": "finalised",
    }


KINDS = ("topics", "brokers", "users", "clients", "ips")


def test_zookeeper_had_every_kind_of_metadata(scene):
    before = scene.dumps["before"]
    folders = [f"/config/{kind}/" for kind in KINDS] + ["/brokers/topics/", "/kafka-acl/", "/kafka-acl-extended/"]
    for folder in [*folders, "/delegation_token/tokens/"]:
        assert any(path.startswith(folder) for path in before), folder


@pytest.mark.parametrize("back", ["back from dual write", "back from kraft"])
def test_after_a_rollback_zookeeper_is_as_before_but_for_leaders_and_epochs(scene, back):
    assert scene.changed("before", back) == {}
    assert scene.serious(back) == []


def test_the_transaction_is_made_once(scene):
    """Killed after it, and before it: no second one, and no half of one."""
    for run in scene.run_ids():
        acted = [it for it in scene.events(run) if (it["event"], it["item"]) == ("acted", "control of the cluster")]
        assert [it["outcome"] for it in acted if it["outcome"] == "CONFIRMED"] in ([], ["CONFIRMED"])


def test_old_members_are_named_before_they_would_find_no_broker(scene):
    assert "shop (1)" in scene.refusals["old members"]
    assert "offramp plan group shop --to 'all KC'" in scene.refusals["old members"]


def test_a_run_reports_which_node_is_missing(scene):
    assert "controller 300" in scene.refusals["controller killed"]
    assert "offramp resume" in scene.refusals["controller killed"]
