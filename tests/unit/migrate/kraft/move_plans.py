"""Plans to move a cluster to KRaft, and what their actors ask: where the cluster is, and whom they report to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kit.migrate.engine.approval import Approval, approve
from kit.migrate.engine.observation import Observation
from kit.migrate.engine.performer import ActedRecord, ItemOutcome, WriteAttempt
from kit.migrate.engine.plan import Plan
from kit.migrate.kraft import gates, hand_back, steps
from kit.migrate.kraft.plan import _Maker
from kit.migrate.kraft.standing import Standing
from kit.migrate.kraft.steps import KIND, KraftParameters, consent_of
from kit.profile import KraftSettings
from tests.kraft_records import SOUND, broker, control, node, plain
from tests.models.engine import START


def stand(facts=SOUND, brokers=(1,)) -> Standing:
    return Standing(facts, dict.fromkeys(brokers, "host:9092"))


def in_phase(phase: str) -> Standing:
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
CLUSTER = SimpleNamespace(
    name="production",
    profile=SimpleNamespace(kraft=KraftSettings(controllers="3000@host:9093,3001@other:9093")),
    zookeeper=None,
)
NOTHING_OPEN = {"settle_open": lambda *words: None, "edited_problem": lambda *words: None}
"""Of hands: no order of which nobody knows what came, no file that was edited."""


def look_at(now: Standing, **profile):
    given = {
        "kraft": KraftSettings(controllers="3000@host:9093"),
        "name": "production",
        "bootstrap_servers": "host:9092,b:9092",
        **profile,
    }
    cluster = SimpleNamespace(profile=SimpleNamespace(**given), name="production", cluster_id="abc", zookeeper=object())
    return gates.Look(cluster, now, Path("runs"))


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
        "steps": tuple(_Maker(words, DEPLOYER, now).steps()),
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
    """What an actor reports to its run; ``attempts`` are those of the process before, which was cut off."""

    def __init__(self, *attempts: WriteAttempt) -> None:
        self.acted = ActedRecord("01", (), attempts)
        self.attempted: list[str] = []
        self.outcomes: list[ItemOutcome] = []

    def attempt(self, items: Sequence[str], details: Any = None) -> None:
        self.attempted += items

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.outcomes += outcomes
