"""A real cluster moved to KRaft by plans, and back: one ZooKeeper, one broker, one controller, and a producer.

To dual write, with ZooKeeper cut off while the broker restarts; to KRaft, stopped midway and resumed; back to
ZooKeeper. The long form (``make soak``): controllers started and undone; to dual write; back; forward again, cut off;
to KRaft, stopped and resumed; undone; to KRaft, cut off between two steps; back from there, cut off before and after
the transaction; forward; finalised. Records are produced with acks=all throughout. More nodes and crashes:
``test_kraft_crashes.py``. What this process wrote to ZooKeeper is read from ZooKeeper's own log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

import polars as pl
import pytest

from kit.clients.cluster import Cluster
from kit.engine.execution.run import Run, RunResult
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.errors import ApprovalError, PlanError, TargetBusy, UnsafePlan
from kit.kraft.move.plan import KraftPlanRequest
from kit.kraft.status import KraftStatus
from kit.kraft.zookeeper_history import read_zookeeper_files
from kit.lab import Lab, faults
from kit.lab.servers.migrating import connected
from kit.lab.servers.tcp_proxy import TcpProxy
from kit.operations.operations import Operations
from tests.interop.kraft_scene import LOCK_S, OVERRIDES, KraftScene, approve_as_bob
from tests.soak import IS_SOAK

pytestmark = pytest.mark.timeout(900)
QUIET_S = 2.0


@dataclass
class CutMove(KraftScene):
    """The move of a process whose connection to ZooKeeper, and that of the controllers, goes through a cable of its
    own.

    ``results`` and ``seen``: of each verb, and the status after it; ``cut``: of each run that ended by a cut.
    """

    results: list[tuple[str, RunResult]] = field(default_factory=list)
    seen: list[tuple[str, KraftStatus]] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    acted: list[str] = field(default_factory=list)
    cut: list[tuple[str, str, str]] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)
    changes: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cable = TcpProxy(self.lab.zookeeper_connect)
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text.replace(f'"{self.lab.zookeeper_connect}"', f'"{self.cable.address}"'))

    @contextmanager
    def connected(self, **keys: str) -> Iterator[Cluster]:
        with super().connected(**keys) as cluster:
            client = cluster.zookeeper

            def note(_: object = None) -> None:
                if client.client_id is not None:  # There is a connection.
                    self.sessions.add(client.client_id[0])

            client.add_listener(note)  # A session that was lost is followed by another one.
            note()
            yield cluster

    def go(self, to: str, stop: bool = False, cut: Sequence[str] = ()) -> None:
        """Plan, approve, act; with ``stop`` a stop is asked for while the node is under way, and the run resumed.

        ``cut``: at each of these events, one after the other, ZooKeeper is cut off until the run has ended.
        """
        left, going = list(cut), list[Run]()

        def tell(event: Event) -> None:
            if stop and event.event == "attempted":
                going[0].request_stop("Ann")
            self._cut_at(event, left)

        with self.operations(tell) as operations:
            plan = operations.make_plan(KraftPlanRequest(to, quiet_s=QUIET_S), OVERRIDES.get(to, ()))
            self._approve(operations, plan)
            going.append(operations.begin(plan))
            run, result = going[0], going[0].act()
        while cut and result.state != "VERIFIED":
            self.cut.append((to, result.state, result.sentence))
            self.cable.mend()
            faults.mend_controllers_to_zookeeper(self.lab)
            run, result = self._resumed(run.run_id, left)
        self._keep(f"{to}{' stopped' if stop else ''}", run, result)
        if stop:
            self.again("resume")

    def _approve(self, operations: Operations, plan: Plan) -> None:
        if plan.consent is None or not plan.consent.second_person:
            operations.approve(plan, plan.subject, plan.digest[:8])
            return
        with pytest.raises(ApprovalError) as caught:
            operations.approve(plan, plan.subject, plan.digest[:8], approver="another operator or tool")
        self.refusals["one login"] = str(caught.value)
        approve_as_bob(self.runs, plan)

    def _cut_at(self, event: Event, left: list[str]) -> None:
        """No byte passes between ZooKeeper and this process, nor between ZooKeeper and the controllers."""
        name = "/".join(filter(None, (event.event, event.step_id, event.item, event.outcome)))
        if left and fnmatchcase(name, left[0]):
            left.pop(0)
            self.cable.cut()
            faults.cut_controllers_from_zookeeper(self.lab)

    def _resumed(self, run_id: str, left: list[str]) -> tuple[Run, RunResult]:
        """Resume as soon as the lock of before has ended with its session."""
        deadline = time.monotonic() + LOCK_S
        while True:
            with self.operations(partial(self._cut_at, left=left)) as operations:
                run = operations.run(run_id)
                try:
                    return run, run.resume()
                except TargetBusy:
                    if time.monotonic() > deadline:
                        raise

    def again(self, verb: str) -> None:
        """Resume or undo the last run, in a new process's place."""
        with self.operations() as operations:
            run = operations.run(self.acted[-1])
            self._keep(verb, run, run.resume() if verb == "resume" else run.undo())

    def _keep(self, name: str, run: Run, result: RunResult) -> None:
        self.acted.append(run.run_id)
        self.results.append((name, result))
        assert result.state in ("VERIFIED", "UNDONE", "STOPPED"), (name, result.sentence)
        self.seen.append((name, self.status(name)))
        with connected(self.lab.zookeeper_connect) as client:
            self.epochs.append(int(client.get("/controller_epoch")[0]))


def refuse_old_members(seen: CutMove) -> None:
    with connected(seen.lab.zookeeper_connect) as client:
        client.create("/consumers/shop/ids/shop_a", b"{}", ephemeral=True, makepath=True)
        seen.refuse_plan("old members", "kraft", UnsafePlan)


def go(to: str, stop: bool = False, cut: Sequence[str] = ()) -> Callable[[CutMove], None]:
    return lambda seen: seen.go(to, stop, cut)


def undo(seen: CutMove) -> None:
    seen.again("undo")


FORWARD = (go("controllers"), go("dual write"))
IN_A_ROLL, BETWEEN_STEPS = "attempted/01-roll-to-*", "verified/01-*/ok"
SHORT = (
    lambda seen: seen.refuse_plan("too far", "kraft", PlanError),
    go("controllers"),
    go("dual write", cut=[IN_A_ROLL]),
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
    go("kraft", cut=[BETWEEN_STEPS]),
    go("zookeeper", cut=[IN_A_ROLL, "verified/03-stop-controllers/ok", "verified/04-hand-back/ok"]),
    *FORWARD,
    go("kraft"),
    go("finalised"),
    lambda seen: seen.refuse_plan("can't be undone", "zookeeper"),
)


@pytest.fixture(scope="module")
def walk() -> Iterator[CutMove]:
    with Lab(brokers=1, controllers=1) as lab:
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=50)
        seen = CutMove(lab)
        with seen.cable:
            for verb in LONG if IS_SOAK else SHORT:
                verb(seen)
        producer.stop()
        seen.read_back("orders", 2)
        seen.changes = read_zookeeper_files([lab.folder / "zookeeper" / "data"]).changes
        yield seen


def test_each_plan_reaches_its_phase(walk):
    phases = [(name, status.state.phase) for name, status in walk.seen if name != "kraft stopped"]
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


def test_no_acknowledged_record_is_lost(walk, record_property):
    walk.report(record_property, f"{len(walk.cut)} times cut off from the cluster")
    assert walk.n_acknowledged > 100
    assert walk.lost == set()


def test_nothing_is_left_in_zookeeper_after_a_rollback(walk):
    for name, status in walk.seen:
        if name == "zookeeper":
            control = status.read.control
            assert (control.has_migration, control.is_controller_persistent) == (False, False)
            assert control.controller_epoch > (control.max_state_epoch or 0)
            assert [each.check_id for each in status.findings if each.severity in ("alarm", "block")] == []


def test_the_epoch_only_grows(walk):
    assert walk.epochs == sorted(walk.epochs)


def test_a_run_that_zookeeper_was_cut_off_from_reports_it_and_is_resumed_to_its_end(walk):
    assert len(walk.cut) == (5 if IS_SOAK else 1)
    assert {state for _, state, _ in walk.cut} <= {"FAILED", "STOPPED"}
    assert walk.cut[0][2].startswith("step '01-roll-to-migration-last', outcome unknown of item 'broker 1': ")
    assert all("ZooKeeper" in sentence for _, _, sentence in walk.cut)


def test_nothing_is_written_to_zookeeper_but_the_lock_and_the_transaction(walk):
    """By ZooKeeper's own log: every change of every session of this process."""
    done = walk.changes.filter(pl.col("refusal").is_null(), pl.col("error").is_null())
    own = pl.col("path").str.starts_with("/offramp")
    ours = done.filter(pl.col("session_id").is_in(sorted(walk.sessions)))
    assert done.filter(own, ~pl.col("session_id").is_in(sorted(walk.sessions))).to_dicts() == []
    locks = r"^/offramp(/cluster_(locks|runs)(/[^/]+)?)?$"
    rest = ours.filter(
        pl.col("path").is_not_null(), ~pl.col("path").str.contains(locks), pl.col("operation") != "close_session"
    )
    groups = rest.sort("zxid", "part").group_by("zxid", maintain_order=True).agg("operation", "path")
    made = [list(zip(row["operation"], row["path"])) for row in groups.to_dicts()]
    back = [("set_data", "/controller_epoch"), ("delete", "/controller"), ("delete", "/migration")]
    undone = [("check", "/controller"), ("delete", "/migration")]
    assert made == ([undone, back, back] if IS_SOAK else [back])


def test_an_undo_is_offered_only_where_one_is_possible(walk):
    offered = {name: bool(result.to_undo) for name, result in walk.results if name not in ("undo", "resume")}
    expected = {"controllers": True, "dual write": False, "zookeeper": False, "kraft stopped": True}
    assert offered == expected | ({"kraft": True, "finalised": False} if IS_SOAK else {})


def test_each_refusal_has_its_name(walk):
    assert "The next plan must go to 'controllers'" in walk.refusals["too far"]
    assert "shop (1)" in walk.refusals["old members"]
    if IS_SOAK:
        assert "can't be undone" in walk.refusals["can't be undone"]
        assert "under one login" in walk.refusals["one login"]


def test_the_payloads_are_saved_before_the_transaction(walk):
    events = [event for run in walk.acted for event in walk.events(run)]
    begun = [it for it in events if (it["event"], it["item"]) == ("attempted", "control of the cluster")]
    saved = [json.loads(it["details"]) for it in begun]
    assert len(saved) == (2 if IS_SOAK else 1)
    for each in saved:
        assert set(each["saved"]) == {"/controller", "/controller_epoch", "/migration"}
        assert each["new_epoch"] > int(each["saved"]["/controller_epoch"]["text"])
