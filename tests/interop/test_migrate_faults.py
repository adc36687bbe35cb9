"""Plans that are interrupted: the process killed, ZooKeeper or a broker gone for a while, another operator's hand."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kit.clients.cluster import connect
from kit.engine.execution.run import Run, RunResult
from kit.engine.model.clock import Clock
from kit.engine.model.event import Event
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import ApprovalError, ConnectError, TargetBusy
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile
from tests.interop.group import Group
from tests.soak import first, soak_only

MakeGroup = Callable[..., Group]
BUSY_SECONDS = 90.0


@pytest.fixture
def profile(lab: Lab) -> Profile:
    path = lab.folder / "offramp.toml"
    path.write_text(lab.profile_toml(), encoding="utf-8")
    return load_profile(file=path)


@pytest.fixture
def operations(profile: Profile, tmp_path: Path) -> Iterator[Operations]:
    with connect(profile) as cluster:
        yield Operations(cluster, tmp_path / "runs")


def begun(operations: Operations, group: MakeGroup, to_stage: str = "Kafka coordination") -> tuple[Group, Run]:
    shared = group(12)
    for version in ("1.1.1", "0.8.2.2"):
        shared.add_old(1, version)
    shared.await_agreed()
    plan = operations.make_plan(GroupPlanRequest(shared.name, to_stage, soak_s=1.0, min_stable_s=0.0, observe_s=1.0))
    operations.approve(plan, plan.subject, plan.digest[:8], "second person")
    return shared, operations.begin(plan)


def resumed(operations: Operations, run_id: str) -> RunResult:
    """By whoever comes next, once the dead one's lock has ended with its session."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            found = operations.run(run_id)
            return found.resume(operations.newer_approval(found.record))
        except TargetBusy:
            assert time.monotonic() < deadline
            time.sleep(0.5)


def assert_nothing_lost(shared: Group, jvm_may_be_stale: bool = False) -> None:
    """And nothing by two members at once, nor without its owner znode; but for old consumers that are stale owners."""
    shared.everyone = shared.lab.consumers(shared.name)
    shared.await_all_read()
    assert shared.summary()["lost"] == 0
    proof = shared.proof()
    stale = {each.consumer_id for each in shared.everyone if jvm_may_be_stale and not each.events("METRICS")}
    beside = proof.overlaps.select("consumer", "successor").rows()
    assert [pair for pair in beside if not stale.intersection(pair)] == []
    assert set(proof.unowned_consumption.filter("is_registered")["consumer"]) <= stale


def at(run: Run, step_id: str, event: str, do: Callable[[], object]) -> None:
    """Once, when that event of that step is written."""
    done: list[bool] = []

    def tell(found: Event) -> None:
        if not done and found.step_id == step_id and event in (found.event, found.state):
            done.append(True)
            do()

    run._tell = tell


ACTING = """
import os, signal, sys
from pathlib import Path
from kit.clients.cluster import connect
from kit.operations.operations import Operations
from kit.profile import load_profile

profile, root, run_id, step_id, name = sys.argv[1:]
reached = []

def tell(event):
    if reached:
        os.kill(os.getpid(), signal.SIGSTOP)
    if event.step_id == step_id and name in (event.event, event.state):
        reached.append(event)

with connect(load_profile(file=profile)) as cluster:
    run = Operations(cluster, Path(root)).run(run_id)
    run._tell = tell
    run.act()
"""
"""Carries a run out, and is stalled at the event after the one that is named: it never comes to its end."""


def acting(folder: Path, profile: Profile, step_id: str, event: str) -> subprocess.Popen[bytes]:
    """A process of its own that carries the run out until then."""
    arguments = [str(profile.file), str(folder.parent), folder.name, step_id, event]
    return subprocess.Popen([sys.executable, "-c", ACTING, *arguments])


@pytest.mark.parametrize(
    ("step_id", "event"), first([("04-toggle-kafka", "acted"), ("01-replace-canary-mezkcc", "ACTING")])
)
def test_killed_in_the_midst_of_an_act_and_resumed(
    group: MakeGroup, operations: Operations, profile: Profile, step_id: str, event: str
) -> None:
    """kill -9: the cluster is asked how far it came, and nothing is done twice."""
    shared, run = begun(operations, group)
    process = acting(run.folder, profile, step_id, event)
    try:
        wait_until(lambda: _has(run.folder, step_id, event), f"{event} of {step_id}", 150, lambda: _alive(process))
    finally:
        process.kill()
        process.wait()
    assert load_run(run.folder).is_at_work
    ending = resumed(operations, run.run_id)
    ending.raise_unless()
    registered = shared.zookeeper.get_children(shared.path("ids"))
    n_mezkcc = sum(each.consumer_id in registered for each in members(shared))
    assert n_mezkcc == len(shared.zookeeper.get_children(shared.path("migration/ids"))) == 2
    assert_nothing_lost(shared)


def members(shared: Group) -> list[object]:
    return [each for each in shared.lab.consumers(shared.name) if each.process.running]


def _has(folder: Path, step_id: str, event: str) -> bool:
    events = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return any(step_id in line and f'"{event}"' in line for line in events)


def _alive(process: subprocess.Popen[bytes]) -> None:
    assert process.poll() is None


def test_zookeeper_does_not_answer_for_a_while(group: MakeGroup, operations: Operations) -> None:
    """The run ends without a guess; when ZooKeeper is back it continues."""
    shared, run = begun(operations, group)
    server = shared.lab.servers.zookeeper.process
    at(run, "03-replace-all-mezkcc", "CHECKING", server.pause)
    try:
        ending = run.act()
    finally:
        server.resume()
    assert ending.state in (RunState.FAILED, RunState.STOPPED)
    await_overdue_sessions_ended(shared.lab.zookeeper_connect)  # Until then the owners of before are still there.
    wait_until(lambda: is_settled(operations, shared), "the group recovers", 90)
    resumed(operations, run.run_id).raise_unless()
    # An old consumer reads on while ZooKeeper is away, and for a moment after its owner znodes have ended.
    assert_nothing_lost(shared, jvm_may_be_stale=True)


DYING = """
import os, signal, sys
from kazoo.client import KazooClient

client = KazooClient(sys.argv[1], timeout=2.0)
client.start(30)
client.create(sys.argv[2], ephemeral=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def await_overdue_sessions_ended(connect: str) -> None:
    """Wait until a server that was paused has ended all sessions that ran out meanwhile.

    ZooKeeper ends sessions in the order of their deadlines (SessionTrackerImpl). So a session that began after the
    pause, and whose client is dead, ends after all of them.
    """
    path = "/begun-after-the-pause"
    died = subprocess.run([sys.executable, "-c", DYING, connect, path], check=False, timeout=BUSY_SECONDS)
    assert died.returncode == -signal.SIGKILL
    client = KazooClient(connect)
    client.start(BUSY_SECONDS)
    try:
        wait_until(lambda: client.exists(path) is None, "the later session's end", BUSY_SECONDS)
    finally:
        client.stop()
        client.close()


def is_settled(operations: Operations, shared: Group) -> bool:
    try:
        found = read_group_state(operations.cluster, shared.name)
        return found.is_settled and found.counts == {"OZKCC": 1, "MEZKCC": 1}
    except ConnectError:
        return False


@soak_only
def test_a_broker_restarts(group: MakeGroup, operations: Operations) -> None:
    shared, run = begun(operations, group)

    def restart() -> None:
        faults.kill(faults.broker(shared.lab, 1))
        faults.restart_broker(shared.lab, 1)

    at(run, "04-toggle-kafka", "acted", restart)
    ending = run.act()
    if ending.state is not RunState.VERIFIED:
        resumed(operations, run.run_id).raise_unless()
    assert_nothing_lost(shared)


@soak_only
def test_another_operator_writes_the_toggle(group: MakeGroup, operations: Operations) -> None:
    """Not what was planned: the run stops before its own write, and the way back is open."""
    shared, run = begun(operations, group)
    at(run, "03-replace-all-mezkcc", "verified", lambda: shared.toggle("zookeeper"))
    ending = run.act()
    assert ending.state is RunState.FAILED
    assert "another operator or tool set it" in ending.sentence
    assert shared.zookeeper.get(shared.path("migration/mode"))[0] == b"zookeeper"
    operations.run(run.run_id).undo().raise_unless(RunState.UNDONE)
    assert_nothing_lost(shared)


@soak_only
@pytest.mark.parametrize("hours", [24, -3])
def test_the_operators_clock_jumps_in_the_midst(group: MakeGroup, operations: Operations, hours: int) -> None:
    """The run stops after what is being done: by the wrong clock its approval has expired, or is not given yet.

    Whether that clock or the approval's was wrong can't be known. A person has to approve the plan again.
    """
    shared, run = begun(operations, group)
    wrong = timedelta()
    clock = Clock(now=lambda: datetime.now(UTC) + wrong)

    def jump() -> None:
        nonlocal wrong
        wrong = timedelta(hours=hours)

    jumping = Operations(operations.cluster, operations.runs, clock=clock).run(run.run_id)
    at(jumping, "01-replace-canary-mezkcc", "acted", jump)
    ending = jumping.act()
    assert ending.state in (RunState.FAILED, RunState.STOPPED)
    assert "clock trouble" in ending.sentence or "expired" in ending.sentence
    assert read_group_state(operations.cluster, shared.name).counts == {"OZKCC": 1, "MEZKCC": 1}
    assert not load_run(run.folder).is_at_work
    with pytest.raises(ApprovalError, match="check whether it was set back" if hours > 0 else "clock trouble"):
        resumed(operations, run.run_id)
    plan = load_run(run.folder).plan
    operations.approve(plan, plan.subject, plan.digest[:8], "third person")
    resumed(operations, run.run_id).raise_unless()
    assert_nothing_lost(shared)
