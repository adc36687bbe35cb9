"""Brokers restarted one at a time: in which order, what forbids the next, how a run that was cut off goes on."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from kit.errors import RunError, Stopped
from kit.migrate.commands import CommandTemplate
from kit.migrate.engine.clock import Clock
from kit.migrate.engine.performer import ActedRecord, ItemOutcome, Outcome, StepState, WriteAttempt
from kit.migrate.kraft import roll as rolling
from kit.migrate.kraft.nodes import CommandNodes, NodeOrder
from kit.migrate.kraft.orders import Hands
from kit.migrate.kraft.roll import RollActor
from kit.migrate.kraft.standing import Standing
from kit.migrate.kraft.steps import KraftParameters, roll_step
from kit.profile import KraftSettings
from tests.unit.analyze.metadata.test_phase import SOUND, broker, control, node, plain

BROKERS = {number: f"host-{number}:9092" for number in (1, 2, 3)}
ZOOKEEPER, MIGRATION, KRAFT = "zookeeper", "migration", "kraft"


@dataclass
class World:
    """Three brokers. ``dead``: what an order does not bring about; ``sick``: what their metadata says is wrong."""

    modes: dict[int, str | None]
    controller: int | None = None
    state: str = "MIGRATION"
    dead: set[int] = field(default_factory=set)
    sick: str | None = None
    diff: str | None = None
    old: dict[str, list[str]] = field(default_factory=dict)
    orders: list[tuple[int, str]] = field(default_factory=list)
    at: float = 0.0

    def look(self) -> Standing:
        listed = tuple(number for number, mode in self.modes.items() if mode in (ZOOKEEPER, MIGRATION))
        held = {"brokers": listed}
        if self.state == "MIGRATION":
            controls = control(**held)
        else:
            controls = plain(has_migration=True, controller_id=self.controller, **held)
        registered = [
            broker(node_id=number, is_migrating=mode == MIGRATION)
            for number, mode in self.modes.items()
            if mode in (MIGRATION, KRAFT)
        ]
        nodes = [
            node("broker", node_id=number, mode=mode, address=BROKERS[number], error=None if mode else "silent")
            for number, mode in self.modes.items()
        ]
        facts = replace(
            SOUND,
            control=controls,
            registrations=tuple(registered),
            nodes=(*nodes, node("controller")),
            zk_state=self.state,
        )
        return Standing(facts, BROKERS)

    def order(self, order, tell) -> str:
        self.orders.append((order.node_id, order.to_mode))
        self.modes[order.node_id] = None if order.node_id in self.dead else order.to_mode
        return "done"

    def sleep(self, seconds: float) -> None:
        self.at += seconds


class Report:
    """As a run's: keeps what was said; ``stop_at`` the n-th write it raises."""

    def __init__(self, acted: ActedRecord | None = None, stop_at: int = 99) -> None:
        self.acted = acted or ActedRecord("01", ())
        self.attempts: list[WriteAttempt] = []
        self.outcomes: list[ItemOutcome] = []
        self._left = stop_at

    def attempt(self, items, details=None) -> None:
        if self._left == 0:
            raise Stopped("Ann asked to stop")
        self._left -= 1
        self.attempts += [WriteAttempt(item, False, details, None) for item in items]

    def __call__(self, outcomes) -> None:
        self.outcomes += outcomes

    def cut_off(self) -> ActedRecord:
        """What a journal knows after a crash."""
        known = {it.item: it for it in self.outcomes}
        attempts = tuple(
            replace(it, outcome=known[it.item].outcome if it.item in known else None) for it in self.attempts
        )
        lost = [ItemOutcome(it.item, Outcome.UNKNOWN) for it in attempts if it.item not in known]
        return ActedRecord("01", (*known.values(), *lost), attempts)


@pytest.fixture
def world(monkeypatch):
    made = World({1: MIGRATION, 2: MIGRATION, 3: MIGRATION})
    monkeypatch.setattr(rolling, "sync_problem", lambda cluster, brokers: made.sick)
    monkeypatch.setattr(rolling, "diff_problem", lambda cluster: made.diff)
    monkeypatch.setattr(rolling, "live_old_members", lambda client: made.old)
    monkeypatch.setattr(rolling, "zookeeper_of", lambda cluster: None)
    return made


def actor(world: World) -> RollActor:
    deployer = SimpleNamespace(needs_person=False, instruction=lambda *words: " ".join(words), order=world.order)
    profile = SimpleNamespace(kraft=KraftSettings(controllers="3000@host:9093"), name="production")
    hands = Hands(
        SimpleNamespace(profile=profile, zookeeper=None),
        deployer,
        clock=Clock(monotonic=lambda: world.at, sleep=world.sleep),
    )
    hands.look = lambda words: world.look()
    return RollActor(hands)


def step(nodes=(1, 2, 3), way=(MIGRATION, KRAFT), **changed):
    words = KraftParameters(
        target="cluster abc",
        cluster_name="production",
        to_phase="kraft",
        all_brokers={str(number): address for number, address in BROKERS.items()},
        controllers={"3000": "host:9093"},
        nodes=nodes,
        from_mode=way[0],
        to_mode=way[1],
        instruction=f"restart broker {way[1]}",
        node_timeout_s=60.0,
        quiet_s=10.0,
    )
    return roll_step("01", replace(words, **changed))


def test_one_after_the_other(world):
    report = Report()
    outcomes = actor(world).act(step(), report)
    assert world.orders == [(1, KRAFT), (2, KRAFT), (3, KRAFT)]
    assert [it.outcome for it in outcomes] == [Outcome.CONFIRMED] * 3
    assert actor(world).state(step()) == StepState.DONE


def test_zookeepers_controller_goes_last(world):
    world.modes, world.state, world.controller = dict.fromkeys(BROKERS, ZOOKEEPER), "PRE_MIGRATION", 1
    actor(world).act(step(way=(ZOOKEEPER, MIGRATION)), Report())
    assert [number for number, _ in world.orders] == [2, 3, 1]


def test_a_broker_that_does_not_come_back_stops_the_roll(world):
    world.dead = {2}
    report = Report()
    with pytest.raises(RunError, match="in 60 s: broker 2 does not answer"):
        actor(world).act(step(), report)
    assert world.orders == [(1, KRAFT), (2, KRAFT)]
    assert [it.outcome for it in report.outcomes] == [Outcome.CONFIRMED, Outcome.UNKNOWN]


LYING = {
    "does nothing": "print('restarted')",
    "starts it in the wrong mode": "print('restarted'); print(sys.argv[1], file=open(sys.argv[3], 'w'))",
    "starts it well": "print('restarted'); print(sys.argv[2], file=open(sys.argv[3], 'w'))",
}
"""Real commands: of the mode before, of the mode that was ordered, and where the node would tell its mode."""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("does nothing", "in 60 s: broker 1 runs in migration mode, not kraft."),
        ("starts it in the wrong mode", "in 60 s: broker 1 runs in zookeeper mode, not kraft."),
        ("starts it well", None),
    ],
)
def test_a_command_that_ends_well_is_not_believed(world, tmp_path, command, told):
    """It ends with exit code 0; what counts is what the node says, and what the command said is evidence."""
    told_mode = tmp_path / "mode"
    argv = [sys.executable, "-c", f"import sys; {LYING[command]}", ZOOKEEPER, "{to_mode}", str(told_mode)]
    nodes = CommandNodes(CommandTemplate(argv, NodeOrder.__dataclass_fields__, "OFFRAMP_NODE", 30))

    def order(given, tell) -> str:
        world.orders.append((given.node_id, given.to_mode))
        answer = nodes.order(given, tell)
        if told_mode.exists():
            world.modes[given.node_id] = told_mode.read_text().strip()
        return answer

    rolling_with, report = actor(world), Report()
    rolling_with.hands._deployer.order = order
    if told is None:
        assert len(rolling_with.act(step(), report)) == 3
        return
    with pytest.raises(RunError, match=told) as raised:
        rolling_with.act(step(), report)
    assert str(raised.value).endswith("undone. The deployer said of broker 1: restarted")
    assert world.orders == [(1, KRAFT)], "nothing more is ordered"
    (outcome,) = report.outcomes
    assert (outcome.outcome, outcome.error) == (Outcome.UNKNOWN, str(raised.value))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sick": "no full ISR: orders-1"}, "no full ISR: orders-1"),
        ({"diff": "1 diverged"}, "1 diverged"),
        ({"old": {"shop": ["a"]}}, "group shop has live members"),
        ({"modes": {1: MIGRATION, 2: MIGRATION, 3: ZOOKEEPER}}, "does not expect"),
        ({"state": "PRE_MIGRATION"}, "state PRE_MIGRATION"),
    ],
)
def test_nothing_is_ordered_while_something_is_wrong(world, wrong, told):
    for name, value in wrong.items():
        setattr(world, name, value)
    with pytest.raises(RunError, match=told):
        actor(world).act(step(), Report())
    assert world.orders == []


def test_a_broker_that_is_down_elsewhere_forbids_the_next(world):
    world.modes[3] = None
    with pytest.raises(RunError, match=r"broker 3 does not answer"):
        actor(world).act(step(nodes=(1, 2)), Report())
    assert world.orders == []


@pytest.mark.parametrize("item", [0, 1, 2])
def test_stopped_before_any_item_it_goes_on_with_what_is_left(world, item):
    report = Report(stop_at=item)
    with pytest.raises(Stopped):
        actor(world).act(step(), report)
    assert len(world.orders) == item
    actor(world).act(step(), Report(report.cut_off()))
    assert world.orders == [(1, KRAFT), (2, KRAFT), (3, KRAFT)]


@pytest.mark.parametrize("item", [1, 2, 3])
def test_cut_off_in_any_order_nothing_is_ordered_twice(world, item):
    """Killed while it waited for a broker: the broker came, and the next process finds it."""
    report = Report()

    class Cut(Exception):
        pass

    def die(words, problem, asked):
        if len(world.orders) == item:
            raise Cut
        return world.look()

    first = actor(world)
    first.hands.await_so = die
    with pytest.raises(Cut):
        first.act(step(), report)
    actor(world).act(step(), Report(report.cut_off()))
    assert world.orders == [(1, KRAFT), (2, KRAFT), (3, KRAFT)]
    assert world.at < 10.0, "it came as ordered: nothing is waited for"


def test_an_order_that_nobody_saw_is_called_off_and_waited_for(world):
    world.dead = {1}
    report = Report()
    with pytest.raises(RunError):
        actor(world).act(step(), report)
    world.dead, before = set(), world.at
    actor(world).act(step(), Report(report.cut_off()))
    assert world.at - before >= 10.0
    assert world.orders == [(1, KRAFT), (1, KRAFT), (2, KRAFT), (3, KRAFT)]


def test_an_undo_takes_back_what_this_run_did_newest_first(world):
    world.modes[1] = KRAFT
    report = Report()
    actor(world).act(step(), report)
    assert report.outcomes[0].outcome == Outcome.UNCHANGED
    acted = report.cut_off()
    world.orders.clear()
    assert actor(world).check_back(step(), acted).ok
    actor(world).undo(step(), acted, Report(acted))
    assert world.orders == [(3, MIGRATION), (2, MIGRATION)]
    assert actor(world).state(step(), acted) == StepState.NOT_DONE


def test_the_roll_before_the_copy_is_not_undone_once_it_began(world):
    way = (ZOOKEEPER, MIGRATION)
    world.modes = {1: MIGRATION, 2: MIGRATION, 3: ZOOKEEPER}
    acted = ActedRecord("01", (ItemOutcome("broker 1", Outcome.CONFIRMED),))
    assert "copying has begun" in actor(world).check_back(step(nodes=(1, 2), way=way), acted).sentence
    world.state, world.controller = "PRE_MIGRATION", 3
    assert actor(world).check_back(step(nodes=(1, 2), way=way), acted).ok


def test_another_deployer_than_was_approved_is_refused(world):
    found = actor(world).check(step(instruction="ansible-playbook other.yml"))
    assert not found.ok
    assert "ansible-playbook other.yml" in found.sentence
