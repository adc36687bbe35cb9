"""Moves of protocols while coordinators and members end: three brokers of Kafka 4.4, and the long form with kills."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import pytest

from kit.clients.cluster import Cluster, connect
from kit.engine.execution.run import Run, RunResult
from kit.engine.model.event import Event
from kit.engine.model.states import RunState
from kit.errors import ApprovalError, ConnectError, ReadError, RunError, TargetBusy, UnsafePlan
from kit.lab import Lab, faults
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember
from kit.moves.protocol.plan import ProtocolPlanRequest
from kit.operations.operations import Operations
from kit.profile import load_profile
from kit.protocol.facts import ROLLING, STOPPED, Answers
from tests.servers.awaiting import awaited
from tests.servers.protocol_group import ProtocolGroup, assert_each_once
from tests.servers.tuned_lab import TunedLab
from tests.soak import Record, report, soak_only

pytestmark = pytest.mark.timeout(3 * 3600)

ROUNDS, GROUPS, BROKER_EVERY, STOPPED_EVERY, MOST_TRIES = 200, 5, 10, 5, 20
RATE, KILLED = 40.0, 0.3
"""Records per second of each of several groups; the share of ordered stops that are kills."""
DISTURBED = (ApprovalError, ConnectError, ReadError, RunError, UnsafePlan)
SEED, READY = 848, Answers(clients_ready=True)
SESSION, SESSION_MS = "session.timeout.ms", "20000"
"""A starved machine delays heartbeats for seconds. A running member whose session ended reads on for a while."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with TunedLab({f"group.consumer.{SESSION}": SESSION_MS}, brokers=3, kraft=True) as running:
        (running.folder / "offramp.toml").write_text(running.profile_toml(), encoding="utf-8")
        yield running


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with connect(load_profile(file=lab.folder / "offramp.toml")) as connected:
        yield connected


def started(lab: Lab, cluster: Cluster, name: str, copies: int = 3, rate: float = 100.0) -> ProtocolGroup:
    """Two members of librdkafka and one of Java, classic ones, with a short session.

    The default of 45 s is the pause that a killed member leaves.
    """
    group, settings = ProtocolGroup(lab, cluster, name, rate, copies), {SESSION: SESSION_MS}
    java = JavaMember(name, (name,), f"{name}-java", version="4.4.0", level="WARN", settings=settings)
    group.start([java, *(NewMember(name, [name], f"{name}-{number}", settings=settings) for number in range(2))])
    return group


def moved(
    group: ProtocolGroup,
    runs: Path,
    to: str,
    tell: Callable[[Event], None],
    how: str = ROLLING,
    tries: int = MOST_TRIES,
) -> list[str]:
    """Plan and execute; resume until the run is verified. Return why it stopped each time.

    A coordinator that moves refuses reads for a while, and the lock of a run is lost with it.
    """
    run, halts = None, list[str]()
    group.settled(3)
    while True:
        try:
            if run is None or run.record.state in (RunState.APPROVED, RunState.STALE):
                run = begun(group, runs, to, tell, how)
                unlocked(run.act).raise_unless(RunState.VERIFIED)
            else:
                unlocked(run.resume).raise_unless(RunState.VERIFIED)
            return halts
        except DISTURBED as error:
            halts.append(f"{group.name}: {type(error).__name__}: {error}")
            if len(halts) == tries:
                raise
            group.settled_as_started()


def unlocked(verb: Callable[[], RunResult]) -> RunResult:
    """A lock that was lost with its coordinator ends by itself after some seconds; until then it is another run's."""

    def tried() -> RunResult | None:
        try:
            return verb()
        except TargetBusy:
            return None

    result = awaited(tried, lambda found: found is not None, "the lock of the run before to end")
    assert result is not None
    return result


def begun(group: ProtocolGroup, runs: Path, to: str, tell: Callable[[Event], None], how: str) -> Run:
    """An approved run, not executed yet."""
    plan = Operations(group.cluster, runs).make_plan(
        ProtocolPlanRequest(group.name, to, soak_s=0.0, observe_s=0.5, quiet_s=1.0, answers=READY, how=how)
    )
    desk = Operations(group.cluster, runs, tell=tell)
    desk.approve(plan, plan.subject, plan.digest[:8], "second person")
    return desk.begin(plan)


def restart_coordinator(lab: Lab, group: ProtocolGroup) -> None:
    """kill -9 of the group's coordinator; return once another broker coordinates the group, and it runs again."""
    was = group.state().coordinator
    assert was is not None
    victim = faults.broker(lab, was)
    faults.kill(victim)
    awaited(group.coordinator, lambda now: now not in (None, was), "another coordinator")
    victim.launch()
    victim.await_started()
    lab.servers.await_known(victim)
    awaited(lambda: n_behind(lab), lambda left: left == 0, "all replicas in sync")


def n_behind(lab: Lab) -> int:
    """Partitions without all their replicas in sync."""
    found = (each for topic in lab.admin.list_topics(timeout=30).topics.values() for each in topic.partitions.values())
    return sum(len(each.isrs) < len(each.replicas) for each in found)


@soak_only
def test_a_coordinator_that_moves_in_the_midst_of_a_run(lab, cluster, tmp_path):
    """Its broker is killed between two replacements, both ways: the run, resumed if it stopped, is verified."""
    group = started(lab, cluster, "coordinator-moves")
    for to in ("consumer", "classic"):
        left = ["member 1 of 2" if to == "consumer" else "member 1 of 3"]

        def end_coordinator(event: Event, left: list[str] = left) -> None:
            if event.event == "acted" and event.item in left:
                left.clear()
                restart_coordinator(lab, group)

        moved(group, tmp_path / "runs", to, end_coordinator)
        assert group.settled(3).stage == to
        assert not left
    assert_each_once(group)


@soak_only
@pytest.mark.parametrize("policy", ["bidirectional", "disabled"])
def test_moves_there_and_back_on_brokers_of_4_1(policy, tmp_path):
    """One by one where the brokers convert groups with members; else that is refused, and all members stop."""
    with TunedLab({"group.consumer.migration.policy": policy}, kraft=True, kafka_version="4.1.1") as lab:
        (lab.folder / "offramp.toml").write_text(lab.profile_toml(), encoding="utf-8")
        with connect(load_profile(file=lab.folder / "offramp.toml")) as cluster:
            group = started(lab, cluster, "older-brokers", copies=1)
            how = ROLLING if policy == "bidirectional" else STOPPED
            if how == STOPPED:
                with pytest.raises(UnsafePlan, match="k848_policy"):
                    moved(group, tmp_path / "runs", "consumer", lambda event: None, tries=1)
            for to in ("consumer", "classic"):
                moved(group, tmp_path / "runs", to, lambda event: None, how)
                assert (group.settled(3).stage, group.state().protocol.group_type) == (to, to)
            assert_each_once(group)


@dataclass
class Walk:
    """One group that is moved there and back again and again, while members and coordinators are killed."""

    lab: Lab
    group: ProtocolGroup
    runs: Path
    chance: random.Random
    kills: int = 0
    brokers: int = 0
    halts: list[str] = field(default_factory=list)

    def go(self, turns: int, one_broker: Lock) -> None:
        """Move ``turns`` times. ``one_broker``: at most one coordinator is down, amid the runs of the other groups."""
        for turn in range(turns):
            if turn % BROKER_EVERY == BROKER_EVERY - 1:
                with one_broker:
                    restart_coordinator(self.lab, self.group)
                self.brokers += 1
            how = STOPPED if turn % STOPPED_EVERY == STOPPED_EVERY - 1 else ROLLING
            self.halts += moved(self.group, self.runs, ("consumer", "classic")[turn % 2], self.kill, how)

    def kill(self, event: Event) -> None:
        """Kill some of the members whose stop is ordered."""
        stops = json.loads(event.details or "{}").get("stops") if event.event == "attempted" else None
        state = self.group.readable_state() if stops and self.chance.random() < KILLED else None
        client_id = next((each.client_id for each in state.members if each.member_id == stops), None) if state else None
        victim = next((each for each in self.lab.consumers(self.group.name) if each.consumer_id == client_id), None)
        if victim is not None and victim.process.running:
            victim.kill()
            self.kills += 1


@soak_only
def test_moves_there_and_back_with_kills(lab, tmp_path, record_property: Record):
    """Members are killed when their stop is ordered, and coordinators amid the runs. Some moves stop all members.

    Several groups are moved at the same time, each by its own operator.
    """
    one_broker, began = Lock(), time.monotonic()
    with ExitStack() as stack, ThreadPoolExecutor(GROUPS) as pool:
        profile = load_profile(file=lab.folder / "offramp.toml")
        walks = [
            Walk(
                lab,
                started(lab, stack.enter_context(connect(profile)), f"moves-with-kills-{number}", rate=RATE),
                tmp_path / f"runs-{number}",
                random.Random(SEED + number),
            )
            for number in range(GROUPS)
        ]
        for done in [pool.submit(each.go, ROUNDS // GROUPS, one_broker) for each in walks]:
            done.result()
        minutes = (time.monotonic() - began) / 60
        rows = [each.group.proof().summary.row(0, named=True) for each in walks]
        total = {
            name: sum(row[name] for row in rows) for name in ("records", "lost", "duplicates_tail", "duplicates_rewind")
        }
        kills, brokers = (sum(getattr(each, it) for each in walks) for it in ("kills", "brokers"))
        halts = [halt for each in walks for halt in each.halts]
        report(
            record_property,
            f"{ROUNDS} moves of {GROUPS} groups in {minutes:.0f} min, {kills} members and {brokers} coordinators"
            f" killed, {len(halts)} resumes",
            records=total["records"],
            lost=total["lost"],
            twice=total["duplicates_tail"] + total["duplicates_rewind"],
            longest_pause_ms=max(row["longest_stall_ms"] for row in rows),
            details="\n".join(halts) or None,
        )
        for each in walks:
            assert_each_once(each.group, killed=True, moved=True)
