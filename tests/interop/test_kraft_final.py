"""The end of a move: asked for a soak, cut off at every item by kill -9 of our process and of nodes, and resumed.

Two brokers, three controllers, a producer with acks=all. Before: a controller that forgot its flag is an alarm, and no
plan finalises; without a history of observations none does either; with looks and a fail-over in them it is planned
without an override. Then our process is killed between items and in one, with it a broker and the active controller;
one that is resumed while they are down orders nothing. After: a broker that somebody undoes to migration mode is an
alarm.
``make soak``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kit.errors import UnsafePlan
from kit.lab import Lab, faults
from kit.lab.servers.kafka import Broker
from tests.interop.kraft_scene import KILLED, KraftScene, LeaderWatch
from tests.soak import soak_only

pytestmark = [
    soak_only,
    pytest.mark.timeout(1200),
]
PARTITIONS, RATE = 4, 200.0
SOAK_S = 20.0
NEXT_ITEM = "acted/03-finalise/*/CONFIRMED"
KILLS = ((NEXT_ITEM, 0.0), ("attempted/03-finalise/*", 0.3))
"""After the first controller; in the second's order; from then on after each, until nothing is left.

Which one that is nobody knows beforehand: the one that leads goes last, and each kill of a node elects again.
"""


def alarms(scene: KraftScene, moment: str) -> list[tuple[str, str]]:
    return [(each.check_id, each.subject) for each in scene.statuses[moment].findings if each.severity == "alarm"]


def refuse(scene: KraftScene, moment: str) -> None:
    scene.refuse(moment, UnsafePlan, "plan", "kraft", "--to", "finalised")


def forget_a_flag(scene: KraftScene) -> None:
    """Drift of one node's settings: it would end the migration as soon as it is elected."""
    lab = scene.lab
    active = lab.migration.controlling()
    other = next(each for each in lab.migration.controllers if each.broker_id != active)
    faults.forget_flag(lab, other.broker_id)
    scene.await_status("flag forgotten", lambda _: alarms(scene, "flag forgotten"), "the alarm of a flag forgotten")
    drift = scene.offramp("kraft", "watch", "--history", str(lab.folder / "drift"), "--count", "1")
    scene.noted["drift"] = drift.stdout
    refuse(scene, "flag forgotten")
    lab.migration.restart_controller(other, has_flag=True)
    scene.await_sound()
    scene.await_status("flag back", lambda _: not alarms(scene, "flag back"), "the end of the alarm")


def watch(scene: KraftScene) -> None:
    """Watch for as long as is asked for, with a fail-over in it."""
    words = ("kraft", "watch", "--history", str(scene.lab.folder / "looks"), "--count", "2", "--every", "1")
    refuse(scene, "no history")
    begun = time.monotonic()
    watched = [scene.offramp(*words).exit_code]
    refuse(scene, "too short")
    scene.go("--fail-over")
    while len(watched) < 2 or time.monotonic() - begun < SOAK_S:
        watched.append(scene.offramp(*words).exit_code)
    scene.noted["watched"] = watched


def kill_nodes(scene: KraftScene, turn: int) -> list[Broker]:
    """kill -9 of a broker and of the controller that leads, at once."""
    lab = scene.lab
    status = scene.await_status("leader", lambda status: status.read.leader, "a controller that leads")
    leads = status.read.leader.node_id
    victims = [lab.migration.migrating[turn % 2], faults.controller(lab, leads)]
    for each in victims:
        faults.kill(each)
    scene.noted["killed"] += [each.name for each in victims]
    return victims


def finalise(scene: KraftScene) -> None:
    plan = scene.plan("finalised", override=False)
    (first, after_s), *rest = KILLS
    run, ended = scene.act(plan["digest"], first, after_s)
    scene.noted |= {"plan": plan, "run": run}
    while ended.exit_code == KILLED:
        resume_while_nodes_are_down(scene, run)
        where, seconds = rest.pop(0) if rest else (NEXT_ITEM, 0.0)
        ended = scene.resume(run, where, seconds)
    assert ended.exit_code == 0, ended.stderr
    scene.status("finalised")


def resume_while_nodes_are_down(scene: KraftScene, run: str) -> None:
    """They come back as they were; what the run did meanwhile is kept."""
    victims = kill_nodes(scene, scene.n_killed)
    n_events = len(scene.events(run))
    ended = scene.resume(run)
    ordered = [each for each in scene.events(run)[n_events:] if each["event"] == "attempted"]
    scene.noted["nodes down"].append((ended, ordered))
    for each in victims:
        each.launch()
    for each in victims:
        each.await_started()
    scene.await_sound()


def take_a_broker_back(scene: KraftScene) -> None:
    """Somebody gives the flag back, and a broker its old settings: Kafka takes it."""
    lab, first = scene.lab, scene.lab.migration.migrating[0]
    for each in lab.migration.controllers:
        lab.migration.restart_controller(each, has_flag=True)
    lab.move_node("broker", first.broker_id, "restart", "migration")
    first.await_started()
    scene.await_status("undone", lambda _: len(alarms(scene, "undone")) == 2, "the alarms of a broker undone")
    lab.move_node("broker", first.broker_id, "restart", "kraft")
    first.await_started()
    scene.await_sound()
    scene.await_status("forward again", lambda _: not alarms(scene, "forward again"), "the end of the alarms")


@pytest.fixture(scope="module")
def scene() -> Iterator[KraftScene]:
    with Lab(brokers=2, controllers=3) as lab:
        lab.create_topic("orders", PARTITIONS, 2)
        producer = lab.start_producer("orders", RATE)
        lab.migration.reach("kraft")
        seen = KraftScene(lab, noted={"killed": [], "nodes down": []})
        text = seen.file.read_text()
        (kraft,) = [each for each in text.splitlines() if each.startswith("controllers = ")]
        soak = f'history_dir = "looks"\nsoak_hours = {SOAK_S / 3600}\n'
        seen.file.write_text(text.replace(kraft, f"{kraft}\n{soak}"))
        leaders = LeaderWatch(seen)
        leaders.start()
        for verb in (forget_a_flag, watch, finalise):
            verb(seen)
        leaders.end()
        producer.stop()
        seen.read_back("orders", PARTITIONS)
        take_a_broker_back(seen)
        yield seen


def test_a_controller_that_forgot_its_flag_is_an_alarm_and_stops_every_plan(scene):
    ((check_id, subject),) = alarms(scene, "flag forgotten")
    assert (check_id, subject.split(":")[0]) == ("P01", "controller 127.0.0.1")
    assert "alarm P01: The controller at 127.0.0.1:" in scene.noted["drift"]
    assert "no_contradiction: P01" in scene.refusals["flag forgotten"]
    assert alarms(scene, "flag back") == []


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("no history", "soak (unknown): there is no history of observations"),
        ("too short", "soak: KRaft mode was watched for 0.0"),
    ],
)
def test_without_a_soak_nothing_is_finalised(scene, moment, told):
    assert told in scene.refusals[moment]


def test_after_a_soak_nothing_has_to_be_overridden(scene):
    assert set(scene.noted["watched"]) == {0}
    assert scene.noted["plan"]["overridden"] == {}
    assert scene.noted["plan"]["consent"]["second_person"]


def test_a_run_that_is_resumed_while_nodes_are_down_orders_nothing(scene):
    """Whoever killed them has to bring them back first."""
    assert len(scene.noted["nodes down"]) == scene.n_killed
    for ended, ordered in scene.noted["nodes down"]:
        assert ended.exit_code not in (0, KILLED), ended.stderr
        assert "offramp resume" in ended.stderr
        assert ordered == []


def test_each_controller_was_ordered_once_and_the_end_is_the_end(scene):
    events = scene.events(scene.noted["run"])
    confirmed = [each["item"] for each in events if each["event"] == "acted" and each["outcome"] == "CONFIRMED"]
    assert len(set(confirmed)) == len(confirmed)
    status = scene.statuses["finalised"]
    assert (status.state.phase, status.state.zk_state) == ("finalised", "POST_MIGRATION")
    assert {each.has_flag for each in status.read.controllers} == {False}
    assert alarms(scene, "finalised") == []


def test_no_acknowledged_record_is_lost(scene, record_property):
    scene.report(record_property, f"{len(scene.noted['killed'])} nodes and {scene.n_killed} processes of ours killed")
    assert scene.n_killed >= 3
    assert len(scene.noted["killed"]) == 2 * scene.n_killed
    assert scene.n_acknowledged > 5000
    assert scene.lost == set()


def test_a_broker_that_is_set_back_afterwards_is_an_alarm(scene):
    assert {subject for _, subject in alarms(scene, "undone")} == {"broker 1", "/brokers/ids"}
    assert alarms(scene, "forward again") == []
