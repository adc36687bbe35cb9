"""Rollbacks that begin at random moments of the copy, while ZooKeeper answers the controllers slowly. ``make soak``.

One broker, three controllers. In each round the controllers start, the broker goes to migration mode, and at a random
moment an operator begins to plan the way back, until a plan is made and its run is verified. In some rounds a malformed
znode aborts the copy: then the plans are repairs. A watch of ZooKeeper sees each deletion when it happens.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.errors import NothingToDo, OfframpError, UnsafePlan
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from tests.interop.kraft_scene import KraftScene
from tests.interop.test_kraft_copy import MALFORMED
from tests.soak import Record, report, soak_only

pytestmark = [pytest.mark.timeout(5400), soak_only]
N_ROUNDS = 30
ROUND_S = 300
BAD = b'{"version": 1, "config": {"SCRAM-SHA-256": "malformed"}}'


@dataclass
class Rounds:
    """``began``: the phases in which the ways back began; ``refusals``: plans that were refused, runs that stopped.

    ``wrong``: what the invariants forbid; ``n_deleted``: control znodes that were seen to be deleted;
    ``n_died``: brokers that ended beside a malformed znode.
    """

    scene: KraftScene
    began: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    n_done: int = 0
    n_deleted: int = 0
    n_died: int = 0


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
    seen.carry_out("controllers", "controllers")
    delay_s = rng.uniform(0.02, 0.5)
    faults.delay_controllers_to_zookeeper(lab, delay_s)
    lab.move_node("broker", broker.broker_id, "restart", "migration")
    aborts = rng.random() < 0.2
    if aborts:
        broker.await_started()
        client.create(MALFORMED, BAD, makepath=True)
    threading.Event().wait(rng.uniform(0, 25 * delay_s))  # The moment.
    began = come_back(seen, rounds)
    rounds.began[f"{began}{', malformed znode' if aborts else ''}"] += 1
    faults.delay_controllers_to_zookeeper(lab, 0)
    rounds.n_done += 1


def come_back(seen: KraftScene, rounds: Rounds) -> str:
    """Plan and act until nothing is left to do, and return the phase in which that begins, or that it is the copy.

    An operator whose plan is refused repairs the znode, and plans what the refusal names: a rollback, or a repair.
    """
    status = seen.status("back")
    began = "the copy" if status.read.is_copying else status.state.phase
    (broker,) = seen.lab.migration.migrating

    def is_back() -> bool:
        has_died = not faults.running(broker).running
        if has_died or len(running(seen.lab)) < 2:
            remove_malformed(seen)
        if has_died:  # Beside the malformed znode it does not start again.
            rounds.n_died += 1
            seen.lab.move_node("broker", broker.broker_id, "restart", "migration")
        has_gone, is_repaired = attempt(seen, rounds, "zookeeper"), attempt(seen, rounds, "repair")
        return has_gone and is_repaired

    wait_until(is_back, "the way back", ROUND_S)
    remove_malformed(seen)
    assert running(seen.lab) == []
    return began


def remove_malformed(seen: KraftScene) -> None:
    """What an operator does whom a refusal, or a node that ended, leads to the znode."""
    with connected(seen.lab.zookeeper_connect) as client, suppress(NoNodeError):
        client.delete(MALFORMED)


def attempt(seen: KraftScene, rounds: Rounds, to: str, *overrides: str) -> bool:
    """Plan and act once. Return whether there is nothing to do."""
    before = seen.run_ids()
    try:
        seen.carry_out("back", to, *overrides)
    except NothingToDo:
        return True
    except UnsafePlan as refusal:
        if not overrides and len(running(seen.lab)) < 2 and "voters_known" in str(refusal):
            return attempt(seen, rounds, to, "voters_known")
        rounds.refusals["plans"] += 1
        if "brokers_start" in str(refusal):
            remove_malformed(seen)
    except OfframpError:
        rounds.refusals["plans"] += 1
    except AssertionError:  # The run is not verified: its last words are the run's.
        rounds.refusals["runs"] += 1
        for run in seen.run_ids() - before:
            seen.resume(run)
    return False


@pytest.fixture(scope="module")
def rounds() -> Iterator[Rounds]:
    with Lab(brokers=1, controllers=3) as lab, connected(lab.zookeeper_connect) as client:
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=20)
        found, rng = Rounds(KraftScene(lab)), random.Random("any moment")
        watch(client, found)
        for _ in range(N_ROUNDS):
            move(found, client, rng)
        producer.stop()
        found.scene.read_back("orders", 2)
        yield found


def test_from_every_moment_of_the_copy_a_controller_leads_again(rounds, record_property: Record):
    began = ", ".join(f"{n} from {name}" for name, n in sorted(rounds.began.items()))
    rounds.scene.report(record_property, f"{rounds.n_done} ways back")
    refused = ", ".join(f"{n} {what}" for what, n in sorted(rounds.refusals.items()))
    report(record_property, details=f"Began: {began}. Refused: {refused}. Brokers that ended: {rounds.n_died}.")
    assert rounds.n_done == N_ROUNDS
    assert len(rounds.began) > 1, "the moments differ"


def test_nothing_is_deleted_under_a_controller_that_runs(rounds):
    assert rounds.wrong == []
    assert rounds.n_deleted >= N_ROUNDS, "the watch sees deletions"


def test_no_acknowledged_record_is_lost(rounds):
    assert rounds.scene.n_acknowledged > 500
    assert rounds.scene.lost == set()
