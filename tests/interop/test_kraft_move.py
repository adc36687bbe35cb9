"""A real cluster moved to KRaft by plans, and back: one ZooKeeper, one broker, one controller, and a producer.

To dual write; to KRaft, stopped midway and resumed; back to ZooKeeper. The long form (``make soak``): controllers
started and undone; to dual write; back; forward again; to KRaft, stopped and resumed; undone; to KRaft; back from
there; forward; finalised. Records are produced with acks=all throughout. More nodes and crashes:
``test_kraft_crashes.py``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kit.cluster import connect
from kit.errors import ApprovalError, OfframpError, PlanError, UnsafePlan
from kit.kraft import KraftStatus, kraft_status
from kit.lab import Lab
from kit.lab.servers.migrating import connected
from kit.migrate.engine.approval import approve, save_approval
from kit.migrate.engine.event import Event
from kit.migrate.execution.run import Run, RunResult
from kit.migrate.kraft.request import KraftPlanRequest
from kit.migrate.operations import Operations
from kit.migrate.runs_folder import approval_file
from kit.profile import load_profile

QUIET_S = 2.0
IS_SOAK = bool(os.environ.get("OFFRAMP_SOAK"))
OVERRIDES = {"controllers": ("preflight_known",), "dual write": ("preflight_known",), "zookeeper": ("R03_known",)}
"""What nobody can know without the nodes' own files."""


@dataclass
class Walk:
    """What became of each plan, and what was seen after it."""

    lab: Lab
    profile: Path
    results: list[tuple[str, RunResult]] = field(default_factory=list)
    statuses: list[tuple[str, KraftStatus]] = field(default_factory=list)
    refused: dict[str, OfframpError] = field(default_factory=dict)
    epochs: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    lost: set[tuple[int, int]] | None = None
    n_acknowledged: int = 0

    def go(self, to: str, stop: bool = False) -> None:
        """Plan, approve, act; with ``stop`` a stop is asked for while the node is under way, and the run resumed."""
        with connect(load_profile(file=self.profile)) as cluster:
            going: list[Run] = []

            def tell(event: Event) -> None:
                if stop and event.event == "attempted":
                    going[0].request_stop("Ann")

            operations = Operations(cluster, self.profile.parent / "runs", tell=tell)
            plan = operations.plan_kraft(KraftPlanRequest(to, quiet_s=QUIET_S), OVERRIDES.get(to, ()))
            if plan.consent is not None and plan.consent.second_person:
                self._by_two(operations, plan)
            else:
                operations.approve(plan, plan.subject, plan.digest[:8])
            going.append(operations.begin(plan))
            self._keep(f"{to}{' stopped' if stop else ''}", going[0], going[0].act())
        if stop:
            self.again("resume")

    def again(self, verb: str) -> None:
        """Resume or undo the last run, in a new process's place."""
        with connect(load_profile(file=self.profile)) as cluster:
            operations = Operations(cluster, self.profile.parent / "runs")
            run = operations.run(self.runs[-1])
            self._keep(verb, run, run.resume() if verb == "resume" else run.undo())

    def refuse(self, name: str, to: str) -> None:
        """Plan what has to be refused."""
        with connect(load_profile(file=self.profile)) as cluster:
            operations = Operations(cluster, self.profile.parent / "runs")
            with pytest.raises(OfframpError) as caught:
                operations.plan_kraft(KraftPlanRequest(to), OVERRIDES.get(to, ()))
            self.refused[name] = caught.value

    def _by_two(self, operations: Operations, plan) -> None:
        with pytest.raises(ApprovalError) as caught:
            operations.approve(plan, plan.subject, plan.digest[:8], approver="somebody else")
        self.refused["one login"] = caught.value
        given = approve(
            plan,
            typed_subject=plan.subject,
            typed_digest_prefix=plan.digest[:8],
            approver="Bob",
            now=plan.made_at,
            valid_for=timedelta(minutes=30),
            approved_as="bob",
        )
        save_approval(given, approval_file(operations.runs / "plans" / f"{plan.digest[:12]}.json", 1))

    def _keep(self, name: str, run: Run, result: RunResult) -> None:
        self.runs.append(run.run_id)
        self.results.append((name, result))
        assert result.state in ("VERIFIED", "UNDONE", "STOPPED"), (name, result.sentence)
        with connect(load_profile(file=self.profile)) as fresh:
            self.statuses.append((name, kraft_status(fresh)))
        with connected(self.lab.zookeeper_connect) as client:
            self.epochs.append(int(client.get("/controller_epoch")[0]))

    def read_all(self, lab: Lab) -> None:
        """What was acknowledged and can't be read any more."""
        lines = [line for file in lab.production.iterdir() for line in file.read_text().splitlines()]
        wanted = {(row["partition"], row["offset"]) for row in map(json.loads, lines)}
        consumer = Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": "reader"})
        consumer.assign([TopicPartition("orders", number, 0) for number in range(2)])
        seen: set[tuple[int, int]] = set()
        deadline = time.monotonic() + 60
        while not wanted <= seen and time.monotonic() < deadline:
            seen |= {(each.partition(), each.offset()) for each in consumer.consume(500, 0.5) if not each.error()}
        consumer.close()
        self.lost, self.n_acknowledged = wanted - seen, len(wanted)


def refuse_old_members(seen: Walk) -> None:
    with connected(seen.lab.zookeeper_connect) as client:
        client.create("/consumers/shop/ids/shop_a", b"{}", ephemeral=True, makepath=True)
        seen.refuse("old members", "kraft")


def go(to: str, stop: bool = False) -> Callable[[Walk], None]:
    return lambda seen: seen.go(to, stop)


def undo(seen: Walk) -> None:
    seen.again("undo")


FORWARD = (go("controllers"), go("dual write"))
SHORT = (
    lambda seen: seen.refuse("too far", "kraft"),
    *FORWARD,
    refuse_old_members,
    go("kraft", stop=True),
    go("zookeeper"),
)
LONG = (
    go("controllers"),
    undo,
    *FORWARD,
    go("zookeeper"),
    *SHORT[:-1],
    undo,
    go("kraft"),
    go("zookeeper"),
    *FORWARD,
    go("kraft"),
    go("finalised"),
    lambda seen: seen.refuse("no way back", "zookeeper"),
)


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    with Lab(brokers=1, controllers=1) as lab:
        profile = lab.folder / "offramp.toml"
        profile.write_text(lab.profile_toml())
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=50)
        seen = Walk(lab, profile)
        for verb in LONG if IS_SOAK else SHORT:
            verb(seen)
        producer.stop()
        seen.read_all(lab)
        yield seen


def test_each_plan_reaches_its_phase(walk):
    phases = [(name, status.state.phase) for name, status in walk.statuses if name != "kraft stopped"]
    forward = [("controllers", "controllers"), ("dual write", "dual write")]
    short = [*forward, ("resume", "kraft"), ("zookeeper", "zookeeper")]
    long = [
        ("controllers", "controllers"),
        ("undo", "zookeeper"),
        *forward,
        ("zookeeper", "zookeeper"),
        *short[:-1],
        ("undo", "dual write"),
        ("kraft", "kraft"),
        ("zookeeper", "zookeeper"),
        *forward,
        ("kraft", "kraft"),
        ("finalised", "finalised"),
    ]
    assert phases == (long if IS_SOAK else short)


def test_no_acknowledged_record_is_lost(walk):
    assert walk.n_acknowledged > 100
    assert walk.lost == set()


def test_nothing_is_left_in_zookeeper_after_a_way_back(walk):
    for name, status in walk.statuses:
        if name == "zookeeper":
            control = status.read.control
            assert (control.has_migration, control.is_controller_persistent) == (False, False)
            assert control.controller_epoch > (control.max_state_epoch or 0)
            assert [each.check_id for each in status.findings if each.severity in ("alarm", "block")] == []


def test_the_epoch_only_grows(walk):
    assert walk.epochs == sorted(walk.epochs)


def test_an_undo_is_offered_only_where_one_is_possible(walk):
    offered = {name: bool(result.to_undo) for name, result in walk.results if name not in ("undo", "resume")}
    expected = {"controllers": True, "dual write": False, "zookeeper": False, "kraft stopped": True}
    assert offered == expected | ({"kraft": True, "finalised": False} if IS_SOAK else {})


def test_what_is_refused_is_refused_by_name(walk):
    assert isinstance(walk.refused["too far"], PlanError)
    assert "the next plan goes to 'controllers'" in str(walk.refused["too far"])
    assert isinstance(walk.refused["old members"], UnsafePlan)
    assert "shop (1)" in str(walk.refused["old members"])
    if IS_SOAK:
        assert "there is no way back" in str(walk.refused["no way back"])
        assert "under one login" in str(walk.refused["one login"])


def test_the_payloads_are_saved_before_the_transaction(walk):
    folders = [walk.profile.parent / "runs" / run for run in walk.runs]
    events = [json.loads(line) for folder in folders for line in (folder / "events.jsonl").read_text().splitlines()]
    begun = [it for it in events if (it["event"], it["item"]) == ("attempted", "control of the cluster")]
    saved = [json.loads(it["details"]) for it in begun]
    assert len(saved) == (2 if IS_SOAK else 1)
    for each in saved:
        assert set(each["saved"]) == {"/controller", "/controller_epoch", "/migration"}
        assert each["new_epoch"] > int(each["saved"]["/controller_epoch"]["text"])
