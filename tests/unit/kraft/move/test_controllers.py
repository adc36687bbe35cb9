"""Controllers are ordered together: one that is long alone counts KRaft's epoch up, or waits for the others."""

from __future__ import annotations

import re
import sys
import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from kit.engine.commands import CommandTemplate
from kit.engine.model.clock import Clock
from kit.engine.model.performer import ActedRecord, Outcome, WriteAttempt
from kit.errors import RunError
from kit.kraft.move import controllers as acting
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.controllers import StartActor, StopActor, WipeActor
from kit.kraft.move.hand_back import HandBackActor
from kit.kraft.move.nodes import CommandNodes, NodeOrder
from kit.kraft.move.orders import NodeOperator, settings_digests
from kit.kraft.move.parameters import StopParameters
from kit.kraft.move.problems import controllers_problem, running_problem
from kit.kraft.move.steps import start_step, stop_step, wipe_step
from kit.profile import KraftSettings
from tests.kraft_records import SOUND, broker, control, diff, difference, node, plain
from tests.unit.kraft.move.move_plans import PROFILE, SAME, WELL, Report, cluster_with
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

IDS = (3000, 3001, 3002)
ADDRESSES = {"3000": "a:9093", "3001": "b:9093", "3002": "c:9093"}
VOTERS = "3000@a:9093,3001@b:9093,3002@c:9093"
WORDS = StopParameters(
    target="cluster abc",
    cluster_name="production",
    to_phase="controllers",
    all_brokers={"1": "host:9092"},
    controllers=ADDRESSES,
    nodes=(3000, 3001, 3002),
)


DIVERGED = diff(difference("topic", "diverged"))


@dataclass
class Nodes:
    """Does each order only once as many are under way as there are controllers."""

    needs_person = False
    failing: int | None = None
    together: threading.Barrier = field(default_factory=lambda: threading.Barrier(3))
    ordered: list[tuple[str, int]] = field(default_factory=list)

    def order(self, order, tell) -> str:
        self.together.wait(10)
        self.ordered.append((order.action, order.node_id))
        if order.node_id == self.failing:
            raise RunError(f"/opt/node ended with exit code 7: no route to {order.node_id}")
        return f"{order.node_id} done"


def hands_of(nodes: Nodes, is_running: bool) -> NodeOperator:
    profile = replace(PROFILE, kraft=KraftSettings(controllers=VOTERS))
    hands = NodeOperator(cluster_with(profile=profile, zookeeper=ZookeeperInMemory()), nodes, reads=WELL)
    controllers = tuple(
        node(
            "controller",
            node_id=int(number),
            address=at,
            voters=(3000, 3001, 3002),
            error=None if is_running else "silent",
            is_listening=is_running,
        )
        for number, at in ADDRESSES.items()
    )
    facts = replace(SOUND, control=plain(), nodes=(node("broker", mode="zookeeper", has_flag=False), *controllers))
    hands.read_state = lambda words: ClusterState(facts, {1: "host:9092"})
    hands.wait_until = lambda words, problem, report: None
    return hands


def test_controllers_are_started_together():
    nodes, report = Nodes(), Report()
    outcomes = StartActor(hands_of(nodes, is_running=False)).act(start_step("01", WORDS), report)
    assert sorted(nodes.ordered) == [("start", 3000), ("start", 3001), ("start", 3002)]
    assert report.attempted == ["controller 3000", "controller 3001", "controller 3002", "/migration"]
    assert [each.details for each in outcomes[:3]] == [{"said": f"{number} done"} for number in (3000, 3001, 3002)]


def test_controllers_are_stopped_together():
    nodes = Nodes()
    StopActor(hands_of(nodes, is_running=True)).act(stop_step("01", WORDS), Report())
    assert sorted(nodes.ordered) == [("stop", 3000), ("stop", 3001), ("stop", 3002)]


def test_no_controller_is_stopped_under_a_voter_that_the_profile_does_not_name():
    nodes = Nodes()
    hands = hands_of(nodes, is_running=True)
    seen = hands.read_state(WORDS)
    strange = tuple(replace(each, voters=(*each.voters, 3003)) for each in seen.facts.nodes)
    hands.read_state = lambda words: replace(seen, facts=replace(seen.facts, nodes=strange))
    with pytest.raises(RunError, match="the quorum has the voters 3000, 3001, 3002 and 3003, but the profile names"):
        StopActor(hands).act(stop_step("01", WORDS), Report())
    assert nodes.ordered == []


@pytest.mark.parametrize(
    ("controls", "has_claim", "told"),
    [
        (control(checkpoint=None), False, "KRaft controller 3000 has claimed /controller since the plan was made"),
        (plain(has_migration=True), True, "no longer a KRaft controller, holds /controller"),
        (control(), True, "/migration has the offset 79: the copy was completed since the plan was made"),
        (control(checkpoint=None), True, None),
    ],
)
def test_the_holder_of_the_claim_is_compared_right_before_the_stop(controls, has_claim, told):
    hands = hands_of(Nodes(), is_running=True)
    seen = hands.read_state(WORDS)
    hands.read_state = lambda words: replace(seen, facts=replace(seen.facts, control=controls))
    step = stop_step("01", replace(WORDS, has_claim=has_claim, is_aborted=has_claim))
    if told is None:
        StopActor(hands).act(step, Report())
        assert len(hands._deployer.ordered) == 3
    else:
        with pytest.raises(RunError, match=re.escape(told)):
            StopActor(hands).act(step, Report())
        assert hands._deployer.ordered == []


@pytest.mark.parametrize(
    ("is_listening", "reported", "told"),
    [
        (False, (), None),
        (None, (), "controller a:9093 can't be reached, so it may run"),
        (None, ("a:9093",), None),
        (None, ("b:9093",), "controller a:9093 can't be reached, so it may run"),
        (True, ("a:9093",), "controller a:9093 still runs"),
    ],
)
def test_only_a_refused_connection_or_a_report_shows_that_a_controller_is_stopped(is_listening, reported, told):
    mute = node("controller", address="a:9093", error="timed out", is_listening=is_listening)
    found = running_problem(ClusterState(replace(SOUND, nodes=(mute,)), {1: "host:9092"}, reported_stopped=reported))
    assert found is None if told is None else found.startswith(told)


@pytest.mark.parametrize(
    ("has_claim", "modes", "is_met"),
    [
        (False, ("zookeeper", "migration"), True),
        (False, ("zookeeper", "kraft"), False),
        (False, ("zookeeper", None), False),
        (True, ("zookeeper", "migration"), False),
        (True, ("migration", "migration"), True),
    ],
)
def test_before_the_copy_some_brokers_may_have_moved_when_controllers_stop(has_claim, modes, is_met):
    hands = hands_of(Nodes(), is_running=True)
    hands._deployer = SimpleNamespace(instruction=lambda *words: "")
    nodes = [node("broker", node_id=number, mode=mode) for number, mode in enumerate(modes, 1)]
    facts = replace(SOUND, nodes=tuple(nodes))
    hands.read_state = lambda words: ClusterState(facts, {1: "host:9092", 2: "host-2:9092"})
    found = StopActor(hands).check(stop_step("01", replace(WORDS, has_claim=has_claim, to_phase="zookeeper")))
    assert found.ok is is_met, found.sentence


def test_one_order_that_fails_is_named_after_all_were_given():
    nodes = Nodes(failing=3001)
    with pytest.raises(RunError, match=r"^controller 3001: /opt/node ended with exit code 7: no route to 3001$"):
        StartActor(hands_of(nodes, is_running=False)).act(start_step("01", WORDS), Report())
    assert sorted(number for _, number in nodes.ordered) == [3000, 3001, 3002]


def test_every_order_that_fails_is_named():
    """A real command, which ends badly for two of three controllers, each in its own way."""
    code = (
        "import os, signal, sys\n"
        "if sys.argv[1] == '3000': print('no disk'); sys.exit(7)\n"
        "if sys.argv[1] == '3002': print('half-way', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = CommandTemplate(
        [sys.executable, "-c", code, "{node_id}"], NodeOrder.__dataclass_fields__, "OFFRAMP_NODE", 30
    )
    report = Report()
    with pytest.raises(RunError) as raised:
        StartActor(hands_of(CommandNodes(command), is_running=False)).act(start_step("01", WORDS), report)
    first, second = str(raised.value).split("; controller ")
    assert first == f"controller 3000: {sys.executable} ended with exit code 7: no disk"
    assert second == f"3002: {sys.executable} was killed by SIGKILL; its effect is not known. Its last output: half-way"
    assert report.attempted == ["controller 3000", "controller 3001", "controller 3002"]


def test_outcomes_of_controllers_that_run_already_are_unchanged():
    nodes = Nodes()
    outcomes = StartActor(hands_of(nodes, is_running=True)).act(start_step("01", WORDS), Report())
    assert nodes.ordered == []
    assert {each.outcome for each in outcomes} == {Outcome.UNCHANGED}


def test_stopped_controllers_are_not_waited_for_twice():
    """Nobody elects a leader meanwhile; that ``/migration`` is stalled is asked once, before the transaction."""
    found = StopActor(hands_of(Nodes(), is_running=False)).verify(stop_step("01", WORDS))
    assert (found.ok, found.sentence) == (True, "no controller answers")
    still = StopActor(hands_of(Nodes(), is_running=True)).verify(stop_step("01", WORDS))
    assert "controllers a:9093, b:9093 and c:9093 still run" in still.sentence


def test_controllers_that_refuse_or_hang_have_not_stopped():
    nodes = Nodes()
    hands = hands_of(nodes, is_running=False)
    silent = hands.read_state(WORDS)
    heard = [replace(each, is_listening=True) for each in silent.facts.nodes]
    hands.read_state = lambda words: ClusterState(replace(silent.facts, nodes=tuple(heard)), silent.brokers)
    assert "controllers a:9093, b:9093 and c:9093 still run" in StopActor(hands).verify(stop_step("01", WORDS)).sentence
    assert "controllers a:9093, b:9093 and c:9093 still run" in HandBackActor(hands)._closed(WORDS)
    StartActor(hands).act(start_step("01", WORDS), Report())
    assert nodes.ordered == []


def test_the_reason_why_a_controller_does_not_answer_is_reported():
    hands = hands_of(Nodes(), is_running=False)
    problem = StartActor(hands)._waiting_problem(WORDS, hands.read_state(WORDS))
    assert problem == "controller 3000 at a:9093 does not answer: silent"
    closed = hands.read_state(WORDS)
    node = replace(
        closed.facts.controllers[0],
        address="a:9093",
        error="a:9093 does not answer as a controller: no server listens there",
    )
    closed = replace(closed, facts=replace(closed.facts, nodes=(node,)))
    assert controllers_problem(closed, {3000: "a:9093"}) == (
        "controller 3000 at a:9093 does not answer: no server listens there"
    )


def standing_of(*running: int, leader: int | None = 3000, **changed) -> ClusterState:
    """In dual write, with these controllers running."""
    nodes = [
        node(
            "controller",
            node_id=int(number),
            address=at,
            is_leader=int(number) == leader,
            voters=(3000, 3001, 3002),
            error=None if int(number) in running else "silent",
            is_listening=int(number) in running,
        )
        for number, at in ADDRESSES.items()
    ]
    return ClusterState(replace(SOUND, nodes=(node("broker"), *nodes), **changed), {1: "host:9092"})


@pytest.mark.parametrize(
    ("running", "leader", "found", "is_ordered"),
    [
        ((3000, 3001, 3002), 3000, SAME, True),
        ((3000, 3001, 3002), 3000, DIVERGED, False),
        ((3000, 3001), 3000, SAME, True),
        ((3000, 3001), 3000, DIVERGED, False),
        ((3000,), None, DIVERGED, True),
    ],
)
def test_a_stop_that_did_not_come_is_ordered_again_only_while_both_stores_hold_the_same(
    running, leader, found, is_ordered
):
    """Controllers that were ordered to stop, and run on for hours, write on; then the way back would lose it."""
    nodes, report = Nodes(), Report(WriteAttempt("controller 3000", False, None, Outcome.UNKNOWN))
    hands = hands_of(nodes, is_running=True)
    hands.reads = replace(WELL, diff=lambda cluster: found)
    hands.read_state = lambda words: standing_of(*running, leader=leader)
    step = stop_step("01", replace(WORDS, has_claim=True, to_phase="zookeeper"))
    if is_ordered:
        StopActor(hands).act(step, report)
    else:
        with pytest.raises(RunError, match=r"hold different values: diverged topic .*No controller was stopped now"):
            StopActor(hands).act(step, report)
    assert len(nodes.ordered) == (3 if is_ordered else 0)


def test_controllers_are_not_stopped_once_a_broker_has_joined_that_the_plan_does_not_move():
    """It may be in KRaft mode, and would hang with the partitions that it was given."""
    hands = hands_of(Nodes(), is_running=True)
    hands._deployer = SimpleNamespace(instruction=lambda *words: "")
    joined = (broker(), broker(node_id=9, is_migrating=False))
    hands.read_state = lambda words: standing_of(3000, 3001, 3002, registrations=joined)
    found = StopActor(hands).check(stop_step("01", replace(WORDS, has_claim=True, to_phase="zookeeper")))
    assert not found.ok
    assert "broker 9 is registered, but not in this plan. Make a new plan" in found.sentence


# Orders that come late, hit another host, or would use a file that was edited


@dataclass
class Late:
    """Three controllers; ``late``: when which of them starts, whoever was told to call that off."""

    needs_person = False
    running: set[int] = field(default_factory=set)
    late: dict[float, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    ordered: list[tuple[str, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    at: float = 0.0

    def order(self, order, tell) -> str:
        self.ordered.append((order.action, order.node_id))
        self.running.discard(order.node_id) if order.action == "stop" else None
        if order.node_id == 3002 and order.action in self.after:
            self.running.add(self.after[order.action])
        return "done"

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        for at in [each for each in self.late if each <= self.at]:
            self.running.add(self.late.pop(at))

    def hands(self) -> NodeOperator:
        hands = hands_of(self, is_running=False)
        hands.say, hands.clock = self.said.append, Clock(monotonic=lambda: self.at, sleep=self.sleep)
        hands.read_state = lambda words: standing_of(
            *self.running, control=plain(has_migration=True), zk_state="PRE_MIGRATION"
        )
        hands.wait_until = lambda words, problem, report: self.quiet(problem)
        return hands

    def quiet(self, problem) -> None:
        """Make what is waited for be there already."""
        assert problem(self.hands().read_state(WORDS)) is None


def started(number: int) -> WriteAttempt:
    return WriteAttempt(f"controller {number}", False, {"action": "start"}, Outcome.UNKNOWN)


def test_a_start_that_was_not_seen_is_waited_for_before_controllers_are_stopped_again():
    """Its command hung; the run failed and is undone; then the controller starts after all."""
    world = Late({3000, 3001}, late={20.0: 3002})
    StartActor(world.hands()).undo(start_step("01", WORDS), ActedRecord("01", ()), Report(started(3002)))
    assert world.at >= 20.0 + WORDS.quiet_s
    assert "These nodes changed meanwhile: controller c:9093: no answer, now with the flag." in world.said
    assert (world.running, world.ordered[-3:]) == (set(), [("wipe", 3000), ("wipe", 3001), ("wipe", 3002)])


def test_an_order_that_was_seen_to_come_is_not_waited_for():
    world = Late({3000, 3001, 3002})
    attempts = (*map(started, IDS), WriteAttempt("/migration", False, None, None))
    StartActor(world.hands()).undo(start_step("01", WORDS), ActedRecord("01", ()), Report(*attempts))
    assert world.at == 0.0


@pytest.mark.parametrize(("after", "wiped"), [("stop", 0), ("wipe", 3)])
def test_a_controller_that_starts_after_all_were_stopped_is_named_and_not_called_undone(after, wiped):
    world = Late({3000, 3001, 3002}, after={after: 3001})
    hands = world.hands()
    hands.wait_until = lambda words, problem, report: None
    with pytest.raises(RunError, match=r"controller b:9093 still runs, after all were stopped.* was executed late"):
        StartActor(hands).undo(start_step("01", WORDS), ActedRecord("01", ()), Report())
    assert len([each for each in world.ordered if each[0] == "wipe"]) == wiped


def test_a_stop_that_was_not_seen_is_waited_for_before_controllers_are_started_again():
    attempt = WriteAttempt("controller 3000", False, {"action": "stop"}, Outcome.UNKNOWN)
    world = Late({3000, 3001, 3002})
    hands = world.hands()
    hands.wait_until = lambda words, problem, report: None
    StopActor(hands).undo(stop_step("02", WORDS), ActedRecord("02", ()), Report(attempt))
    assert world.at >= WORDS.quiet_s


@pytest.mark.parametrize(("to_phase", "is_met"), [("zookeeper", False), ("repair /migration", True)])
def test_a_rollback_does_not_end_with_a_broker_that_came_into_migration_mode_late(to_phase, is_met):
    """It waits for controllers that are gone. Brokers that a repair finds so have a plan of their own."""
    world = Late()
    hands = world.hands()
    hands.read_state = lambda words: standing_of(control=plain())
    step = wipe_step("05", replace(WORDS, to_phase=to_phase))
    hands.instruction_problem = lambda *words: None
    found = WipeActor(hands).verify(step)
    assert (WipeActor(hands).check(step).ok, found.ok) == (is_met, is_met)
    if not is_met:
        assert "broker 1 is in migration mode, but the controllers have stopped" in found.sentence
        assert "Restart broker 1 in zookeeper mode" in found.sentence


def test_controllers_are_not_started_with_a_file_that_was_edited(tmp_path):
    file = tmp_path / "controller-3001.migration.properties"
    file.write_text("node.id=3001\nprocess.roles=controller\n")
    nodes, report = Nodes(), Report()
    hands = hands_of(nodes, is_running=False)
    hands.cluster = cluster_with(
        profile=replace(PROFILE, kraft=KraftSettings(controllers=VOTERS, settings_dir=tmp_path))
    )
    words = replace(WORDS, settings=settings_digests(hands.cluster))
    file.write_text(file.read_text() + "num.io.threads=1\n")
    with pytest.raises(RunError, match="with which controller 3001 would be started, was edited after the plan"):
        StartActor(hands).act(start_step("01", words), report)
    assert (nodes.ordered, report.attempted) == ([], [])


def test_a_controller_that_lost_its_flag_instead_of_another_one_is_named():
    def standing(**flags: bool) -> ClusterState:
        now = standing_of(3000, 3001, 3002)
        nodes = [replace(each, has_flag=flags.get(f"c{each.node_id}", each.has_flag)) for each in now.facts.nodes]
        return replace(now, facts=replace(now.facts, nodes=tuple(nodes)))

    acting.refuse_unordered_change(WORDS, 3000, standing(), standing(c3000=False))
    with pytest.raises(RunError, match="controller 3000 was to be restarted, but controller 3002 now runs without the"):
        acting.refuse_unordered_change(WORDS, 3000, standing(), standing(c3002=False))
