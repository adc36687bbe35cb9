"""A cluster between ZooKeeper and KRaft, as simple as it can be, and its way back at any moment of the copy.

The controllers copy on while offramp looks; some of them offramp can't reach, or the profile does not name; a topic is
hidden from the login, or a znode. The gates and the actors are the real ones. ``Wrong``: what must never be.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kit.clients.brokers import ClusterMetadata
from kit.engine.model.clock import Clock
from kit.engine.model.performer import WriteAttempt
from kit.errors import OfframpError
from kit.kraft.move import conditions, controllers, problems
from kit.kraft.move.cluster_state import ClusterState, MoveReads
from kit.kraft.move.controllers import StopActor
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.hand_back import HandBackActor
from kit.kraft.move.orders import NodeOperator
from kit.kraft.move.parameters import HandBackParameters, KraftParameters, StopParameters
from kit.kraft.move.steps import hand_back_step, stop_step
from kit.kraft.read.control_znodes import fetch_control
from kit.kraft.read.metadata_partitions import fetch_replicas
from kit.kraft.read.metadata_znodes import with_max_state_epoch
from kit.profile import KraftSettings
from kit.tables.kraft import NodeFact
from tests.adversary.judge import Wrong
from tests.adversary.mistakes import Mistake
from tests.kraft_records import SOUND, broker, node
from tests.unit.kraft.move.move_plans import PROFILE, SAME, Report, cluster_with, metadata, partition
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

WAITING, COPYING, ABORTED, DUAL_WRITE = "waiting", "copying", "aborted", "dual write"
VOTERS = (3000, 3001, 3002, 3003, 3004)
"""The voters: of a quorum of three the first three."""
SECRET = "/brokers/topics/secret/partitions/0/state"
HIDEABLE = ("/controller", "/migration", "/controller_epoch", "/brokers/topics/secret", SECRET)
BROKER_PLACES = {1: "host:9092"}
TOPIC = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2]}}'
STATE = b'{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":3,"isr":[1,2]}'
_STEP = "01"


class JudgingZookeeper(ZookeeperInMemory):
    """``/controller`` and ``/migration`` are deleted in transactions, and the world judges each."""

    world: ContestedMove

    def transaction(self) -> _Transaction:
        return _Transaction(self)


@dataclass
class _Transaction:
    client: JudgingZookeeper
    deleted: list[str] = field(default_factory=list)
    epoch: bytes | None = None
    n_checks: int = 0

    def set_data(self, path: str, data: bytes, version: int) -> None:
        self.epoch = data

    def check(self, path: str, version: int) -> None:
        self.n_checks += 1

    def delete(self, path: str, version: int) -> None:
        self.deleted.append(path)

    def commit_async(self) -> Any:
        self.client.world.judge_deletion(self.deleted)
        self.client.world.judge_epoch(self.deleted, self.epoch)
        for path in self.deleted:
            self.client.remove(path)
        if self.epoch is not None:
            self.client.put("/controller_epoch", self.epoch)
        self.client.world.elect()
        answer = self.client.handler.async_result()
        answer.value = [True] * (len(self.deleted) + self.n_checks + (self.epoch is not None))
        return answer


class ContestedMove:
    """``cut``: controllers that offramp can't reach, whatever they do; ``named``: those that the profile names.

    ``is_hidden``: the login may not describe topic ``secret``, whose ISR lacks a replica. ``hidden``: the znode that
    offramp's session may not read, whatever it holds; the state of ``secret`` has the highest epoch.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"rollback {seed}")
        self.phase = self.rng.choice((WAITING, COPYING, ABORTED, DUAL_WRITE))
        self.n_voters = self.rng.choice((3, 3, 5))
        self.running = set(VOTERS[: self.n_voters])
        crashed = self.rng.sample(VOTERS[:3], self.rng.choice((0, 0, 0, (self.n_voters - 1) // 2)))
        self.running -= set(crashed)
        self.leader = self.rng.choice(sorted(self.running))
        self.has_aborted = self.phase == ABORTED
        self.cut = {each for each in VOTERS if self.rng.random() < 0.05}
        self.named = VOTERS[: self.rng.choice((1, 3, 3, self.n_voters))]
        self.is_hidden = self.rng.random() < 0.1
        self.at, self.pace = 0.0, self.rng.choice((0.0, 0.03, 0.3))
        self.zookeeper = JudgingZookeeper(
            {
                "/controller_epoch": b"3",
                **{f"/brokers/topics/{topic}": TOPIC for topic in ("orders", "secret")},
                "/brokers/topics/orders/partitions/0/state": STATE,
                SECRET: STATE.replace(b'"controller_epoch":3', b'"controller_epoch":9'),
                "/brokers/ids/1": b"{}",
            }
        )
        self.zookeeper.world = self
        self.hidden = self.rng.choice((*[None] * 20, *HIDEABLE))
        self._write_control()
        self.hide()
        controllers = ",".join(f"{number}@{self.place(number)}" for number in self.named)
        self.cluster = cluster_with(
            profile=replace(PROFILE, kraft=KraftSettings(controllers=controllers)), zookeeper=self.zookeeper
        )
        self.hands = NodeOperator(
            self.cluster, self, clock=Clock(monotonic=lambda: self.at, sleep=self.sleep), reads=self.reads
        )
        self.hands.read_state = lambda words: self.look()  # type: ignore[method-assign]

    needs_person = False

    @staticmethod
    def place(number: int) -> str:
        return f"c{number}:9093"

    def instruction(self, action: str, role: str, mode: str) -> str:
        return "node"

    def order(self, order: Any, tell: object) -> str:
        """Stop the controller, if its host can be reached; the deployer says that it did in any case."""
        self.judge_stop()
        if order.node_id not in self.cut:
            self.running.discard(order.node_id)
        return "done"

    @property
    def has_quorum(self) -> bool:
        return len(self.running) * 2 > self.n_voters

    @property
    def reads(self) -> MoveReads:
        return MoveReads(
            metadata=lambda cluster, address: self._metadata(),
            replicas=lambda cluster, facts: fetch_replicas(self.zookeeper),
            diff=lambda cluster: SAME,
        )

    def _metadata(self) -> ClusterMetadata:
        """Return what the broker answers this login."""
        orders = metadata(BROKER_PLACES, partition())
        secret = () if self.is_hidden else [replace(each, topic="secret") for each in orders.topic_partitions]
        return replace(orders, topic_partitions=(*orders.topic_partitions, *secret))

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        self._go_on()

    def _go_on(self) -> None:
        """Continue what the controllers do meanwhile, while most of them run."""
        if not self.has_quorum or self.rng.random() >= self.pace:
            return
        self.phase = {WAITING: COPYING, COPYING: DUAL_WRITE, ABORTED: COPYING}.get(self.phase, self.phase)
        self._write_control()

    def _write_control(self) -> None:
        is_claimed = self.phase != WAITING
        held = {"version": 2, "brokerid": 3000 if is_claimed else 1, "kraftControllerEpoch": 1 if is_claimed else -1}
        self.zookeeper.put("/controller", json.dumps(held).encode(), ephemeral_owner=0 if is_claimed else 7)
        offset, epoch = (79, 1) if self.phase == DUAL_WRITE else (-1, -1)
        ids = {"kraft_controller_id": 3000, "kraft_controller_epoch": epoch, "kraft_metadata_epoch": epoch}
        self.zookeeper.put("/migration", json.dumps({"version": 0, "kraft_metadata_offset": offset, **ids}).encode())

        self.hide()

    def hide(self) -> None:
        """Let offramp's session read all but one znode."""
        for path in HIDEABLE:
            if (held := self.zookeeper.root.at(path)) is not None:
                held.is_hidden = path == self.hidden

    def elect(self) -> None:
        """The broker takes ``/controller`` where there is none."""
        if self.zookeeper.root.at("/controller") is None:
            self.zookeeper.put("/controller", b'{"version":2,"brokerid":1}', ephemeral_owner=7)

    def look(self) -> ClusterState:
        self._go_on()
        nodes = [self._node(number) for number in self.named]
        leader = next((each for each in nodes if each.is_leader), None)
        facts = replace(
            SOUND,
            control=fetch_control(self.zookeeper),
            nodes=(node("broker"), *nodes),
            registrations=(broker(),),
            zk_state=None if leader is None else "MIGRATION" if self.phase == DUAL_WRITE else "PRE_MIGRATION",
            log_read_at=None if leader is None else SOUND.log_read_at,
            n_aborted=1 if leader is not None and self.has_aborted else 0,
        )
        return ClusterState(facts, BROKER_PLACES)

    def _node(self, number: int) -> NodeFact:
        if self.leader not in self.running and self.running:
            self.leader = min(self.running)
        leads = self.has_quorum and number == self.leader
        row = node(
            "controller", node_id=number, address=self.place(number), is_leader=leads, voters=VOTERS[: self.n_voters]
        )
        if number in self.cut:
            return replace(row, mode=None, is_leader=None, error="timed out", is_listening=None)
        if number not in self.running:
            return replace(row, mode=None, is_leader=None, error="refused", is_listening=False)
        return row

    def change_after_the_plan(self) -> None:
        """Change what the gates saw."""
        self.cut |= {each for each in VOTERS if self.rng.random() < 0.15}
        self.is_hidden |= self.rng.random() < 0.2
        self.hidden = self.hidden or self.rng.choice((*[None] * 20, *HIDEABLE))
        self.hide()

    # Forbidden states

    def judge_deletion(self, paths: list[str]) -> None:
        if paths and self.running:
            raise Wrong("deleted under a controller", f"{paths} under {sorted(self.running)}")

    def judge_epoch(self, paths: list[str], epoch: bytes | None) -> None:
        """A ZooKeeper controller elects no leader of a partition whose state has a higher epoch (KAFKA-20488)."""
        if "/controller" in paths and int(epoch or self.zookeeper.root.at("/controller_epoch").data) <= 9:  # type: ignore[union-attr]
            raise Wrong("epoch not exceeded", f"{epoch!r}, and secret-0 has 9")

    def judge_stop(self) -> None:
        if self.phase == DUAL_WRITE and self.is_hidden:
            raise Wrong("ordered without a full ISR", "secret-0 lacks a replica")

    @property
    def is_controlled(self) -> bool:
        """By the controllers; or by a broker, as ZooKeeper's controller."""
        owner = self.zookeeper.root.at("/controller")
        return self.has_quorum or (owner is not None and owner.stat.get("ephemeral_owner", 0) != 0)


def roll_back(world: ContestedMove) -> bool:
    """Plan and run the way back; then repair what was cut, and continue. Return whether a plan was made.

    Raises:
        Wrong: nobody controls the cluster, and nothing that the plan writes next would change that.
    """
    seen = GateInputs(world.cluster, world.look(), Path("runs"), reads=world.reads)
    gates = (
        conditions.sees,
        conditions.ids_known,
        conditions.voters_known,
        conditions.reached,
        conditions.no_copy,
        conditions.sync,
    )
    if any(gate(seen) is not None for gate in gates):
        return False
    control = seen.now.control
    common = KraftParameters(
        target="cluster abc",
        cluster_name="production",
        to_phase="zookeeper",
        all_brokers={str(number): at for number, at in BROKER_PLACES.items()},
        controllers={str(number): world.place(number) for number in world.named},
        node_timeout_s=20.0,
        quiet_s=2.0,
    )
    claim = {
        "has_claim": bool(control.is_controller_persistent),
        "is_aborted": seen.now.facts.is_copy_aborted,
    }
    stop = StopParameters.made_from(common, nodes=world.named, instruction="node", **claim)
    words = stop, HandBackParameters.made_from(common, **claim)
    world.change_after_the_plan()
    _run(world, *words)
    if world.is_controlled:
        return True
    world.cut, world.is_hidden, world.hidden = set(), False, None  # A person repairs all that, and resumes the run.
    world.hide()
    _run(world, *words, WriteAttempt("controller 3000", False, None, None))
    if not world.is_controlled:
        raise Wrong("nobody controls", f"phase {world.phase}, {sorted(world.running)} run")
    return True


def _run(world: ContestedMove, stop: StopParameters, hand_back: HandBackParameters, *before: WriteAttempt) -> None:
    with suppress(OfframpError):
        StopActor(world.hands).act(stop_step(_STEP, stop), Report(*before))
        HandBackActor(world.hands).act(hand_back_step(_STEP, hand_back), Report())


def wrongs(seeds: Iterable[int]) -> Iterator[Wrong]:
    """Yield what is wrong on these walks, each walk's first."""
    for seed in seeds:
        try:
            roll_back(ContestedMove(seed))
        except Wrong as error:
            yield error


def _is_met(*_: object, **named: object) -> None:
    """A condition that nobody asks."""


def _without_partitions(self: ContestedMove) -> MoveReads:
    return replace(_READS(self), replicas=lambda cluster, facts: {})


_READS = ContestedMove.reads.fget
CLAIM_NOT_COMPARED: Mistake = {
    (conditions, "no_copy"): _is_met,
    (controllers, "claim_problem"): _is_met,
    (controllers, "copied_problem"): _is_met,
}
UNREACHABLE_IS_STOPPED: Mistake = {
    (NodeFact, "is_stopped"): property(lambda self: self.error is not None and not self.is_listening),
    (ClusterState, "unreachable_controllers"): property(lambda self: []),
}
VOTERS_NOT_ASKED: Mistake = {(where, "voters_problem"): _is_met for where in (conditions, controllers, problems)}
FEW_THAT_ANSWER_ARE_ALL: Mistake = {(where, "unknown_voters"): _is_met for where in (conditions, problems)}


def _epoch_of_what_is_read(self: HandBackActor, before: Any) -> int:
    control = with_max_state_epoch(self.cluster.zookeeper, fetch_control(self.cluster.zookeeper))
    return max(control.controller_epoch or 0, control.max_state_epoch or 0) + 1


HIDDEN_IS_ABSENT: Mistake = {(conditions, "sees"): _is_met, (HandBackActor, "_next_epoch"): _epoch_of_what_is_read}
ONLY_WHAT_IS_SEEN: Mistake = {(ContestedMove, "reads"): property(_without_partitions)}
