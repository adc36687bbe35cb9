"""A cluster in memory, who carries plans out on it, and a hazard at every point where a run can be hit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kit.engine.execution.run import Run, start_run
from kit.engine.model.approval import approve
from kit.engine.model.clock import Clock
from kit.engine.model.observation import IGNORED, MAY_GROW, Observation
from kit.engine.model.performer import Checked, ItemOutcome, Outcome, StepState, Verified
from kit.engine.model.plan import Plan
from kit.engine.model.step import Change, Step
from kit.errors import ConnectError, LockLost, ReadError, TargetBusy

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
GROUP = "shop.orders"


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Time:
    """A clock that moves by being slept on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ahead = timedelta(0)
        self.clock = Clock(lambda: START + self.ahead + timedelta(seconds=self.seconds), self._tick, self._sleep)

    def _tick(self) -> float:
        self.seconds += 0.001
        return self.seconds

    def _sleep(self, seconds: float) -> None:
        self.seconds += max(seconds, 0.001)


class Hazard:
    """Counts the points of a run, and strikes once, at the one it is armed for."""

    def __init__(self) -> None:
        self.points: list[str] = []
        self.armed: tuple[int, Callable[[str], None]] | None = None

    def arm(self, at: int, strike: Callable[[str], None]) -> None:
        self.points, self.armed = [], (at, strike)

    def __call__(self, name: str) -> None:
        self.points.append(name)
        if self.armed is not None and len(self.points) - 1 == self.armed[0]:
            strike, self.armed = self.armed[1], None
            strike(name)


@dataclass
class Cluster:
    """Items with values; every write is kept, and with it what was wrong about it."""

    values: dict[str, str]
    members: int = 3
    end_offset: int = 100
    refuses: bool = False
    late_by: int = 0
    forbids: str | None = None
    writes: list[tuple[str, str, str]] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    theirs: set[str] = field(default_factory=set)
    """Items that another operator or tool set since: whatever their value is."""

    def write(self, item: str, expected: str, new: str) -> None:
        if self.refuses:
            self.refuses = False
            raise ReadError(f"{item}: not now")
        if self.values[item] != expected:
            self.wrongs.append(f"{item} was written from {expected} while it was {self.values[item]}")
        if item in self.theirs:
            self.wrongs.append(f"{item} is another operator or tool's")
        self.writes.append((item, expected, new))
        self.values[item] = new


class ModelLock:
    """One holder; a lock that was lost is another operator's or tool's."""

    def __init__(self, hazard: Hazard) -> None:
        self._hazard = hazard
        self.holder: str | None = None
        self.last: str | None = None
        self.later: dict[str, str] = {}
        self.marked: list[tuple[str, ...]] = []
        self.is_lost = self.is_reported = self.is_at_rest = False

    def acquire(self, targets, run_id) -> None:
        self._hazard("lock.acquire")
        if self.holder is not None:
            raise TargetBusy(f"{targets[0]} is worked on by {self.holder}")
        self.holder, self.is_lost, self.is_reported = run_id, False, False

    def assert_held(self) -> None:
        self._hazard("lock.assert_held")
        if self.is_lost or self.holder is None:
            self.is_reported = True
            raise LockLost("the session expired")

    def mark(self, targets, run_id) -> None:
        self._hazard("lock.mark")
        self.last, self.is_at_rest = run_id, False
        self.marked.append(tuple(targets))
        self.later = {target: run for target, run in self.later.items() if target not in targets}

    def followed_by(self, targets, run_id):
        last = {} if self.last in (None, run_id) else dict.fromkeys(targets, self.last)
        return last | {target: self.later[target] for target in targets if target in self.later}

    def mark_settled(self, targets, run_id) -> None:
        self._hazard("lock.rest")
        if self.last == run_id:
            self.is_at_rest = True

    def unsettled(self, targets, run_id):
        self._hazard("lock.unsettled")
        return None if self.is_at_rest or self.last in (None, run_id) else self.last

    def release(self) -> None:
        self.holder = None

    def count_write(self, item, wrongs) -> None:
        """It may be lost between the run's examine it and the write, once; for that, writes are conditional."""
        if self.holder is None or self.is_reported:
            wrongs.append(f"{item} written without the lock")
        self.is_reported = self.is_lost


class ModelPerformer:
    """Writes item by item; says of itself when it was asked to do what it must not be asked."""

    cluster_id = "model"

    def __init__(self, cluster: Cluster, lock: ModelLock, hazard: Hazard, plan: Plan) -> None:
        self.cluster, self._lock, self._hazard, self._plan = cluster, lock, hazard, plan
        self.settled: list[str] = []
        self.n_ended = 0

    def refuse_altered(self, plan):
        """Its steps have no parameters: there is nothing in which they could differ."""

    def targets_of(self, step):
        """Items are dealt out to the targets in turn."""
        targets = self._plan.targets
        return {change.item: targets[int(change.item[-1]) % len(targets)] for change in step.changes}

    def observe(self, plan):
        self._hazard("observe")
        return {"members": self.cluster.members, "end": self.cluster.end_offset, "values": dict(self.cluster.values)}

    def refusal(self, plan):
        self._hazard("refusal")
        return self.cluster.forbids

    def end(self) -> None:
        self.n_ended += 1

    def settle(self, plan, other_run, go_on) -> None:
        self._hazard("settle")
        self.settled.append(other_run)
        go_on()

    def check(self, step):
        self._hazard(f"{step.step_id}.check")
        return Checked(True, "ready")

    def state(self, step, acted=None):
        self._hazard(f"{step.step_id}.state")
        return self._state(step, acted)

    def _state(self, step, acted=None):
        asked = [change for change in step.changes if acted is None or change.item in _written(acted)]
        done = {change.item for change in asked if self.cluster.values[change.item] == change.after}
        if len(done) == len(asked) and (asked or acted is None):
            return StepState.DONE
        return StepState.PARTLY if done else StepState.NOT_DONE

    def check_back(self, step, acted):
        self._hazard(f"{step.step_id}.check_back")
        return Checked(True, "nobody was there")

    def act(self, step, report):
        self._hazard(f"{step.step_id}.act")
        is_left = not step.changes or self._state(step) != StepState.DONE or report.acted.is_open
        self._expect(is_left, f"act on {step.step_id}, which is done")
        earlier = self._plan.steps[: [it.step_id for it in self._plan.steps].index(step.step_id)]
        self._expect(all(self._state(it) == StepState.DONE for it in earlier), f"act on {step.step_id} too early")
        return [self._move(step, change, change.before, change.after, report) for change in step.changes]

    def undo(self, step, acted, report):
        self._hazard(f"{step.step_id}.undo")
        is_left = self._state(step, acted) != StepState.NOT_DONE or acted.is_open
        self._expect(is_left, f"undo of {step.step_id}, which is not done")
        known = _written(acted)
        written = {it.item for it in step.changes if self.cluster.values[it.item] == it.after} - acted.taken_back
        self._expect(written <= known, f"undo of {step.step_id} knows {known}, but {written} were written")
        ours = [change for change in reversed(step.changes) if change.item in known]
        return [self._move(step, change, change.after, change.before, report) for change in ours]

    def verify(self, step):
        self._hazard(f"{step.step_id}.verify")
        if self.cluster.late_by:
            self.cluster.late_by -= 1
            return Verified(False, f"not yet: {self.cluster.late_by}")
        return Verified(self._state(step) == StepState.DONE, "read back", {"end": self.cluster.end_offset})

    def _move(self, step, change, expected, new, report):
        self._hazard(f"{step.step_id}/{change.item}.before")
        if self.cluster.values[change.item] == new:
            outcome = ItemOutcome(change.item, Outcome.UNCHANGED, new, new)
        else:
            report.attempt([change.item])
            self._hazard(f"{step.step_id}/{change.item}.attempted")
            outcome = self._written(change.item, expected, new)
            self._hazard(f"{step.step_id}/{change.item}.written")
        report([outcome])
        self._hazard(f"{step.step_id}/{change.item}.reported")
        return outcome

    def _written(self, item, expected, new):
        self._lock.count_write(item, self.cluster.wrongs)
        try:
            self.cluster.write(item, expected, new)
        except ConnectError:
            raise
        except ReadError as error:
            return ItemOutcome(item, Outcome.REFUSED, expected, None, str(error))
        return ItemOutcome(item, Outcome.CONFIRMED, expected, new)

    def _expect(self, holds, wrong):
        if not holds:
            self.cluster.wrongs.append(wrong)


def _written(acted):
    return {outcome.item for outcome in acted.written}


def make_plan(shape: tuple[int, ...] = (2, 2), **changed) -> Plan:
    """One step per number, with so many items; a step of 0 items waits."""
    steps = tuple(
        Step(
            step_id=f"s{number}",
            kind="model",
            title=f"Step {number}",
            precondition="the one before is done",
            verification="all items are read back",
            deadline_s=5,
            changes=tuple(Change(f"i{number}{item}", "old", "new") for item in range(n_items)),
            undo="write the old values",
            affects=("values",),
        )
        for number, n_items in enumerate(shape)
    )
    values = {change.item: "old" for step in steps for change in step.changes}
    fields = {
        "kind": "toggle",
        "cluster_id": "model",
        "targets": (GROUP,),
        "made_by": "Ann",
        "made_at": START,
        "observed": {
            "members": Observation(3),
            "end": Observation(100, MAY_GROW),
            "values": Observation(values, IGNORED if "ignore" in changed else "exact"),
        },
        "steps": steps,
    }
    changed.pop("ignore", None)
    return Plan(**{**fields, **changed})


def approve_plan(plan: Plan, now: datetime = START, **changed):
    fields = {
        "typed_subject": plan.subject,
        "typed_digest_prefix": plan.digest[:8],
        "approver": "Bob",
        "now": now,
        "valid_for": timedelta(hours=1),
    }
    return approve(plan, **{**fields, **changed})


class ModelRun:
    """A cluster, an approved plan for it, and as many processes one after another as it takes."""

    def __init__(self, root: Path, shape: tuple[int, ...] = (2, 2), **changed) -> None:
        self.time, self.hazard = Time(), Hazard()
        self.plan = make_plan(shape, **changed)
        self.cluster = Cluster({change.item: "old" for step in self.plan.steps for change in step.changes})
        self.lock = ModelLock(self.hazard)
        self.folder = start_run(self.plan, approve_plan(self.plan), root, clock=self.time.clock)
        self.run = self.process()

    def process(self) -> Run:
        """A new process on the same run; the lock of the old one ended with it."""
        self.lock.holder = None
        self.performer = ModelPerformer(self.cluster, self.lock, self.hazard, self.plan)
        self.run = Run(
            self.folder,
            self.performer,
            self.lock,
            clock=self.time.clock,
            tell=lambda event: self.hazard(f"event {event.event}"),
        )
        return self.run

    @property
    def is_all_done(self) -> bool:
        return set(self.cluster.values.values()) == {"new"}

    @property
    def is_all_back(self) -> bool:
        return set(self.cluster.values.values()) == {"old"}

    def kill(self, name: str) -> None:
        """Over the middle of a line, where it was about to write one."""
        with (self.folder / "events.jsonl").open("ab") as file:
            file.write(json.dumps({"run_id": self.folder.name})[:-3].encode())
        raise Killed(name)

    def press_stop(self, name: str) -> None:
        self.run.request_stop("Cid")

    def lose_lock(self, name: str) -> None:
        self.lock.is_lost = True

    def interrupt(self, name: str) -> None:
        raise KeyboardInterrupt

    def break_down(self, name: str) -> None:
        raise ZeroDivisionError("a bug")

    def fail(self, name: str) -> None:
        raise ReadError("told")

    def disconnect(self, name: str) -> None:
        raise ConnectError("no route")

    def refuse(self, name: str) -> None:
        self.cluster.refuses = True

    def intrude(self, name: str) -> None:
        self.cluster.members += 1

    def be_late(self, name: str) -> None:
        self.cluster.late_by = 20

    def jump_clock(self, name: str) -> None:
        self.time.ahead += timedelta(hours=2)


FAULTS = (
    "kill",
    "press_stop",
    "lose_lock",
    "interrupt",
    "break_down",
    "fail",
    "disconnect",
    "refuse",
    "intrude",
    "be_late",
    "jump_clock",
)
