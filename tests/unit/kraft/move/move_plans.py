"""Plans to move a cluster to KRaft, and what their actors ask: where the cluster is, and whom they report to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kit.clients.brokers import ClusterMetadata, fetch_metadata
from kit.engine.model.approval import Approval, approve
from kit.engine.model.observation import Observation
from kit.engine.model.performer import ActedRecord, ItemOutcome, WriteAttempt
from kit.engine.model.plan import Plan
from kit.kraft.move import gates, hand_back, steps
from kit.kraft.move.cluster_state import ClusterState, MoveReads
from kit.kraft.move.parameters import KraftParameters
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import consent_of
from kit.kraft.subject import KIND
from kit.profile import KraftSettings, Profile
from tests.kraft_records import SOUND, broker, control, diff, difference, node, plain
from tests.models.engine import START
from tests.unit.zookeeper_in_memory import ZookeeperInMemory


def stand(facts=SOUND, brokers=(1,)) -> ClusterState:
    return ClusterState(facts, dict.fromkeys(brokers, "host:9092"))


def in_phase(phase: str) -> ClusterState:
    """One broker, in the middle of each phase."""
    before = {"control": plain(), "registrations": (), "nodes": (node("broker", mode="zookeeper", has_flag=False),)}
    waiting = {**before, "control": plain(has_migration=True), "zk_state": "PRE_MIGRATION"}
    waiting["nodes"] = (*before["nodes"], node("controller"))
    in_kraft = {
        "control": control(brokers=()),
        "registrations": (broker(is_migrating=False),),
        "nodes": (node("broker", mode="kraft"), node("controller")),
    }
    changes = {
        "zookeeper": {**before, "zk_state": None},
        "controllers": waiting,
        "dual write": {},
        "kraft": in_kraft,
        "finalised": {**in_kraft, "zk_state": "POST_MIGRATION"},
    }
    return stand(replace(SOUND, **changes[phase]))


WORDS = KraftParameters(
    target="cluster abc",
    cluster_name="production",
    to_phase="kraft",
    all_brokers={"1": "host:9092"},
    controllers={"3000": "host:9093"},
)
DEPLOYER = SimpleNamespace(needs_person=False, instruction=lambda action, role, mode: f"{action} {role} {mode}".strip())
PROFILE = Profile(
    name="production",
    file=Path("offramp.toml"),
    bootstrap_servers="host:9092,b:9092",
    kraft=KraftSettings(controllers="3000@host:9093,3001@other:9093"),
)
CLUSTER = SimpleNamespace(
    name="production",
    cluster_id="abc",
    confirmed_id=lambda needs_brokers=True: "abc",
    profile=PROFILE,
    zookeeper=None,
)


def cluster_with(**changed: Any) -> Any:
    """``CLUSTER`` with changes."""
    return SimpleNamespace(**{**vars(CLUSTER), **changed})


def partition(
    isr: Sequence[int] = (1,), leader: int | None = 1, replicas: Sequence[int] | None = None, number: int = 0
) -> SimpleNamespace:
    """One partition of ``orders`` in an answer to Metadata; by default every replica is in the ISR."""
    leader_id = -1 if leader is None else leader
    given = {"partition_index": number, "leader_id": leader_id, "leader_epoch": 1, "isr_nodes": isr}
    return SimpleNamespace(**given, replica_nodes=isr if replicas is None else replicas)


def broker_client(
    brokers: Mapping[int, str], *partitions: SimpleNamespace, controller: int | None = None
) -> SimpleNamespace:
    """A connection to a broker that names these brokers (id → ``host:port``) and these partitions of ``orders``."""
    orders = SimpleNamespace(name="orders", is_internal=False, topic_id=None, partitions=partitions)
    rows = [
        SimpleNamespace(node_id=number, host=at.partition(":")[0], port=at.partition(":")[2], rack=None)
        for number, at in brokers.items()
    ]
    answer = SimpleNamespace(cluster_id="abc", controller_id=controller, topics=[orders], brokers=rows)
    return SimpleNamespace(ask=None, run=lambda *question: answer)


def metadata(
    brokers: Mapping[int, str], *partitions: SimpleNamespace, controller: int | None = None
) -> ClusterMetadata:
    """Return the metadata of such a broker: see ``broker_client``."""
    return fetch_metadata(broker_client(brokers, *partitions, controller=controller))


SAME = diff(difference("topic", "equal"))
WELL = MoveReads(
    metadata=lambda cluster, address: metadata({1: "host:9092"}, partition(), controller=1),
    voter_ends=lambda cluster, address: {3000: 100},
    replicas=lambda cluster, facts: {("orders", 0): (1,)},
    diff=lambda cluster: SAME,
)
"""Every ISR is full, every controller has caught up, both stores hold the same."""
NOTHING_OPEN = {"cancel_open_orders": lambda *words: None, "edited_problem": lambda *words: None, "reads": WELL}
"""The hands of an actor without an open order and without an edited file; all that is read is in order."""


def look_at(now: ClusterState, *, zookeeper: ZookeeperInMemory | None = None, reads: MoveReads = WELL, **profile: Any):
    """Return the input of the gates, for a cluster with one controller; ``profile`` holds changes of its profile."""
    given = replace(PROFILE, **{"kraft": KraftSettings(controllers="3000@host:9093"), **profile})
    cluster = cluster_with(profile=given, zookeeper=zookeeper or ZookeeperInMemory())
    return gates.GateInputs(cluster, now, Path("runs"), reads=reads)


def members(**groups: Sequence[str]) -> ZookeeperInMemory:
    """A ZooKeeper with these members of old groups."""
    return ZookeeperInMemory({f"/consumers/{group}/ids/{it}": b"" for group, ids in groups.items() for it in ids})


def plan_to(to_phase: str, **changed) -> Plan:
    begins_in = {"kraft": "dual write", "fail over": "dual write", "repair /migration": "zookeeper"}
    now = in_phase(begins_in.get(to_phase, "kraft"))
    words = replace(WORDS, to_phase=to_phase)
    given = {
        "kind": KIND,
        "cluster_id": "abc",
        "targets": ("cluster abc",),
        "made_by": "Ann",
        "made_at": START,
        "observed": {name: Observation(1) for name in steps.OBSERVED},
        "steps": tuple(StepMaker(words, DEPLOYER, now).steps()),
        "consent": consent_of(to_phase, "production"),
        "made_as": "ann",
    }
    return Plan(**{**given, **changed})


def approved(plan: Plan, hours: float = 0.5, approver: str = "Bob", login: str = "bob") -> Approval:
    return approve(
        plan,
        typed_subject=plan.subject,
        typed_digest_prefix=plan.digest[:8],
        approver=approver,
        now=START,
        valid_for=timedelta(hours=hours),
        approved_as=login,
    )


def saved_znode(text: str, owner: int = 0) -> hand_back.Saved:
    return hand_back.Saved(text, 4, owner)


class Report:
    """The report of an actor to its run; ``attempts`` are those of the process before, which was cut off."""

    def __init__(self, *attempts: WriteAttempt) -> None:
        self.acted = ActedRecord("01", (), attempts)
        self.attempted: list[str] = []
        self.outcomes: list[ItemOutcome] = []

    def attempt(self, items: Sequence[str], details: Any = None) -> None:
        self.attempted += items

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.outcomes += outcomes
