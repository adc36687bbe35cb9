"""People act beside a move to KRaft: an operator who is killed and acts again, a broker that is gone for good.

Two brokers, one controller; each verb is a process of its own. The deployer begins late, and outlives its operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

import widgets
from kit.errors import LabError, NothingToDo, OfframpError, UnsafePlan
from kit.kraft.status import KraftStatus
from kit.lab import Lab, faults
from kit.lab.entities import await_reassigned, reassign
from kit.lab.process import wait_until
from kit.profile import load_profile
from tests.interop.kraft_scene import KILLED, KraftScene
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(900)]
SLOW_S = 35.0
"""Longer than it takes until the lock of a killed process is gone and the next one is at its first order."""
GONE = 2


@dataclass
class Orders:
    """The orders to brokers; the next order is begun late."""

    move: Callable[[str, int, str, str], str]
    slow_s: float = 0.0
    given: list[tuple[int, str]] = field(default_factory=list)

    def __call__(self, role: str, node: int, action: str, mode: str) -> str:
        if role == "broker":
            self.given.append((node, action))
            slow_s, self.slow_s = self.slow_s, 0.0
            time.sleep(slow_s)  # The order comes late; nothing is waited for.
        return self.move(role, node, action, mode)


def lose_a_broker_before_the_copy(scene: KraftScene) -> None:
    """The first of the roll registers and dies. Its registration is ended in the wizard; then it comes back."""
    lab = scene.lab
    lab.move_node("broker", GONE, "restart", "migration")
    scene.await_status("registered", lambda status: GONE in registered(status), "its registration")
    faults.kill(faults.broker(lab, GONE))
    scene.await_status("waiting", lambda status: GONE not in brokers_in_zookeeper(status), "the end of its session")
    refuse(scene, "forward before the copy", "--to", "dual write")
    refuse(scene, "back before the copy", "--to", "zookeeper")
    refuse(scene, "it has replicas before the copy", "--unregister", str(GONE))
    place(lab, 1)
    unregister_in_the_wizard(scene)
    scene.status("unregistered before the copy")
    lab.move_node("broker", GONE, "restart", "zookeeper")
    scene.await_status("back", lambda status: GONE in brokers_in_zookeeper(status), "its return")
    place(lab, 1, GONE)


def unregister_in_the_wizard(scene: KraftScene) -> None:
    move = widgets.open_kraft(load_profile("lab", scene.file))
    try:
        scene.noted["goals"] = move.goals
        move.set_request(f"unregister broker {GONE}")
        move.prepare()
        move.typed_subject, move.typed_digest = move.plan.subject, move.plan.digest[:8]
        move.approve()
        move.act()
        move.wait()
    finally:
        move.close()


def brokers_in_zookeeper(status: KraftStatus) -> tuple[int, ...]:
    return () if status.read.control is None else tuple(status.read.control.brokers)


def place(lab: Lab, *brokers: int) -> None:
    def is_begun() -> bool:
        """A broker that has just started does not know the controller yet."""
        with suppress(LabError):
            reassign(lab.migration, {("orders", number): brokers for number in range(2)})
            return True
        return False

    wait_until(is_begun, "the reassignment", 120)
    await_reassigned(lab.migration)


def begin_anew(scene: KraftScene, orders: Orders) -> None:
    """Killed while the first broker is ordered; then planned and acted again, as if nobody had read of ``resume``."""
    orders.slow_s = SLOW_S
    run, ended = scene.begin("dual write", kill_at="attempted/*/broker *", after_s=0.5)
    assert ended.exit_code == KILLED, ended.stderr
    digest, before = scene.plan("dual write")["digest"], scene.run_ids()
    ended = scene.once_unlocked("act", digest[:8])
    assert ended.exit_code == 0, ended.stderr
    scene.noted["run"] = run
    scene.noted["ordered"] = [number for number, action in orders.given if action == "restart"]
    scene.noted["events"] = [each for run in scene.run_ids() - before for each in scene.events(run)]
    scene.status("dual write")


def refuse(scene: KraftScene, moment: str, *words: str, error: type[OfframpError] = UnsafePlan) -> None:
    scene.refuse(moment, error, "plan", "kraft", *words)


def lose_a_broker(scene: KraftScene) -> None:
    lab = scene.lab
    refuse(scene, "it runs", "--unregister", str(GONE))
    faults.kill(faults.broker(lab, GONE))
    scene.await_status("fenced", is_fenced, "the broker is fenced")
    refuse(scene, "it has replicas", "--unregister", str(GONE))
    place(lab, 1)
    refuse(scene, "it is registered", "--to", "kraft")
    plan = scene.plan("--unregister", str(GONE))
    assert plan["consent"]["subject"] == f"unregister broker {GONE} lab"
    scene.must("act", plan["digest"][:8])
    scene.status("unregistered")
    refuse(scene, "it is not registered", "--unregister", str(GONE), error=NothingToDo)
    scene.go("kraft")
    scene.status("without it")


def bring_it_back(scene: KraftScene) -> None:
    """Bring the node back as it was, in migration mode."""
    lab = scene.lab
    faults.broker(lab, GONE).launch()
    faults.broker(lab, GONE).await_started()
    scene.await_status("it came back", lambda status: registered(status).get(GONE) is False, "its registration")
    scene.go("kraft")
    scene.status("with it")


def registered(status: KraftStatus) -> dict[int, bool | None]:
    """Broker → whether it is fenced."""
    return {each.node_id: each.is_fenced for each in status.read.registered_brokers}


def is_fenced(status: KraftStatus) -> bool:
    control = status.read.control
    return bool(registered(status).get(GONE)) and control is not None and GONE not in control.brokers


@pytest.fixture(scope="module")
def scene() -> Iterator[KraftScene]:
    with Lab(brokers=2, controllers=1) as lab:
        lab.create_topic("orders", 2, 2)
        orders = Orders(lab.move_node)
        lab._control._move = orders
        seen = KraftScene(lab)
        seen.go("controllers")
        lose_a_broker_before_the_copy(seen)
        begin_anew(seen, orders)
        lose_a_broker(seen)
        bring_it_back(seen)
        yield seen


def test_a_broker_that_is_gone_before_the_copy_blocks_both_ways_until_the_wizard_ends_its_registration(scene):
    assert f"unregister broker {GONE}" in scene.noted["goals"]
    way_out = f"offramp plan kraft --unregister {GONE}"
    for name in ("forward before the copy", "back before the copy"):
        assert way_out in scene.refusals[name], name
    refused = scene.refusals["it has replicas before the copy"]
    assert f"orders-0 and orders-1 have a replica on broker {GONE}" in refused
    seen = {name: (each.state.phase, set(registered(each))) for name, each in scene.statuses.items()}
    assert seen["waiting"] == ("controllers", {GONE})
    assert seen["unregistered before the copy"] == ("controllers", set())


def test_the_late_order_of_a_killed_operator_is_waited_for_and_not_given_again(scene):
    assert sorted(scene.noted["ordered"]) == [1, 2]
    assert scene.statuses["dual write"].state.phase == "dual write"


def test_the_next_run_reports_for_whom_it_waits(scene):
    waits = [each["sentence"] for each in scene.noted["events"] if each["event"] == "waiting"]
    run = scene.noted["run"]
    assert f"Run {run} on the same target did not end: its orders may still arrive." in waits


def test_a_broker_that_is_gone_is_named_with_the_plan_that_ends_its_registration(scene):
    expected = {
        "it runs": f"broker {GONE} still answers: stop it first",
        "it has replicas": f"orders-0 and orders-1 have a replica on broker {GONE}",
        "it is registered": f"offramp plan kraft --unregister {GONE}",
        "it is not registered": f"broker {GONE} is not registered with the controllers",
    }
    assert [name for name, words in expected.items() if words not in scene.refusals[name]] == []


def test_the_move_continues_without_it_and_takes_it_in_when_it_comes_back(scene):
    seen = {name: (each.state.phase, registered(each)) for name, each in scene.statuses.items()}
    assert seen["unregistered"] == ("dual write", {1: False})
    assert seen["without it"] == ("kraft", {1: False})
    assert seen["it came back"] == ("dual write", {1: False, 2: False})
    assert seen["with it"] == ("kraft", {1: False, 2: False})
