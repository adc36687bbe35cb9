"""Many groups: scanned and planned at once, toggled in waves, stopped by the brake, toggled back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

import widgets
from kit.clients.cluster import connect
from kit.engine.lock import LOCKS, ZookeeperLock
from kit.engine.model.plan import Plan
from kit.engine.model.progress import evidence
from kit.engine.model.states import RunState
from kit.engine.rendering.text import plan_text
from kit.errors import InputError, LockLost, NotFound, PlanError, UnsafePlan
from kit.groups import views
from kit.groups.snapshot import observe
from kit.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.python import PythonMember
from kit.lab.process import wait_until
from kit.moves.fleet.plan import FleetPlanRequest, fleet, survey
from kit.moves.fleet.wave import NOT_FOLLOWING
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import GroupPlanRequest
from kit.moves.group.toggle import not_following
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.interop.group import gauges_of
from tests.soak import IS_SOAK, Record, report, soak_only

GROUPS, PER_PROCESS, MANY = (50, 25, 1000) if IS_SOAK else (16, 8, 1000)
WAVE, N_WAVES = (50, 2) if IS_SOAK else (6, 3)
"""One group more than ``GROUPS`` is there, in a process of its own: the last wave's."""
TOPIC = "fleet-orders"
PATIENT = {"zookeeper.session.timeout.ms": "30000", "coordination.migration.session.timeout.ms": "30000"}
"""A test that stands a member still makes its plans within its sessions."""


@pytest.fixture(scope="module")
def fleet_lab() -> Iterator[Lab]:
    """One of its own: a fleet plan is for all groups."""
    with Lab(brokers=1) as running:
        running.create_topics({TOPIC: 2})
        yield running


@pytest.fixture
def operations(fleet_lab: Lab, tmp_path: Path) -> Iterator[Operations]:
    path = fleet_lab.folder / "offramp.toml"
    path.write_text(fleet_lab.profile_toml(), encoding="utf-8")
    with connect(load_profile(file=path)) as cluster:
        yield Operations(cluster, tmp_path / "runs")


@pytest.fixture(scope="module")
def started(fleet_lab: Lab) -> Iterator[list[Consumer]]:
    """Real groups of one MEZKCC each, in two processes, and one more in a process of its own."""
    names = [f"fleet-{number:03d}" for number in range(GROUPS)]
    started: list[Consumer] = []
    for start in range(0, GROUPS, PER_PROCESS):
        started += fleet_lab.start_python_members(one_of_each(names[start : start + PER_PROCESS]), wait=False)
    started += fleet_lab.start_python_members(one_of_each(["fleet-999"]), wait=False)
    for each in started:
        each.await_ready(120)
    producer = fleet_lab.start_producer(TOPIC, 50)
    await_in_kafka(started)
    yield started
    producer.stop()


def one_of_each(groups: Sequence[str]) -> list[PythonMember]:
    return [PythonMember("mezkcc", name, [TOPIC], settings=PATIENT) for name in groups]


@pytest.fixture
def members(started: list[Consumer], operations: Operations) -> list[Consumer]:
    """All are well under ZooKeeper's assignment, whatever the test before left."""
    for name in [name for name, mode in modes(operations).items() if mode == "kafka"]:
        operations.cluster.zookeeper.set(f"/consumers/{name}/migration/mode", b"zookeeper")
    await_in_kafka(started)
    wait_until(lambda: n_ready(operations) == len(started), "all are ready", 120)
    return started


def await_in_kafka(members: list[Consumer]) -> None:
    wait_until(
        lambda: all(gauges_of(each)["KafkaOwnedPartitionsCount"] == 2 for each in members), "all in Kafka groups", 120
    )


def await_coordination(members: list[Consumer], by_kafka: int) -> None:
    """Members say what they do a quarter of a second later."""
    gauge = "ActiveKafkaCoordinationCount"
    wait_until(lambda: all(gauges_of(each)[gauge] == by_kafka for each in members), f"{gauge} {by_kafka} of all", 60)


def approved(operations: Operations, plan: Plan) -> Plan:
    operations.approve(plan, plan.subject, plan.digest[:8], "second person")
    return plan


def request_of(to: str, wave: int = WAVE, **wishes: object) -> FleetPlanRequest:
    return FleetPlanRequest(to, r"fleet-\d+", wave=wave, pause_s=1.0, min_stable_s=0.0, max_read_ms=10_000.0, **wishes)  # type: ignore[arg-type]


def n_ready(operations: Operations) -> int:
    return fleet(survey(operations.cluster, request_of("kafka")), "kafka", 0.0)["not_ready_reason"].null_count()


def n_kafka(operations: Operations, names: Sequence[str]) -> int:
    return sum(not_following(read_group_state(operations.cluster, name), "kafka") is None for name in names)


def modes(operations: Operations) -> dict[str, str]:
    client: KazooClient = operations.cluster.zookeeper
    groups = [name for name in client.get_children("/consumers") if name.startswith("fleet-")]
    paths = {name: f"/consumers/{name}/migration/mode" for name in groups}
    return {name: client.get(path)[0].decode() for name, path in paths.items() if client.exists(path)}


def test_groups_in_waves_and_back_at_once(operations: Operations, members: list[Consumer]) -> None:
    plan = operations.make_plan(request_of("kafka"))
    assert [step.kind for step in plan.steps] == ["wave", *["circuit breaker", "wave"] * (N_WAVES - 1)]
    operations.begin(approved(operations, plan)).act().raise_unless()
    assert sorted(modes(operations)) == sorted(each.group for each in members)
    await_coordination(members, 1)
    back = operations.make_plan(request_of("zookeeper", wave=0))
    assert len(back.steps) == 1
    operations.begin(approved(operations, back)).act().raise_unless()
    assert set(modes(operations).values()) == {"zookeeper"}
    await_coordination(members, 0)


@soak_only
def test_a_group_that_fails_in_its_wave_stops_the_run(operations: Operations, members: list[Consumer]) -> None:
    """The first wave's groups stay where they are until somebody takes them back."""
    victim = members[-1]
    names = tuple(each.group for each in members) if IS_SOAK else ("fleet-000", "fleet-001", "fleet-999")
    plan = operations.make_plan(request_of("kafka", groups=names, wave=len(names) - 1, step_timeout_s=8.0))
    run = operations.begin(approved(operations, plan))
    run._tell = lambda event: victim.pause() if event.step_id == "wave-01-pause" and event.event == "verified" else None
    try:
        ending = run.act()
        assert ending.state is RunState.FAILED
        assert "fleet-999" in ending.sentence
        told = [evidence(event).get(NOT_FOLLOWING) for event in run.record.events if event.outcome == "failed"]
        assert [list(each) for each in told] == [["fleet-999"]]
    finally:
        victim.resume()
    assert {name: modes(operations)[name] for name in names} == dict.fromkeys(names, "kafka")
    wait_until(lambda: n_kafka(operations, names) == len(names), "it is back, and follows", 120)
    operations.run(run.run_id).undo().raise_unless(RunState.UNDONE)
    assert set(modes(operations).values()) == {"zookeeper"}


def test_the_brake_stops_the_waves(operations: Operations, members: list[Consumer]) -> None:
    """A read of the cluster that takes too long, then lag that grows because the first wave's member halts."""
    names = ("fleet-004", "fleet-999")
    halting = next(each for each in members if each.group == names[0])
    slow = FleetPlanRequest("kafka", groups=names, wave=1, pause_s=30.0, min_stable_s=0.0, max_read_ms=0.01)
    lagging = replace(slow, max_read_ms=10_000.0, lag_tolerance=20)
    for wanted, does, told in ((slow, str, "a read of the cluster took"), (lagging, halting.pause, "the lag of group")):
        run = operations.begin(approved(operations, operations.make_plan(wanted)))
        run._tell = lambda event, does=does: does() if (event.step_id, event.state) == BRAKING else None  # type: ignore[misc]
        try:
            ending = run.act()
        finally:
            halting.resume()
        assert ending.state is RunState.FAILED
        assert f"the circuit breaker: {told}" in ending.sentence
        assert modes(operations)[names[0]] == "kafka"
        assert modes(operations).get(names[1]) != "kafka"
        operations.run(run.run_id).undo().raise_unless(RunState.UNDONE)
        wait_until(lambda: n_ready(operations) == len(members), "all are ready again", 120)


BRAKING = ("wave-01-pause", "CHECKING")


@pytest.fixture
def many(fleet_lab: Lab) -> Iterator[KazooClient]:
    """A thousand registered groups, for as long as this client lives."""
    client = KazooClient(fleet_lab.zookeeper_connect)
    client.start(15)
    try:
        register_many(client)
        yield client
    finally:
        client.stop()
        client.close()


def test_a_thousand_groups_are_scanned_planned_and_shown_in_ten_seconds(
    operations: Operations, many: KazooClient, record_property: Record
) -> None:
    """By this process's own time: what else is at work on the machine doesn't count."""
    began = time.process_time()
    fleet = widgets.open_fleet(operations.cluster.profile, operations.runs)
    try:
        view = widgets.fleet_wizard(fleet)
        fleet.set_request("kafka", pattern="many-.*", wave=50, min_stable_s=0.0)
        fleet.prepare()
        shown = view.changes(fleet.plan)
        text = plan_text(fleet.plan)
        seconds = time.process_time() - began
        report(record_property, f"{MANY} groups: {seconds:.1f} s of the processor, {len(shown):,} characters")
        assert len(fleet.plan.targets) == MANY
        assert fleet.plan.subject == f"{MANY} groups"
        assert [step.can_begin for step in fleet.dry.steps] == [True] * len(fleet.plan.steps)
        assert f"many-{MANY - 1:04d}" in text
        assert f"many-{MANY - 1:04d}" in shown
        assert shown.count("<tr>") == 1 + len(fleet.plan.steps)
        assert seconds < 10
    finally:
        fleet.close()


def test_the_lock_of_many_groups_is_read_by_one_request(operations: Operations, fleet_lab: Lab) -> None:
    """And a sync before it, by ZooKeeper's own count, which has this session's pings and reads, too."""
    lock, other = ZookeeperLock(operations.cluster), ZookeeperLock(operations.cluster)
    lock.acquire([f"many-{number:04d}" for number in range(300)], "one")
    try:
        lock.assert_held()
        before = n_received(fleet_lab, operations)
        for _ in range(100):
            lock.assert_held()
        assert 200 <= n_received(fleet_lab, operations) - before < 300
        other.acquire(["another"], "other")
        lock.assert_held()
        other.release()
        operations.cluster.zookeeper.delete(f"{LOCKS}/many-0150")
        with pytest.raises(LockLost, match="many-0150 no longer exists"):
            lock.assert_held()
    finally:
        lock.release()


def n_received(lab: Lab, operations: Operations) -> int:
    """Return what ZooKeeper counts for the session of these operations."""
    session_id, _ = operations.cluster.zookeeper.client_id
    (line,) = [each for each in lab.servers.zookeeper.command("cons").splitlines() if f"sid=0x{session_id:x}," in each]
    return int(line.partition("recved=")[2].partition(",")[0])


def register_many(client: KazooClient) -> None:
    """Groups of one registered MEZKCC that owns both partitions; without a Kafka group."""
    registration = {"version": 1, "subscription": {TOPIC: 1}, "pattern": "static", "timestamp": "1700000000000"}
    for start in range(0, MANY, 50):
        transaction = client.transaction()
        for number in range(start, start + 50):
            group = f"many-{number:04d}"
            member, base = f"{group}_host-1-a", f"/consumers/{group}"
            for path in ("", "/ids", "/owners", f"/owners/{TOPIC}", "/offsets", "/migration", "/migration/ids"):
                transaction.create(base + path, b"")
            payload = json.dumps(registration).encode()
            transaction.create(f"{base}/ids/{member}", payload, ephemeral=True)
            transaction.create(f"{base}/migration/ids/{member}", payload, ephemeral=True)
            for partition in range(2):
                transaction.create(f"{base}/owners/{TOPIC}/{partition}", f"{member}-0".encode(), ephemeral=True)
        assert all(result is not None for result in transaction.commit())


def test_a_group_in_trouble_does_not_prevent_a_rollback(operations: Operations, members: list[Consumer]) -> None:
    """Its ZooKeeper offset is behind, which blocks the way there: nothing reads that one but old consumers."""
    name, client = "fleet-003", operations.cluster.zookeeper
    plan = operations.make_plan(request_of("kafka", groups=(name,)))
    operations.begin(approved(operations, plan)).act().raise_unless()
    path, member = f"/consumers/{name}/offsets/{TOPIC}/0", next(each for each in members if each.group == name)
    member.pause()
    try:
        client.set(path, b"0")
        assert "Kafka" in str(views.blockers(observe(operations.cluster, name))["sentence"].to_list())
        back = operations.make_plan(request_of("zookeeper", wave=0))
        assert name in back.targets
        assert operations.dry_run(back).steps[0].can_begin
    finally:
        member.resume()
    operations.begin(approved(operations, back)).act().raise_unless()
    assert modes(operations)[name] == "zookeeper"


def test_an_impossible_request_is_refused_by_name(operations: Operations, members: list[Consumer]) -> None:
    with pytest.raises(InputError, match="not to 'elsewhere'"):
        request_of("elsewhere")
    with pytest.raises(NotFound, match="no group 'nobody'"):
        operations.make_plan(request_of("kafka", groups=("nobody",)))
    with pytest.raises(PlanError, match="the group's stage is all MEZKCC"):
        operations.make_plan(request_of("zookeeper", groups=("fleet-002",)))
    with pytest.raises(PlanError, match="the newest member registered"):
        operations.make_plan(FleetPlanRequest("kafka", r"fleet-\d+", groups=("fleet-002",), min_stable_s=86_400.0))
    with pytest.raises(UnsafePlan, match="all_at_once"):
        operations.make_plan(request_of("kafka", wave=0))


SECRET_LIKE = ("reset-password", "auth.secret", "rotate-credentials", "user_api-key")


@soak_only
def test_groups_named_like_secrets_go_in_waves_and_all_come_back_at_once(
    operations: Operations, fleet_lab: Lab
) -> None:
    """No name is in the way of the emergency exit, nor in that of the evidence."""
    wanted = [PythonMember("mezkcc", name, [TOPIC]) for name in SECRET_LIKE]
    started = fleet_lab.start_python_members(wanted, wait=False)
    try:
        for each in started:
            each.await_ready(120)
        await_in_kafka(started)
        there = FleetPlanRequest(
            "kafka", groups=SECRET_LIKE, wave=2, pause_s=0.5, min_stable_s=0.0, max_read_ms=10_000.0
        )
        first = operations.begin(approved(operations, operations.make_plan(there)))
        first.act().raise_unless()
        assert n_kafka(operations, SECRET_LIKE) == len(SECRET_LIKE)
        back = FleetPlanRequest(
            "zookeeper", "|".join(map(re.escape, SECRET_LIKE)), wave=0, min_stable_s=0.0, max_read_ms=10_000.0
        )
        second = operations.begin(approved(operations, operations.make_plan(back)))
        second.act().raise_unless()
        assert n_kafka(operations, SECRET_LIKE) == 0
        single = operations.make_plan(
            GroupPlanRequest(SECRET_LIKE[0], "Kafka coordination", min_stable_s=0.0, observe_s=0.5)
        )
        run = operations.begin(approved(operations, single))
        run.act().raise_unless()
        assert n_kafka(operations, SECRET_LIKE[:1]) == 1
        run.undo().raise_unless(RunState.UNDONE)
        assert n_kafka(operations, SECRET_LIKE) == 0
        for each in (first, second, run):
            assert {event.withheld for event in each.record.events} == {None}
        items = {event.item for event in first.record.events if event.event == "acted"}
        assert all(any(name in str(item) for item in items) for name in SECRET_LIKE)
    finally:
        for each in started:
            each.stop()
