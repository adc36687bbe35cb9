"""Groups in memory and operations that toggle them, for the wizard of a fleet: no server, every write counted."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from kit.engine.model.performer import Checked, ItemOutcome, Outcome, StepState, Verified
from kit.engine.model.plan import Plan
from kit.errors import ConnectError
from kit.groups.snapshot import Snapshot
from kit.moves.fleet import plan as fleet
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.fleet.wave import NOT_FOLLOWING
from kit.moves.group.toggle import mode_path
from kit.tables.groups import KAFKA, ZOOKEEPER, Group, Member, MigrationState, ReadTiming
from tests.generators.snapshots import snapshot_of
from tests.models.operations import NothingInTheWay, ToyOperations
from widgets.fleet.model import FleetToggle


class ToyFleet:
    """``modes``: group → its toggle; each group has one MEZKCC, those in ``old`` an OZKCC instead."""

    def __init__(self, *names: str) -> None:
        self.modes: dict[str, str | None] = dict.fromkeys(names)
        self.versions = dict.fromkeys(names, 0)
        self.old: set[str] = set()
        self.deaf: set[str] = set()
        """Groups that don't follow."""
        self.age_s = dict.fromkeys(names, 3600.0)
        self.writes: list[str] = []
        self.is_away = False
        self.gate = threading.Event()
        self.gate.set()
        self.is_writing = threading.Event()

    def scan(self) -> Snapshot[pl.DataFrame]:
        if self.is_away:
            raise ConnectError("ZooKeeper does not answer")
        now = datetime.now(UTC)
        rows = {
            "groups": [Group(name, ZOOKEEPER, None, None, None, None, None) for name in self.modes],
            "members": [self._member(name, now) for name in self.modes],
            "migration_states": [
                MigrationState(name, mode, self.versions[name], None) for name, mode in self.modes.items() if mode
            ],
            "read_timings": [ReadTiming("all", now, 1.0, len(self.modes))],
        }
        return snapshot_of(rows, now)

    def write(self, name: str, mode: str | None) -> None:
        self.is_writing.set()
        self.gate.wait(20)
        self.writes.append(f"{name} → {mode}")
        self.modes[name] = mode
        self.versions[name] += 1

    def _member(self, name: str, now: datetime) -> Member:
        since = now - timedelta(seconds=self.age_s[name])
        return Member(name, ZOOKEEPER, f"{name}_0", None, "host<1>", None, None, name not in self.old, since, None)


class ToyWaves(NothingInTheWay):
    """Writes the toggles of a wave in memory; a pause has ended at once."""

    def __init__(self, toy: ToyFleet) -> None:
        self.toy = toy

    def observe(self, plan: Plan):
        return fleet.observed_of(self.toy.scan(), plan)

    def check(self, step):
        return Checked(True, f"{len(step.parameters['groups'])} groups settled")

    def state(self, step, acted=None):
        found = {self.toy.modes[name] for name in step.parameters["groups"]} if step.changes else {None}
        if found == {step.parameters.get("after")}:
            return StepState.DONE
        return StepState.PARTLY if step.parameters.get("after") in found else StepState.NOT_DONE

    def act(self, step, report):
        return [self._change(name, change.before, change.after, report) for name, change in self._changes(step)]

    def verify(self, step):
        wrong = {name: "it is <deaf>" for name in step.parameters["groups"] if name in self.toy.deaf}
        return Verified(not wrong, f"{len(wrong)} don't follow" if wrong else "they follow", {NOT_FOLLOWING: wrong})

    def undo(self, step, acted, report):
        made = {each.item for each in acted.outcomes if each.outcome == Outcome.CONFIRMED}
        found = [(name, change) for name, change in self._changes(step) if change.item in made]
        return [self._change(name, change.after, change.before, report) for name, change in found]

    def _changes(self, step):
        names = {mode_path(name): name for name in step.parameters["groups"]}
        return [(names[change.item], change) for change in step.changes]

    def _change(self, name, before, after, report) -> ItemOutcome:
        report.attempt([mode_path(name)])
        self.toy.write(name, after)
        outcome = ItemOutcome(mode_path(name), Outcome.CONFIRMED, before, after)
        report([outcome])
        return outcome


class ToyFleetOperations(ToyOperations):
    """The real operations but for its hands."""

    def make_plan(self, request: FleetPlanRequest, overrides: Iterable[str] = (), made_by: str | None = None) -> Plan:
        return self.save_plan(fleet.plan_from(self.toy.scan(), "toy", request, made_by or "ann", overrides))

    def _performer(self, plan: Plan):
        return ToyWaves(self.toy)


def open_toy_fleet(toy: ToyFleet, runs: Path) -> FleetToggle:
    """A model as another kernel would make it: it knows what is in ``runs``."""
    return FleetToggle(lambda say, tell: ToyFleetOperations(toy, runs, say, tell), toy.scan)


__all__ = ["KAFKA", "ZOOKEEPER", "ToyFleet", "open_toy_fleet"]
