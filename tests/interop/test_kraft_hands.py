"""What people do beside a move to KRaft: an operator who is killed and acts anew, a broker that is gone for good.

Two brokers, one controller; each verb is a process of its own. The deployer begins late, and outlives its operator.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

import widgets
from kit.errors import LabError, NothingToDo, TargetBusy, UnsafePlan
from kit.kraft import KraftStatus
from kit.lab import Lab, faults
from kit.lab.entities import await_reassigned, reassign
from kit.lab.process import wait_until
from kit.profile import load_profile
from tests.interop.kraft_scene import KILLED, LOCK_S, Ended, Scene
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(900)]
SLOW_S = 35.0
"""Longer than it takes until the lock of a killed process is gone and the next one is at its first order."""
GONE = 2


@dataclass
class Orders:
    """What brokers were ordered to do; the next order is begun late."""

    move: Callable[[str, int, str, str], str]
    slow_s: float = 0.0
    given: list[tuple[int, str]] = field(default_factory=list)

    def __call__(self, role: str, node: int, action: str, mode: str) -> str:
        if role == "broker":
            self.given.append((node, action))
            slow_s, self.slow_s = self.slow_s, 0.0
            time.sleep(slow_s)  # What is tried is an order that comes late; nothing is waited for.
        return self.move(role, node, action, mode)


@dataclass
class Story:
    scene: Scene
    orders: Orders
    run: str = ""
    ordered: list[int] = field(default_factory=list)
    events: list[dict] = field(default_factory=list)
    refused: dict[str, Ended] = field(default_factory=dict)
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    goals: tuple[str, ...] = ()


def lose_a_broker_before_the_copy(story: Story) -> None:
    """The first of the roll registers and dies. Its registration is ended in the wizard; then it comes back."""
    scene, lab = story.scene, story.scene.lab
    lab.move_node("broker", GONE, "restart", "migration")
    wait_until(lambda: GONE in registered(scene.status()), "it is registered", 60)
    faults.kill(faults.broker(lab, GONE))
    wait_until(lambda: GONE not in brokers_in_zookeeper(scene.status()), "its session ends", 60)
    story.statuses["waiting"] = scene.status()
    refuse(story, "forward before the copy", "--to", "dual write")
    refuse(story, "back before the copy", "--to", "zookeeper")
    refuse(story, "it has replicas before the copy", "--unregister", str(GONE))
    place(lab, 1)
    move = widgets.open_kraft(load_profile("lab", scene.profile))
    try:
        story.goals = move.goals
        move.set_request(f"unregister broker {GONE}")
        move.prepare()
        move.typed_subject, move.typed_digest = move.plan.subject, move.plan.digest[:8]
        move.approve()
        move.act()
        move.wait()
    finally:
        move.close()
    story.statuses["unregistered before the copy"] = scene.status()
    lab.move_node("broker", GONE, "restart", "zookeeper")
    wait_until(lambda: GONE in brokers_in_zookeeper(scene.status()), "it is back", 60)
    place(lab, 1, GONE)


def brokers_in_zookeeper(status: KraftStatus) -> tuple[int, ...]:
    return () if status.read.control is None else tuple(status.read.control.brokers)


def place(lab: Lab, *brokers: int) -> None:
    def is_begun() -> bool:
        """A broker that has just started does not know the controller yet."""
        with suppress(LabError):
            reassign(lab.migration, {("orders", number): brokers for number in range(2)})
            return True
        return False

    wait_until(is_begun, "the reassignment", 60)
    await_reassigned(lab.migration)


def begin_anew(story: Story) -> None:
    """Killed while the first broker is ordered; then planned and acted anew, as if nobody had read of ``resume``."""
    scene = story.scene
    story.orders.slow_s = SLOW_S
    story.run, ended = scene.begin("dual write", kill_at="attempted/*/broker *", after_s=0.5)
    assert ended.exit_code == KILLED, ended.err
    digest, before = scene.plan("dual write")["digest"], scene.run_ids()
    deadline = time.monotonic() + LOCK_S
    ended = scene.offramp("act", digest[:8])
    while ended.exit_code == TargetBusy.exit_code and time.monotonic() < deadline:
        ended = scene.offramp("act", digest[:8])
    assert ended.exit_code == 0, ended.err
    story.ordered = [number for number, action in story.orders.given if action == "restart"]
    story.events = [each for run in scene.run_ids() - before for each in scene.events(run)]
    story.statuses["dual write"] = scene.status()


def refuse(story: Story, name: str, *words: str) -> None:
    story.refused[name] = story.scene.offramp("plan", "kraft", *words)


def lose_a_broker(story: Story) -> None:
    scene, lab = story.scene, story.scene.lab
    refuse(story, "it runs", "--unregister", str(GONE))
    faults.kill(faults.broker(lab, GONE))
    wait_until(lambda: is_fenced(scene.status()), "the broker is fenced", 60)
    refuse(story, "it has replicas", "--unregister", str(GONE))
    place(lab, 1)
    refuse(story, "it is registered", "--to", "kraft")
    made = scene.offramp("plan", "kraft", "--unregister", str(GONE), "--json")
    assert made.exit_code == 0, made.err
    plan = json.loads(made.out)
    digest, subject = plan["digest"], plan["consent"]["subject"]
    assert subject == f"unregister broker {GONE} lab"
    for words in (("approve", digest[:8], "--subject", subject, "--digest", digest[:8]), ("act", digest[:8])):
        done = scene.offramp(*words)
        assert done.exit_code == 0, done.err
    story.statuses["unregistered"] = scene.status()
    refuse(story, "it is not registered", "--unregister", str(GONE))
    scene.go("kraft")
    story.statuses["without it"] = scene.status()


def bring_it_back(story: Story) -> None:
    """As it was, in migration mode."""
    lab = story.scene.lab
    faults.broker(lab, GONE).launch()
    faults.broker(lab, GONE).await_started()
    wait_until(lambda: registered(story.scene.status()).get(GONE) is False, "it is registered", 60)
    story.statuses["it came back"] = story.scene.status()
    story.scene.go("kraft")
    story.statuses["with it"] = story.scene.status()


def registered(status: KraftStatus) -> dict[int, bool | None]:
    """Broker → whether it is fenced."""
    return {each.node_id: each.is_fenced for each in status.read.registered_brokers}


def is_fenced(status: KraftStatus) -> bool:
    control = status.read.control
    return bool(registered(status).get(GONE)) and control is not None and GONE not in control.brokers


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    with Lab(brokers=2, controllers=1) as lab:
        lab.create_topic("orders", 2, 2)
        profile = lab.folder / "offramp.toml"
        profile.write_text(lab.profile_toml())
        orders = Orders(lab.move_node)
        lab._control._move = orders
        told = Story(Scene(lab, profile), orders)
        told.scene.go("controllers")
        for part in (lose_a_broker_before_the_copy, begin_anew, lose_a_broker, bring_it_back):
            part(told)
        yield told


def test_a_broker_that_is_gone_before_the_copy_blocks_both_ways_until_the_wizard_ends_its_registration(story):
    assert f"unregister broker {GONE}" in story.goals
    way_out = f"offramp plan kraft --unregister {GONE}"
    for name in ("forward before the copy", "back before the copy"):
        assert (story.refused[name].exit_code, way_out in story.refused[name].err) == (UnsafePlan.exit_code, True), name
    refused = story.refused["it has replicas before the copy"]
    assert refused.exit_code == UnsafePlan.exit_code
    assert f"orders-0 and orders-1 have a replica on broker {GONE}" in refused.err
    seen = {name: (each.state.phase, registered(each)) for name, each in story.statuses.items()}
    assert seen["waiting"] == ("controllers", {GONE: False})
    assert seen["unregistered before the copy"] == ("controllers", {})


def test_the_late_order_of_a_killed_operator_is_waited_for_and_not_given_again(story):
    assert sorted(story.ordered) == [1, 2]
    assert story.statuses["dual write"].state.phase == "dual write"


def test_the_next_run_says_for_whom_it_waits(story):
    waits = [each["sentence"] for each in story.events if each["event"] == "waiting"]
    assert f"Run {story.run} was here before and did not come to an end: what it ordered may still come." in waits


def test_a_broker_that_is_gone_is_named_with_the_plan_that_ends_its_registration(story):
    told = {name: (ended.exit_code, ended.err) for name, ended in story.refused.items()}
    expected = {
        "it runs": (UnsafePlan, f"broker {GONE} answers: stop it first"),
        "it has replicas": (UnsafePlan, f"orders-0 and orders-1 have a replica on broker {GONE}"),
        "it is registered": (UnsafePlan, f"offramp plan kraft --unregister {GONE}"),
        "it is not registered": (NothingToDo, f"broker {GONE} is not registered with the controllers"),
    }
    assert {name: told[name][0] for name in expected} == {name: kind.exit_code for name, (kind, _) in expected.items()}
    assert [name for name, (_, words) in expected.items() if words not in told[name][1]] == []


def test_the_move_goes_on_without_it_and_takes_it_in_when_it_comes_back(story):
    seen = {name: (each.state.phase, registered(each)) for name, each in story.statuses.items()}
    assert seen["unregistered"] == ("dual write", {1: False})
    assert seen["without it"] == ("kraft", {1: False})
    assert seen["it came back"] == ("dual write", {1: False, 2: False})
    assert seen["with it"] == ("kraft", {1: False, 2: False})
