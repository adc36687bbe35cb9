"""The end of a move: asked for a soak, cut off at every item by kill -9 of our process and of nodes, and resumed.

Two brokers, three controllers, a producer with acks=all. Before: a controller that forgot its flag is an alarm, and no
plan finalises; without a history of looks none does either; with looks and a fail-over in them it is planned without an
override. Then our process is killed between items and in one, with it a broker and the active controller; one that is
resumed while they are down orders nothing. After: a broker that somebody takes back to migration mode is an alarm.
``make soak``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kit.errors import UnsafePlan
from kit.kraft import KraftStatus
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.kafka import Broker
from tests.interop.kraft_scene import KILLED, LeaderWatch, Scene
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

Which one that is nobody knows beforehand: the one that leads goes last, and each kill of a node elects anew.
"""


@dataclass
class Story:
    """``refused``: exit code and words of each plan or run that was refused; ``ordered``: what such a run ordered."""

    scene: Scene
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    ordered: dict[str, list[dict]] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    drift: str = ""
    plan: dict = field(default_factory=dict)
    run: str = ""
    n_acknowledged: int = 0
    lost: set[tuple[int, int]] | None = None

    def note(self, name: str) -> None:
        self.statuses[name] = self.scene.status()

    def alarms(self, name: str) -> list[tuple[str, str]]:
        return [(each.check_id, each.subject) for each in self.statuses[name].findings if each.severity == "alarm"]

    def refuse(self, name: str) -> None:
        ended = self.scene.offramp("plan", "kraft", "--to", "finalised")
        self.refused[name] = (ended.exit_code, ended.err)


def forget_a_flag(seen: Story) -> None:
    """Drift of one node's settings: it would end the migration as soon as it is elected."""
    lab = seen.scene.lab
    active = lab.migration.controlling()
    other = next(each for each in lab.migration.controllers if each.broker_id != active)
    faults.forget_flag(lab, other.broker_id)
    seen.note("flag forgotten")
    seen.drift = seen.scene.offramp("kraft", "watch", "--history", str(lab.folder / "drift"), "--count", "1").out
    seen.refuse("flag forgotten")
    lab.migration.restart_controller(other, has_flag=True)
    seen.scene.await_sound()
    seen.note("flag back")


def watch(seen: Story) -> None:
    """As long as is asked for, with a fail-over in it."""
    scene, looks = seen.scene, str(seen.scene.lab.folder / "looks")
    seen.refuse("no history")
    begun = time.monotonic()
    seen.watched = [scene.offramp("kraft", "watch", "--history", looks, "--count", "2", "--every", "1").exit_code]
    seen.refuse("too short")
    scene.go("--fail-over")
    while len(seen.watched) < 2 or time.monotonic() - begun < SOAK_S:
        seen.watched.append(
            scene.offramp("kraft", "watch", "--history", looks, "--count", "2", "--every", "1").exit_code
        )


def kill_nodes(seen: Story, turn: int) -> list[Broker]:
    """kill -9 of a broker and of the controller that leads, at once."""
    lab = seen.scene.lab
    leader = seen.scene.status().read.leader
    controllers = [each for each in lab.migration.controllers if leader and each.broker_id == leader.node_id]
    victims: list[Broker] = [lab.migration.migrating[turn % 2], *controllers]
    for each in victims:
        faults.kill(each)
    seen.killed += [each.name for each in victims]
    return victims


def finalise(seen: Story) -> None:
    scene = seen.scene
    seen.plan = scene.plan("finalised", override=False)
    (first, after_s), *rest = KILLS
    before = scene.run_ids()
    ended = scene.offramp("act", seen.plan["digest"][:8], kill_at=first, after_s=after_s)
    (seen.run,) = scene.run_ids() - before
    while ended.exit_code == KILLED:
        resume_while_nodes_are_down(seen)
        where, seconds = rest.pop(0) if rest else (NEXT_ITEM, 0.0)
        ended = scene.resume(seen.run, where, seconds)
    assert ended.exit_code == 0, ended.err
    seen.note("finalised")


def resume_while_nodes_are_down(seen: Story) -> None:
    """They come back as they were; what the run did meanwhile is kept."""
    scene, moment = seen.scene, f"nodes down {seen.scene.n_killed}"
    victims = kill_nodes(seen, scene.n_killed)
    n_events = len(scene.events(seen.run))
    ended = scene.resume(seen.run)
    seen.refused[moment] = (ended.exit_code, ended.err)
    seen.ordered[moment] = [each for each in scene.events(seen.run)[n_events:] if each["event"] == "attempted"]
    for each in victims:
        each.launch()
    for each in victims:
        each.await_started()
    scene.await_sound()


def take_a_broker_back(seen: Story) -> None:
    """Somebody gives the flag back, and a broker its old settings: Kafka takes it."""
    lab, first = seen.scene.lab, seen.scene.lab.migration.migrating[0]
    for each in lab.migration.controllers:
        lab.migration.restart_controller(each, has_flag=True)
    lab.move_node("broker", first.broker_id, "restart", "migration")
    first.await_started()

    def is_alarm() -> bool:
        seen.note("taken back")
        return len(seen.alarms("taken back")) == 2

    wait_until(is_alarm, "the alarms of a broker taken back", 60)
    lab.move_node("broker", first.broker_id, "restart", "kraft")
    first.await_started()
    seen.scene.await_sound()
    seen.note("forward again")


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with Lab(brokers=2, controllers=3) as lab:
        profile = lab.folder / "offramp.toml"
        soak = f'history_dir = "looks"\nsoak_hours = {SOAK_S / 3600}\n'
        text = lab.profile_toml()
        (kraft,) = [each for each in text.splitlines() if each.startswith("controllers = ")]
        profile.write_text(text.replace(kraft, f"{kraft}\n{soak}"))
        lab.create_topic("orders", PARTITIONS, 2)
        producer = lab.start_producer("orders", RATE)
        lab.migration.reach("kraft")
        seen = Story(Scene(lab, profile))
        leaders = LeaderWatch(seen.scene)
        leaders.start()
        for verb in (forget_a_flag, watch, finalise):
            verb(seen)
        leaders.end()
        producer.stop()
        seen.n_acknowledged, seen.lost = seen.scene.lost("orders", PARTITIONS)
        print(f"\nacknowledged {seen.n_acknowledged}, pauses {seen.scene.longest_pauses_ms()} ms")
        print(f"killed {seen.killed} and {seen.scene.n_killed} processes of ours; leaderless {seen.scene.offline}")
        take_a_broker_back(seen)
        yield seen


def test_a_controller_that_forgot_its_flag_is_an_alarm_and_stops_every_plan(story):
    ((check_id, subject),) = story.alarms("flag forgotten")
    assert (check_id, subject.split(":")[0]) == ("P01", "controller 127.0.0.1")
    assert "alarm P01: The controller at 127.0.0.1:" in story.drift
    code, told = story.refused["flag forgotten"]
    assert code == UnsafePlan.exit_code
    assert "no_contradiction: P01" in told
    assert story.alarms("flag back") == []


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("no history", "soak (unknown): there is no history of looks"),
        ("too short", "soak: KRaft mode was watched for 0.0"),
    ],
)
def test_without_a_soak_nothing_is_finalised(story, moment, told):
    code, said = story.refused[moment]
    assert code == UnsafePlan.exit_code
    assert told in said


def test_after_a_soak_nothing_has_to_be_overridden(story):
    assert set(story.watched) == {0}
    assert story.plan["overridden"] == {}
    assert story.plan["consent"]["second_person"]


def test_a_run_that_is_resumed_while_nodes_are_down_orders_nothing(story):
    """Whoever killed them has to bring them back first."""
    moments = [name for name in story.refused if name.startswith("nodes down")]
    assert len(moments) == story.scene.n_killed
    for name in moments:
        code, told = story.refused[name]
        assert code not in (0, KILLED), told
        assert "offramp resume" in told
        assert story.ordered[name] == []


def test_each_controller_was_ordered_once_and_the_end_is_the_end(story):
    events = story.scene.events(story.run)
    confirmed = [each["item"] for each in events if each["event"] == "acted" and each["outcome"] == "CONFIRMED"]
    assert len(set(confirmed)) == len(confirmed)
    status = story.statuses["finalised"]
    assert (status.state.phase, status.state.zk_state) == ("finalised", "POST_MIGRATION")
    assert {each.has_flag for each in status.read.controllers} == {False}
    assert story.alarms("finalised") == []


def test_no_acknowledged_record_is_lost(story):
    assert story.scene.n_killed >= 3
    assert len(story.killed) == 2 * story.scene.n_killed
    assert story.n_acknowledged > 5000
    assert story.lost == set()


def test_a_broker_that_is_taken_back_afterwards_is_an_alarm(story):
    assert {subject for _, subject in story.alarms("taken back")} == {"broker 1", "/brokers/ids"}
    assert story.alarms("forward again") == []
