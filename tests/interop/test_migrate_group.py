"""One group along KIP-125's whole path and back, by plans that were approved, under load, with real members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_acl
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect
from kit.engine.execution.run import Run, RunResult
from kit.engine.lock import ZookeeperLock
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import ApprovalError, LockLost, NothingToDo, PlanError, RunError, StalePlan, TargetBusy, UnsafePlan
from kit.lab import Lab, faults
from kit.lab.members.old_consumers import OldMember
from kit.lab.process import wait_until
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import PATH, GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile
from tests.interop.group import Group
from tests.soak import IS_SOAK, Record, first, report, soak_only

MakeGroup = Callable[..., Group]
VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2", "1.1.1", "0.10.2.2")
SOAK = 60.0 if IS_SOAK else 3.0


@pytest.fixture
def profile(lab: Lab, tmp_path: Path) -> Profile:
    """In the lab's folder, as `offramp lab up` writes it: deploy.kind is lab."""
    path = lab.folder / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    return load_profile(file=path)


@pytest.fixture
def operations(profile: Profile, tmp_path: Path) -> Iterator[Operations]:
    with connect(profile) as cluster:
        yield Operations(cluster, tmp_path / "runs")


def old_group(group: MakeGroup, members: int = 3, partitions: int = 12) -> Group:
    shared = group(partitions)
    for version in VERSIONS[:members]:
        shared.add_old(1, version)
    shared.await_agreed()
    return shared


def request_of(shared: Group, to_stage: str, **wishes: object) -> GroupPlanRequest:
    return GroupPlanRequest(shared.name, to_stage, **{"soak_s": SOAK, "min_stable_s": 0.0, "observe_s": 1.0, **wishes})  # type: ignore[arg-type]


def approved(operations: Operations, plan: Plan) -> Plan:
    operations.approve(plan, plan.subject, plan.digest[:8], "second person")
    return plan


def move(operations: Operations, shared: Group, to_stage: str, **wishes: object) -> RunResult:
    ending = operations.begin(approved(operations, operations.make_plan(request_of(shared, to_stage, **wishes)))).act()
    ending.raise_unless()
    return ending


def assert_nothing_lost(shared: Group) -> dict[str, object]:
    shared.everyone = shared.lab.consumers(shared.name)
    shared.await_all_read()
    found = shared.summary()
    assert (found["lost"], found["overlaps"], found["unowned"]) == (0, 0, 0)
    assert found["is_exclusive"], shared.proof().describe()
    return found


def writes(shared: Group) -> dict[str, tuple[bytes, int]]:
    """The toggle and the locks as they are, with their versions."""
    client: KazooClient = shared.zookeeper
    paths = [shared.path("migration/mode"), "/offramp/locks"]
    return {path: (client.get(path)[0], client.get(path)[1].mzxid) for path in paths if client.exists(path)}


def test_the_whole_path_and_back_by_two_plans(group: MakeGroup, operations: Operations) -> None:
    """KIP-125's Migration Plan: OZKCCs of three releases, MEZKCCs, KCs in Python and Java, and back to OZKCCs."""
    shared = old_group(group, 5 if IS_SOAK else 3)
    there = move(operations, shared, "all KC")
    back = move(operations, shared, "OZKCC")
    assert_nothing_lost(shared)
    shared.assert_nothing_repeated()
    for ending in (there, back):
        record = load_run(operations.runs / ending.run_id)
        assert record.verified == {step.step_id for step in record.plan.steps}
        assert not record.notes


@soak_only
def test_there_back_and_there_again(group: MakeGroup, operations: Operations) -> None:
    """The offsets that MEZKCCs left in Kafka do not move and do not prevent their second coming: nothing is deleted
    or overridden.
    """
    shared = old_group(group, 2, 6)
    in_kafka = []
    for stage in ("all MEZKCC", "OZKCC", "all MEZKCC"):
        in_kafka.append(
            sum(each.kafka is not None for each in read_group_state(operations.cluster, shared.name).offsets.values())
        )
        ending = move(operations, shared, stage)
        assert not load_run(operations.runs / ending.run_id).plan.overridden
    assert in_kafka == [0, 6, 6]
    assert_nothing_lost(shared)
    shared.assert_nothing_repeated("stale", "rewind")


@pytest.mark.parametrize("offsets", first(["kafka", "both"]))
def test_an_old_member_that_commits_to_kafka_bars_the_plan(
    group: MakeGroup, operations: Operations, offsets: str
) -> None:
    shared = group(4)
    topic = next(iter(shared.topics))
    shared.add_old(1)
    shared._joined(shared.lab.start_old_consumers([OldMember(shared.name, topic, offsets=offsets)]))
    shared.await_agreed()
    with connect(operations.cluster.profile) as cluster:
        wait_until(
            lambda: (
                sum(each.kafka is not None for each in read_group_state(cluster, shared.name).offsets.values()) == 2
            ),
            "offsets in Kafka",
            90,
        )
        in_kafka = [
            number for (_, number), each in read_group_state(cluster, shared.name).offsets.items() if each.kafka
        ]
    with pytest.raises(
        UnsafePlan, match=r"storage_mode: Kafka's offsets of .* moved between two observations"
    ) as refused:
        operations.make_plan(request_of(shared, "all MEZKCC", observe_s=5.0))
    assert all(f"{topic}-{number}" in str(refused.value) for number in in_kafka)
    assert shared.everyone[1].consumer_id in str(refused.value)


@soak_only
def test_by_the_command_line_stage_by_stage(group: MakeGroup, profile: Profile, tmp_path: Path) -> None:
    shared = old_group(group, 2)
    runs = ["--runs", str(tmp_path), "--profile-file", str(profile.file)]

    def offramp(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*arguments, *runs])
        assert done.exit_code == code, done.output
        return done.output

    options = ["--soak", "1", "--min-stable", "0", "--observe", "1"]
    for stage in ("all MEZKCC", "Kafka coordination", "all MEZKCC", "OZKCC"):
        text = offramp("plan", "group", shared.name, "--to", stage, *options)
        digest = next(line.split()[-1] for line in text.splitlines() if line.startswith("digest:"))
        offramp("act", digest[:8], code=16)
        offramp("approve", digest[:8], "--subject", "another", "--digest", digest[:8], code=16)
        offramp("approve", digest[:8], "--subject", shared.name, "--digest", digest[:8])
        assert "VERIFIED" in offramp("act", digest[:8])
    listed = CliRunner().invoke(app, ["runs", "--runs", str(tmp_path), "--json"]).output
    assert listed.count('"VERIFIED"') == 4
    assert_nothing_lost(shared)


@soak_only
def test_a_run_is_undone_step_by_step(group: MakeGroup, operations: Operations) -> None:
    shared = old_group(group, 2)
    ending = move(operations, shared, "Kafka coordination")
    operations.run(ending.run_id).undo().raise_unless(RunState.UNDONE)
    assert not shared.zookeeper.exists(shared.path("migration/mode"))
    assert_nothing_lost(shared)


@soak_only
def test_stopped_at_every_event_and_resumed(group: MakeGroup, operations: Operations, record_property: Record) -> None:
    """Stop is pressed at each step's begin; each time another process continues, and all ends verified."""
    shared = old_group(group, 2)
    run = operations.begin(approved(operations, operations.make_plan(request_of(shared, "Kafka coordination"))))
    n_stops = 0
    seen: set[tuple[str | None, str]] = set()
    ending: RunResult | None = None
    while ending is None or ending.state is not RunState.VERIFIED:
        going, pressed = operations.run(run.run_id), []

        def press(event: Event, going: Run = going, pressed: list[int] = pressed) -> None:
            place = (event.step_id, event.event + event.state)
            if not pressed and place not in seen and event.event in ("moved", "acted"):
                seen.add(place)
                pressed.append(1)
                going.request_stop("test")

        going._tell = press
        ending = going.act() if n_stops == 0 else going.resume()
        n_stops += ending.state is RunState.STOPPED
        assert ending.state in (RunState.STOPPED, RunState.VERIFIED), ending
        assert n_stops < 60
    report(record_property, f"stopped {n_stops} times")
    assert n_stops > 8
    assert_nothing_lost(shared)


CHANGES: dict[str, Callable[[Group], object]] = {
    "offsets": lambda shared: shared.zookeeper.set(shared.path(f"offsets/{next(iter(shared.topics))}/0"), b"0"),
    "members": lambda shared: shared.add_python("ozkcc"),
    "toggle": lambda shared: shared.toggle("zookeeper"),
}


@pytest.mark.parametrize("changed", first(list(CHANGES)))
def test_a_change_since_the_plan_voids_its_approval(group: MakeGroup, operations: Operations, changed: str) -> None:
    shared = old_group(group, 2)
    shared.await_all_read()
    end = 1 + max(record["offset"] for record in shared.producer.acknowledged() if record["partition"] == 0)
    shared.await_(lambda: shared.offset(next(iter(shared.topics)), 0) == end, "the last commit, over which none comes")
    plan = approved(operations, operations.make_plan(request_of(shared, "all MEZKCC")))
    CHANGES[changed](shared)
    run = operations.begin(plan)
    with pytest.raises(StalePlan, match=changed):
        run.act()
    assert run.record.state is RunState.STALE
    assert set(shared.lab.consumers(shared.name)) == set(shared.everyone)


def test_nothing_is_written_before_an_approval(group: MakeGroup, operations: Operations) -> None:
    shared = old_group(group, 2)
    before = writes(shared)
    plan = operations.make_plan(request_of(shared, "Kafka coordination"))
    dry = operations.dry_run(plan)
    assert dry.steps[0].can_begin
    with pytest.raises(ApprovalError, match="was not approved"):
        operations.begin(plan)
    assert writes(shared) == before
    assert shared.lab.consumers(shared.name) == shared.everyone


def test_an_impossible_request_is_refused_by_name(group: MakeGroup, operations: Operations) -> None:
    shared = old_group(group, 2)
    with pytest.raises(NothingToDo, match="already"):
        operations.make_plan(request_of(shared, "OZKCC"))
    with pytest.raises(PlanError, match="has no member nobody"):
        operations.make_plan(request_of(shared, "all MEZKCC", members=("nobody",)))
    with pytest.raises(UnsafePlan, match=r"stable: The newest member registered .* 86400 s are required"):
        operations.make_plan(request_of(shared, "all MEZKCC", min_stable_s=86_400.0))
    plan = operations.make_plan(request_of(shared, "all MEZKCC", min_stable_s=86_400.0), overrides=["stable"])
    assert list(plan.overridden) == ["stable"]


@soak_only
def test_one_run_at_a_time(group: MakeGroup, operations: Operations, profile: Profile, tmp_path: Path) -> None:
    shared = old_group(group, 2)
    plan = approved(operations, operations.make_plan(request_of(shared, "all MEZKCC")))
    with lock_of(profile) as other:
        other.acquire([shared.name], "another-run")
        with pytest.raises(TargetBusy, match="run another-run on "):
            operations.begin(plan).act()
        other.assert_held()
    operations.begin(plan).act().raise_unless()


@contextmanager
def lock_of(profile: Profile) -> Iterator[ZookeeperLock]:
    with connect(profile) as cluster:
        yield ZookeeperLock(cluster)


def test_a_lock_that_was_deleted_stops_the_run(group: MakeGroup, profile: Profile) -> None:
    shared = old_group(group, 2)
    with lock_of(profile) as lock:
        lock.acquire([shared.name], "a-run")
        shared.zookeeper.delete(f"/offramp/locks/{shared.name}")
        with pytest.raises(LockLost, match="no longer exists"):
            lock.assert_held()


@soak_only
def test_a_member_that_dies_in_the_midst_stops_the_run(group: MakeGroup, operations: Operations) -> None:
    """A replaced member stays replaced; once the dead member is back, the run continues to its end."""
    shared = old_group(group, 3)
    run = operations.begin(approved(operations, operations.make_plan(request_of(shared, "Kafka coordination"))))
    victim = shared.members[-1]

    def kill(event: Event) -> None:
        if event.event == "verified" and event.step_id == "02-soak-mezkcc":
            faults.kill(victim)
            wait_until(lambda: victim.consumer_id not in ids(shared), "its session's end", 90)

    run._tell = kill
    ending = run.act()
    assert ending.state is RunState.FAILED
    with pytest.raises(RunError, match="expected 1 MEZKCC, 2 OZKCC, found 1 MEZKCC, 1 OZKCC"):
        ending.raise_unless()
    shared.add_old(1)
    run._tell = None
    run.resume().raise_unless()
    assert_nothing_lost(shared)
    shared.assert_nothing_repeated("stale", "rewind")


def ids(shared: Group) -> list[str]:
    children: list[str] = shared.zookeeper.get_children(shared.path("ids"))
    return children


def test_every_stage_is_on_the_path() -> None:
    from kit.groups.analyze.stages import STAGES

    assert [stage for stage in STAGES if stage in PATH] == list(PATH)


def test_offsets_by_the_command_line(group: MakeGroup, profile: Profile, tmp_path: Path) -> None:
    """Copied to Kafka when nobody is there, exported, reset, and undone."""
    shared = old_group(group, 1)
    topic = next(iter(shared.topics))
    shared.await_(lambda: all((shared.offset(topic, number) or 0) > 3 for number in range(12)), "offsets")
    common = ["--runs", str(tmp_path), "--profile-file", str(profile.file)]

    def offramp(*arguments: str, options: list[str] = common, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*arguments, *options])
        assert done.exit_code == code, done.output
        return done.output

    def carried_out(*plan: str) -> str:
        digest = next(line.split()[-1] for line in offramp(*plan).splitlines() if line.startswith("digest:"))
        offramp("approve", digest[:8], "--subject", shared.name, "--digest", digest[:8])
        return offramp("act", digest[:8])

    copy = ("plan", "offsets", "copy", "--from", "zookeeper", "--to", "kafka", "-g", shared.name)
    reset = ("plan", "offsets", "reset", "--store", "zookeeper", "-g", shared.name, "--to")
    assert "no_members" in offramp(*reset, "-2", "--allow-backwards", code=15)
    shared.producer.stop()
    shared.members[0].stop()
    assert "VERIFIED" in carried_out(*copy)
    file = tmp_path / "offsets.csv"
    offramp("plan", "offsets", "export", str(file), "--store", "kafka", "-g", shared.name, options=common[2:])
    assert len(file.read_text(encoding="utf-8").splitlines()) > 12
    before = shared.offset(topic, 0)
    assert "never_backwards" in offramp(*reset, "-2", code=15)
    assert "VERIFIED" in carried_out(*reset, "-2", "--allow-backwards")
    assert shared.offset(topic, 0) == (before or 0) - 2
    run_id = sorted(path.name for path in tmp_path.iterdir() if "reset" in path.name)[-1]
    assert "UNDONE" in offramp("undo", run_id)
    assert shared.offset(topic, 0) == before
    offramp(*reset, "yesterday", code=2)
    backup, of_group = tmp_path / "deleted.csv", ("--store", "kafka", "-g", shared.name)
    assert "VERIFIED" in carried_out("plan", "offsets", "delete", *of_group, "--backup", str(backup))
    offramp("plan", "offsets", "export", str(file), *of_group, options=common[2:], code=8)
    assert len(backup.read_text(encoding="utf-8").splitlines()) == 2 + 12
    assert "VERIFIED" in carried_out("plan", "offsets", "import", str(backup), "--store", "kafka")
    assert "VERIFIED" in carried_out("plan", "offsets", "delete", *of_group)
    (by_default,) = (tmp_path / "plans").glob("*.offsets.jsonl")
    assert len(by_default.read_text(encoding="utf-8").splitlines()) == 1 + 12


@soak_only
def test_old_consumers_do_not_start_behind_offsets_that_could_not_be_raised(
    group: MakeGroup, operations: Operations
) -> None:
    """A znode that nobody may write stays behind; once it can be written, the same run continues."""
    shared = old_group(group, 2)
    move(operations, shared, "all MEZKCC")
    path = shared.path(f"offsets/{next(iter(shared.topics))}/0")
    shared.zookeeper.set_acls(path, [make_acl("world", "anyone", read=True, admin=True)])
    frozen = int(shared.zookeeper.get(path)[0])
    with connect(operations.cluster.profile) as cluster:
        pair = (next(iter(shared.topics)), 0)
        wait_until(
            lambda: (read_group_state(cluster, shared.name).offsets[pair].kafka or 0) > frozen, "Kafka's offset", 90
        )
    run = operations.begin(approved(operations, operations.make_plan(request_of(shared, "OZKCC"))))
    ending = run.act()
    assert ending.state is RunState.FAILED
    assert path in ending.sentence
    assert [each.kind for each in shared.lab.consumers(shared.name)].count("old") >= 2
    assert {each.flavour for each in read_group_state(operations.cluster, shared.name).members} == {"MEZKCC"}
    shared.zookeeper.set_acls(path, OPEN_ACL_UNSAFE)
    operations.run(ending.run_id).resume().raise_unless()
    assert_nothing_lost(shared)
