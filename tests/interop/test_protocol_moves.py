"""Moves of protocols while coordinators and members end: three brokers of Kafka 4.4, and the long form with kills."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.clients.cluster import Cluster, connect
from kit.engine.execution.run import RunResult
from kit.engine.model.event import Event
from kit.engine.model.states import RunState
from kit.errors import UnsafePlan
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

ROUNDS, BROKER_EVERY, STOPPED_EVERY, MOST_RESUMES = 200, 10, 5, 20
SEED, READY = 848, Answers(clients_ready=True)
SESSION, SESSION_MS = "session.timeout.ms", "6000"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with TunedLab({f"group.consumer.{SESSION}": SESSION_MS}, brokers=3, kraft=True) as running:
        (running.folder / "offramp.toml").write_text(running.profile_toml(), encoding="utf-8")
        yield running


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with connect(load_profile(file=lab.folder / "offramp.toml")) as connected:
        yield connected


def started(lab: Lab, cluster: Cluster, name: str, copies: int = 3) -> ProtocolGroup:
    """Two members of librdkafka and one of Java, classic ones, with a short session.

    The default of 45 s is the pause that a killed member leaves.
    """
    group, settings = ProtocolGroup(lab, cluster, name, copies=copies), {SESSION: SESSION_MS}
    java = JavaMember(name, (name,), f"{name}-java", version="4.4.0", level="WARN", settings=settings)
    group.start([java, *(NewMember(name, [name], f"{name}-{number}", settings=settings) for number in range(2))])
    return group


def moved(group: ProtocolGroup, runs: Path, to: str, tell: Callable[[Event], None], how: str = ROLLING) -> int:
    """Plan and execute; resume until the run is verified. Return how often it was resumed."""
    group.settled(3)
    plan = Operations(group.cluster, runs).make_plan(
        ProtocolPlanRequest(group.name, to, soak_s=0.0, observe_s=0.5, quiet_s=1.0, answers=READY, how=how)
    )
    desk = Operations(group.cluster, runs, tell=tell)
    desk.approve(plan, plan.subject, plan.digest[:8], "second person")
    run = desk.begin(plan)
    result: RunResult = run.act()
    resumes = 0
    while result.state != RunState.VERIFIED and resumes < MOST_RESUMES:
        if how == ROLLING:
            group.settled(3)
        result, resumes = run.resume(), resumes + 1
    result.raise_unless(RunState.VERIFIED)
    return resumes


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
                    moved(group, tmp_path / "runs", "consumer", lambda event: None)
            for to in ("consumer", "classic"):
                moved(group, tmp_path / "runs", to, lambda event: None, how)
                assert (group.settled(3).stage, group.state().protocol.group_type) == (to, to)
            assert_each_once(group)


@soak_only
def test_moves_there_and_back_with_kills(lab, cluster, tmp_path, record_property: Record):
    """Members are killed when their stop is ordered, and coordinators between moves. Some moves stop all members."""
    chance, kills, brokers, resumes = random.Random(SEED), 0, 0, 0
    group = started(lab, cluster, "moves-with-kills")

    def kill(event: Event) -> None:
        nonlocal kills
        stops = json.loads(event.details or "{}").get("stops") if event.event == "attempted" else None
        if not stops or chance.random() >= 0.3:
            return
        client_id = next((each.client_id for each in group.state().members if each.member_id == stops), None)
        victim = next((each for each in lab.consumers(group.name) if each.consumer_id == client_id), None)
        if victim is not None and victim.process.running:
            victim.kill()
            kills += 1

    for turn in range(ROUNDS):
        if turn % BROKER_EVERY == BROKER_EVERY - 1:
            restart_coordinator(lab, group)
            brokers += 1
        how = STOPPED if turn % STOPPED_EVERY == STOPPED_EVERY - 1 else ROLLING
        resumes += moved(group, tmp_path / "runs", ("consumer", "classic")[turn % 2], kill, how)
    found = group.proof().summary.row(0, named=True)
    done = f"{ROUNDS} moves, {kills} members and {brokers} coordinators killed, {resumes} resumes"
    figures = {"records": found["records"], "lost": found["lost"], "twice": found["duplicates_tail"]}
    report(record_property, done, **figures, longest_pause_ms=found["longest_stall_ms"])
    assert_each_once(group, killed=True)
