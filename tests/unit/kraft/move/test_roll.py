"""Brokers restarted one at a time: in which order, what forbids the next, how a run that was cut off continues."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit.clients.brokers import ClusterMetadata
from kit.engine.commands import CommandTemplate
from kit.engine.model.clock import Clock
from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, StepState, WriteAttempt
from kit.errors import PlanError, RunError, Stopped
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.nodes import CommandNodes, NodeOrder
from kit.kraft.move.orders import NodeOperator, settings_digests
from kit.kraft.move.parameters import RollParameters
from kit.kraft.move.recipes import RECIPES
from kit.kraft.move.roll import RollActor
from kit.kraft.move.steps import roll_step
from kit.profile import KraftSettings
from tests.kraft_records import SOUND, broker, control, diff, difference, node, plain
from tests.unit.kraft.move.move_plans import PROFILE, SAME, WELL, cluster_with, members, metadata, partition
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

BROKERS = {number: f"host-{number}:9092" for number in (1, 2, 3)}
ZOOKEEPER, MIGRATION, KRAFT = "zookeeper", "migration", "kraft"


@dataclass
class RollingBrokers:
    """Three brokers that are restarted.

    ``dead``: what an order does not bring about; ``is_sick``: a partition has no leader.

    ``hits``: ordered broker → which one the deployer restarts instead; ``wrong``: the mode in which it starts all;
    ``missing``: who keeps an ISR from being full until it is ordered; ``late``: when a broker comes into which mode.
    """

    modes: dict[int, str | None]
    controller: int | None = None
    state: str = "MIGRATION"
    dead: set[int] = field(default_factory=set)
    is_sick: bool = False
    diff: MetadataDiff = SAME
    old: dict[str, list[str]] = field(default_factory=dict)
    orders: list[tuple[int, str]] = field(default_factory=list)
    at: float = 0.0
    hits: dict[int, int] = field(default_factory=dict)
    wrong: str | None = None
    missing: set[int] = field(default_factory=set)
    late: dict[float, tuple[int, str]] = field(default_factory=dict)
    began: Counter[int] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def look(self) -> ClusterState:
        listed = tuple(number for number, mode in self.modes.items() if mode in (ZOOKEEPER, MIGRATION))
        held = {"brokers": listed}
        if self.state == "MIGRATION":
            controls = control(**held)
        else:
            controls = plain(has_migration=True, controller_id=self.controller, **held)
        registered = [
            broker(node_id=number, is_migrating=mode == MIGRATION, incarnation_id=f"{number}-{self.began[number]}")
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
        return ClusterState(facts, BROKERS)

    def order(self, order, tell) -> str:
        self.orders.append((order.node_id, order.to_mode))
        number = self.hits.get(order.node_id, order.node_id)
        self.modes[number] = None if number in self.dead else self.wrong or order.to_mode
        self.missing.discard(number)
        self.began[number] += 1
        return "done"

    def metadata(self, cluster, address: str) -> ClusterMetadata:
        """Return each broker's answer: missing brokers are not in the ISR of partition 0, and 1 may have no leader."""
        isr = [number for number in BROKERS if number not in self.missing]
        first = partition(isr, leader=isr[0], replicas=tuple(BROKERS))
        return metadata(BROKERS, first, partition(leader=None if self.is_sick else 1, number=1))

    def zookeeper(self) -> ZookeeperInMemory:
        return members(**self.old)

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        for at in [each for each in self.late if each <= self.at]:
            number, mode = self.late.pop(at)
            self.modes[number] = mode


class Report:
    """Model a run's report: keep what was reported; ``stop_at`` the n-th write it raises."""

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
        """Return what a journal knows after a crash."""
        known = {it.item: it for it in self.outcomes}
        attempts = tuple(
            replace(it, outcome=known[it.item].outcome if it.item in known else None) for it in self.attempts
        )
        lost = [ItemOutcome(it.item, Outcome.UNKNOWN) for it in attempts if it.item not in known]
        return ActedRecord("01", (*known.values(), *lost), attempts)


@pytest.fixture
def world():
    return RollingBrokers({1: MIGRATION, 2: MIGRATION, 3: MIGRATION})


def cluster(zookeeper: ZookeeperInMemory | None = None, folder: Path | None = None) -> SimpleNamespace:
    kraft = KraftSettings(controllers="3000@host:9093", settings_dir=folder)
    return cluster_with(profile=replace(PROFILE, kraft=kraft), zookeeper=zookeeper)


def actor(world: RollingBrokers) -> RollActor:
    deployer = SimpleNamespace(needs_person=False, instruction=lambda *words: " ".join(words), order=world.order)
    reads = replace(WELL, metadata=world.metadata, diff=lambda cluster: world.diff)
    clock = Clock(monotonic=lambda: world.at, sleep=world.sleep)
    hands = NodeOperator(cluster(world.zookeeper()), deployer, world.said.append, clock, reads=reads)
    hands.read_state = lambda words: world.look()
    return RollActor(hands)


def step(nodes=(1, 2, 3), way=(MIGRATION, KRAFT), **changed):
    words = RollParameters(
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
        ("starts it in the wrong mode", "broker 1 was to go from migration to kraft mode, but runs in zookeeper mode."),
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
    assert str(raised.value).endswith(
        (
            "undo the run. The deployer said of broker 1: restarted",
            "resume the run. The deployer said of broker 1: restarted",
        )
    )
    assert world.orders == [(1, KRAFT)], "nothing more is ordered"
    (outcome,) = report.outcomes
    assert (outcome.outcome, outcome.error) == (Outcome.UNKNOWN, str(raised.value))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"is_sick": True}, "no leader or no full ISR: orders-1"),
        ({"diff": diff(difference("topic", "diverged"))}, "hold different values: diverged topic"),
        ({"old": {"shop": ["a"]}}, "group shop has live members"),
        ({"modes": {1: MIGRATION, 2: MIGRATION, 3: ZOOKEEPER}}, "does not expect"),
        ({"state": "PRE_MIGRATION"}, "log is PRE_MIGRATION"),
    ],
)
def test_nothing_is_ordered_while_something_is_wrong(world, wrong, told):
    vars(world).update(wrong)
    with pytest.raises(RunError, match=told):
        actor(world).act(step(), Report())
    assert world.orders == []


def test_a_broker_that_is_down_elsewhere_forbids_the_next(world):
    world.modes[3] = None
    with pytest.raises(RunError, match=r"broker 3 does not answer"):
        actor(world).act(step(nodes=(1, 2)), Report())
    assert world.orders == []


@pytest.mark.parametrize("item", [0, 1, 2])
def test_stopped_before_any_item_it_continues_with_what_is_left(world, item):
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
    first.hands.wait_until = die
    with pytest.raises(Cut):
        first.act(step(), report)
    actor(world).act(step(), Report(report.cut_off()))
    assert world.orders == [(1, KRAFT), (2, KRAFT), (3, KRAFT)]
    assert world.at < 10.0, "it came as ordered: nothing is waited for"


def test_an_order_that_no_one_saw_is_called_off_and_waited_for(world):
    world.dead = {1}
    report = Report()
    with pytest.raises(RunError):
        actor(world).act(step(), report)
    world.dead, before = set(), world.at
    actor(world).act(step(), Report(report.cut_off()))
    assert world.at - before >= 10.0
    assert world.orders == [(1, KRAFT), (1, KRAFT), (2, KRAFT), (3, KRAFT)]


def test_an_undo_undoes_what_this_run_did_newest_first(world):
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
    assert "the copy has begun" in actor(world).check_back(step(nodes=(1, 2), way=way), acted).sentence
    world.state, world.controller = "PRE_MIGRATION", 3
    assert actor(world).check_back(step(nodes=(1, 2), way=way), acted).ok


def test_another_deployer_than_was_approved_is_refused(world):
    found = actor(world).check(step(instruction="ansible-playbook other.yml"))
    assert not found.ok
    assert "ansible-playbook other.yml" in found.sentence


def test_a_plan_of_a_version_that_kept_no_digests_is_refused_with_what_to_do():
    made = step()
    old = replace(made, parameters={name: it for name, it in made.parameters.items() if name != "settings"})
    with pytest.raises(PlanError, match=r"'settings' is missing .* another version made the plan: make a new"):
        RECIPES[old.kind].remake(old)


# Deployers that hit another host, come late, or start a broker in an unwanted mode


def test_a_broker_that_was_restarted_instead_is_named_and_nothing_is_undone_until_it_is_repaired(world):
    world.hits = {1: 2}
    report = Report()
    told = (
        "broker 1 was to go to kraft mode, but another broker changed, which this run did not order: broker"
        " 2 from migration to"
    )
    with pytest.raises(RunError, match=told):
        actor(world).act(step(), report)
    assert world.orders == [(1, KRAFT)]
    assert world.at < 60.0, "it is not waited for"
    acted = report.cut_off()
    for _ in range(2):
        found = actor(world).check_back(step(), acted)
        assert (found.ok, "Start broker 2 in migration mode, then resume the run" in found.sentence) == (False, True)
        for walk in (
            lambda again: actor(world).undo(step(), acted, again),
            lambda again: actor(world).act(step(), again),
        ):
            with pytest.raises(RunError, match="broker 2 is in kraft mode, which this run did not order"):
                walk(Report(acted))
    assert world.orders == [(1, KRAFT)]
    world.modes[2], world.hits = MIGRATION, {}
    assert actor(world).check_back(step(), acted).ok
    actor(world).act(step(), Report(acted))
    assert set(world.modes.values()) == {KRAFT}


def test_a_broker_that_changes_between_two_orders_is_named(world):
    class Meanwhile(Report):
        def __call__(self, outcomes) -> None:
            world.modes[3] = KRAFT

    with pytest.raises(RunError, match="broker 2 is not restarted: broker 3 is in kraft mode, which this run did not"):
        actor(world).act(step(), Meanwhile())
    assert world.orders == [(1, KRAFT)]


def test_a_broker_that_was_restarted_in_its_mode_is_named_when_the_ordered_one_did_not_change(world):
    """From outside a crash looks the same: it is waited for."""
    rolling_with = actor(world)
    rolling_with.hands._deployer.order = lambda given, tell: world.began.update([2])
    with pytest.raises(RunError, match="broker 1 runs in migration mode, not kraft, and broker 2 was restarted, which"):
        rolling_with.act(step(), Report())


def test_a_third_mode_is_not_waited_for(world):
    world.wrong = ZOOKEEPER
    with pytest.raises(
        RunError,
        match=r"runs in zookeeper mode\. The run stopped. Find out with which settings the "
        "deployer starts",
    ):
        actor(world).act(step(), Report())
    assert (world.at, world.orders) == (0.0, [(1, KRAFT)])


@pytest.mark.parametrize(
    ("way", "mode", "wanted"),
    [
        ((MIGRATION, KRAFT), MIGRATION, KRAFT),
        ((MIGRATION, KRAFT), ZOOKEEPER, KRAFT),
        ((KRAFT, MIGRATION), KRAFT, MIGRATION),
        ((ZOOKEEPER, MIGRATION), KRAFT, "zookeeper or migration"),
    ],
)
def test_a_broker_that_the_step_does_not_move_has_to_be_there_already(world, way, mode, wanted):
    world.modes = {1: way[0], 2: way[0], 3: mode}
    told = f"broker 3 is in {mode} mode, which this step does not expect.*Start broker 3 in {wanted} mode"
    with pytest.raises(RunError, match=told):
        actor(world).act(step(nodes=(1, 2), way=way), Report())
    assert world.orders == []


def test_a_roll_is_not_verified_while_another_broker_is_back_in_the_mode_before(world):
    world.modes = {1: KRAFT, 2: KRAFT, 3: MIGRATION}
    found = actor(world).verify(step(nodes=(1, 2)))
    assert (found.ok, "broker 3 is in migration mode, which this step does not expect" in found.sentence) == (
        False,
        True,
    )


@pytest.mark.parametrize(("is_back", "late"), [(False, MIGRATION), (True, KRAFT)])
def test_an_order_that_comes_late_into_the_end_of_a_walk_is_named(world, is_back, late):
    """The first broker of the walk is restarted once more, after the last one has come."""
    report = Report()
    walking = actor(world)
    if is_back:
        walking.act(step(), report)
    first, acted = (3 if is_back else 1), report.cut_off()

    class AtTheEnd(Report):
        def __call__(self, outcomes) -> None:
            super().__call__(outcomes)
            if len(self.outcomes) == 3:
                world.modes[first] = late

    again = AtTheEnd(acted)
    with pytest.raises(RunError, match=f"broker {first} is in {late} mode, which this step does not expect"):
        walking.undo(step(), acted, again) if is_back else walking.act(step(), again)


def test_an_order_that_comes_while_the_run_waits_for_quiet_is_reported_and_undone(world):
    world.dead = {1}
    report = Report()
    with pytest.raises(RunError):
        actor(world).act(step(), report)
    acted = report.cut_off()
    world.dead, world.modes[1], world.orders = set(), MIGRATION, []
    world.late = {world.at + 8.0: (1, KRAFT)}
    before = world.at
    actor(world).undo(step(), acted, Report(acted))
    assert "These nodes changed meanwhile: broker 1: migration mode, now kraft mode." in world.said
    assert world.at - before >= 18.0, "quiet begins again"
    assert world.orders == [(1, MIGRATION)]
    assert actor(world).state(step(), acted) == StepState.NOT_DONE


# A broker that is down


def test_a_broker_that_is_down_is_ordered_first(world):
    world.modes[2], world.missing = None, {2}
    actor(world).act(step(), Report())
    assert world.orders == [(2, KRAFT), (1, KRAFT), (3, KRAFT)]


def test_also_where_it_would_have_been_last(world):
    world.modes, world.state, world.controller = {1: ZOOKEEPER, 2: ZOOKEEPER, 3: None}, "PRE_MIGRATION", 1
    actor(world).act(step(way=(ZOOKEEPER, MIGRATION)), Report())
    assert [number for number, _ in world.orders] == [3, 2, 1]


@pytest.mark.parametrize("other", [{"missing": {2, 3}}, {"modes": {1: MIGRATION, 2: None, 3: None}, "missing": {2, 3}}])
def test_a_broker_that_is_down_is_not_ordered_while_another_one_is_missing_too(world, other):
    world.modes[2] = None
    vars(world).update(other)
    with pytest.raises(
        RunError,
        match="broker 2 is not restarted: broker 1 reports: these partitions have no leader or no full ISR: orders-0",
    ):
        actor(world).act(step(), Report())
    assert world.orders == []


def test_a_broker_that_came_while_its_old_session_was_waited_for_is_not_ordered(world):
    world.modes[2] = None
    rolling_with, look = actor(world), world.look

    def looked(words) -> ClusterState:
        now = look()
        listed = () if world.at >= 5 else (2,)
        return replace(
            now, facts=replace(now.facts, control=replace(now.control, brokers=(*now.control.brokers, *listed)))
        )

    rolling_with.hands.read_state, world.late = looked, {5.0: (2, KRAFT)}
    rolling_with.act(step(), Report())
    assert world.orders == [(1, KRAFT), (3, KRAFT)]


# Settings files


def test_a_file_that_was_edited_in_the_midst_of_a_roll_is_refused_before_the_next_order(world, tmp_path):
    for number in BROKERS:
        (tmp_path / f"broker-{number}.kraft.properties").write_text(f"node.id={number}\nprocess.roles=broker\n")
    rolling_with = actor(world)
    rolling_with.hands.cluster = cluster(world.zookeeper(), tmp_path)
    words = step(settings=settings_digests(rolling_with.hands.cluster))
    edited = tmp_path / "broker-2.kraft.properties"

    def order(given, tell) -> str:
        edited.write_text(edited.read_text() + "num.network.threads=3\n")
        return world.order(given, tell)

    rolling_with.hands._deployer.order = order
    report = Report()
    told = (
        "broker 2 is not restarted: broker-2.kraft.properties, with which broker 2 would be started, was edited after"
    )
    with pytest.raises(RunError, match=told):
        rolling_with.act(words, report)
    assert world.orders == [(1, KRAFT)]
    assert [it.item for it in report.attempts] == ["broker 1"]
    edited.unlink()
    with pytest.raises(RunError, match=r"broker-2\.kraft\.properties, .* is gone or empty"):
        rolling_with.act(words, Report(report.cut_off()))


def test_an_undo_by_a_profile_that_has_lost_its_folder_of_settings_orders_nothing(world, tmp_path):
    """The way back compares no observations; the deployer would get no file."""
    for number in BROKERS:
        (tmp_path / f"broker-{number}.migration.properties").write_text(f"node.id={number}\nprocess.roles=broker\n")
    rolling_with, report = actor(world), Report()
    rolling_with.hands.cluster = cluster(world.zookeeper(), tmp_path)
    words = step(settings=settings_digests(rolling_with.hands.cluster))
    rolling_with.act(words, report)
    world.orders.clear()
    rolling_with.hands.cluster = cluster(world.zookeeper())
    acted = report.cut_off()
    with pytest.raises(
        RunError, match=r"broker-3\.migration\.properties, .* is gone or empty. Restore the file and resume"
    ):
        rolling_with.undo(words, acted, Report(acted))
    assert world.orders == []
