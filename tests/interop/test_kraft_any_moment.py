"""Rollbacks that begin at random moments of the copy, while ZooKeeper answers the controllers slowly. ``make soak``.

One broker, three controllers. In each round the controllers start, the broker goes to migration mode, and at a random
moment an operator begins to plan the rollback, until a plan is made and its run is verified. In some rounds a malformed
znode aborts the copy: then the plans are repairs. A watch of ZooKeeper sees each deletion when it happens. Each series
of rounds has a lab of its own.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.errors import ConnectError, NothingToDo, OfframpError, UnsafePlan
from kit.kraft.status import status_without
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.profile import load_profile
from tests.interop.kraft_scene import KraftScene
from tests.interop.test_kraft_copy import MALFORMED
from tests.soak import report, soak_only

pytestmark = [pytest.mark.timeout(5400), soak_only]
N_SERIES, N_ROUNDS = 10, 3
ROUND_S = 300
BAD = b'{"version": 1, "config": {"SCRAM-SHA-256": "malformed"}}'


@dataclass
class Round:
    """``moment_s``: from the broker's restart until the rollback began; ``phase``: in which phase that was.

    ``refusals``: plans and starts that were refused, runs that stopped; ``n_died``: brokers that ended beside
    a malformed znode.
    """

    moment_s: float
    aborts: bool
    began_ms: float
    phase: str = ""
    refusals: Counter[str] = field(default_factory=Counter)
    n_died: int = 0
    ended_ms: float = 0.0


@dataclass
class Rounds:
    """``wrong``: what the invariants forbid; ``n_deleted``: control znodes that were seen to be deleted."""

    scene: KraftScene
    done: list[Round] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    n_deleted: int = 0


def watch(client: KazooClient, rounds: Rounds) -> None:
    """See which controllers run when ``/migration``, or a ``/controller`` of KRaft, is deleted."""
    persistent = set[str]()

    def see(path: str, stat: Any) -> None:
        if stat is not None:
            (persistent.add if stat.ephemeralOwner == 0 else persistent.discard)(path)
        elif path in persistent:
            persistent.discard(path)
            rounds.n_deleted += 1
            rounds.wrong += [f"{path} was deleted under {name}" for name in running(rounds.scene.lab)]

    for path in ("/controller", "/migration"):
        client.DataWatch(path, lambda data, stat, path=path: see(path, stat))


def running(lab: Lab) -> list[str]:
    return [
        f"controller {each.broker_id}"
        for each in lab.migration.controllers
        if each.process is not None and each.process.running
    ]


def move(rounds: Rounds, client: KazooClient, rng: random.Random) -> None:
    """One round: there, and at some moment back."""
    seen, lab = rounds.scene, rounds.scene.lab
    (broker,) = lab.migration.migrating
    n_wiped = start_controllers(seen)
    delay_s, began_ms = rng.uniform(0.02, 0.5), time.time() * 1000
    faults.delay_controllers_to_zookeeper(lab, delay_s)
    lab.move_node("broker", broker.broker_id, "restart", "migration")
    this = Round(rng.uniform(0, 25 * delay_s), aborts=rng.random() < 0.2, began_ms=began_ms)
    this.refusals["starts"] += n_wiped
    if this.aborts:
        broker.await_started()
        client.create(MALFORMED, BAD, makepath=True)
    threading.Event().wait(this.moment_s)
    come_back(seen, this)
    faults.delay_controllers_to_zookeeper(lab, 0)
    this.ended_ms = time.time() * 1000
    rounds.done.append(this)


def start_controllers(seen: KraftScene) -> int:
    """Start them by a plan. Return 1 if an operator has to wipe the disks, because the last rollback was halted."""
    try:
        seen.carry_out("controllers", "controllers")
    except UnsafePlan as refusal:
        if "disks_wiped" not in str(refusal):
            raise
        for each in seen.lab.migration.controllers:
            seen.lab.move_node("controller", each.broker_id, "wipe", "")
        seen.carry_out("controllers", "controllers", "disks_wiped")
        return 1
    return 0


def come_back(seen: KraftScene, this: Round) -> None:
    """Plan and act until nothing is left to do.

    An operator whose plan is refused repairs the znode, and plans what the refusal names: a rollback, or a repair.
    """
    this.phase = phase_of(seen)
    (broker,) = seen.lab.migration.migrating

    def is_back() -> bool:
        has_died = not faults.running(broker).running
        if has_died or len(running(seen.lab)) < 2:
            remove_malformed(seen)
        if has_died:  # Beside the malformed znode it does not start again.
            this.n_died += 1
            seen.lab.move_node("broker", broker.broker_id, "restart", "migration")
        has_gone, is_repaired = attempt(seen, this, "zookeeper"), attempt(seen, this, "repair")
        return has_gone and is_repaired

    wait_until(is_back, "the rollback", ROUND_S)
    remove_malformed(seen)
    assert running(seen.lab) == []


def phase_of(seen: KraftScene) -> str:
    """The phase, or that the copy is under way, also while the one broker starts."""
    try:
        status = seen.status("back")
    except ConnectError:
        status = status_without(load_profile(file=seen.file))
    return "the copy" if status.read.is_copying else status.state.phase


def remove_malformed(seen: KraftScene) -> None:
    """Remove the znode like an operator whom a refusal, or a node that ended, leads to it."""
    with connected(seen.lab.zookeeper_connect) as client, suppress(NoNodeError):
        client.delete(MALFORMED)


def attempt(seen: KraftScene, this: Round, to: str, *overrides: str) -> bool:
    """Plan and act once. Return whether there is nothing to do."""
    before = seen.run_ids()
    try:
        seen.carry_out("back", to, *overrides)
    except NothingToDo:
        return True
    except UnsafePlan as refusal:
        if not overrides and len(running(seen.lab)) < 2 and "voters_known" in str(refusal):
            return attempt(seen, this, to, "voters_known")
        this.refusals["plans"] += 1
        if "brokers_start" in str(refusal):
            remove_malformed(seen)
    except OfframpError:
        this.refusals["plans"] += 1
    except AssertionError:  # The run is not verified: its last words are the run's.
        this.refusals["runs"] += 1
        for run in seen.run_ids() - before:
            seen.resume(run)
    return False


def described(rounds: Rounds) -> str:
    """A line per round: the moment, the phase, what was refused, the longest time without an acknowledgement."""
    return "\n".join(
        f"{each.moment_s:.1f} s, {each.phase}{', malformed znode' if each.aborts else ''}: back after"
        f" {(each.ended_ms - each.began_ms) / 1000 - each.moment_s:.0f} s, refused {dict(each.refusals)}, brokers that"
        f" ended {each.n_died}, longest pause"
        f" {max(rounds.scene.longest_pauses_ms(each.began_ms, each.ended_ms))} ms"
        for each in rounds.done
    )


@pytest.fixture(scope="module", params=range(N_SERIES))
def rounds(request: pytest.FixtureRequest) -> Iterator[Rounds]:
    with Lab(brokers=1, controllers=3) as lab, connected(lab.zookeeper_connect) as client:
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=20)
        found, rng = Rounds(KraftScene(lab)), random.Random(f"any moment {request.param}")
        watch(client, found)
        for _ in range(N_ROUNDS):
            move(found, client, rng)
        producer.stop()
        found.scene.read_back("orders", 2)
        yield found


def test_from_every_moment_of_the_copy_a_controller_leads_again(rounds, record_property):
    rounds.scene.report(record_property, f"{len(rounds.done)} rollbacks")
    report(record_property, details=described(rounds))
    assert len(rounds.done) == N_ROUNDS
    assert all(each.phase for each in rounds.done)


def test_nothing_is_deleted_under_a_controller_that_runs(rounds):
    assert rounds.wrong == []
    assert rounds.n_deleted >= N_ROUNDS, "the watch sees deletions"


def test_no_acknowledged_record_is_lost(rounds):
    assert rounds.scene.n_acknowledged > 500
    assert rounds.scene.lost == set()
