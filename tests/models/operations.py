"""A group in memory and operations that move it, for the models of the wizards: no server, every write counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from kit.engine.execution.run import Run
from kit.engine.model.performer import Checked, ItemOutcome, Outcome, StepState, Verified
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import targets_of
from kit.errors import ConnectError
from kit.moves.group import plan as group
from kit.moves.group.deploy import deployer_of
from kit.moves.group.group_state import FLAVOURS, KC, MEZKCC, OZKCC, GroupState, MemberState, PartitionOffsets
from kit.moves.group.plan import GroupPlanRequest, plan_from
from kit.operations import kinds
from kit.operations.operations import Operations
from kit.profile import ApprovalSettings, DeploySettings
from widgets.group.model import GroupMigration

GROUP = "shop"
PARTITIONS = frozenset(("orders", number) for number in range(6))


class ToyGroup:
    """Three members of six partitions; ``gate`` holds every write back while it is cleared (``held``: one waits)."""

    def __init__(self) -> None:
        self.flavours = [OZKCC, OZKCC, OZKCC]
        self.mode: str | None = None
        self.offset = 100
        self.writes: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Event()
        self.is_away = False
        self.fails = False

    def look(self, group_id: str) -> GroupState:
        if self.is_away:
            raise ConnectError("ZooKeeper does not answer")
        now = datetime.now(UTC)
        self.offset += 1
        members = tuple(self._member(number, flavour, now) for number, flavour in enumerate(self.flavours))
        offsets = {pair: PartitionOffsets(self.offset, 1, None, 0, self.offset + 10) for pair in PARTITIONS}
        is_kafka = self.mode == "kafka" and OZKCC not in self.flavours
        return GroupState(
            group_id=group_id,
            observed_at=now,
            stage=self._stage(is_kafka),
            effective_mode="kafka" if is_kafka else "zookeeper",
            mode=self.mode,
            mode_version=0 if self.mode else None,
            members=members,
            embedded={},
            owners={},
            kafka_state="Stable",
            coordinator=1,
            offsets=offsets,
            threads={member.member_id: {"orders": 1} for member in members},
            subscribed={"orders": len(PARTITIONS)},
            blockers={},
        )

    def write(self, what: str) -> None:
        self.held.set()
        self.gate.wait(20)
        self.writes.append(what)

    def _member(self, number: int, flavour: str, now: datetime) -> MemberState:
        mine = frozenset(pair for pair in PARTITIONS if pair[1] % 3 == number)
        name = f"{GROUP}_<{number}>-{flavour}"
        return MemberState(name, name, flavour, "host<1>", mine, now - timedelta(hours=1))

    def _stage(self, is_kafka: bool) -> str:
        match [flavour in self.flavours for flavour in FLAVOURS]:
            case [True, False, False]:
                return "OZKCC"
            case [True, True, False]:
                return "canary MEZKCC"
            case [False, True, False]:
                return "Kafka coordination" if is_kafka else "all MEZKCC"
            case [False, True, True]:
                return "canary KC"
            case _:
                return "all KC" if KC in self.flavours else "unsafe mix"


PAUSE = {"partitions_that_changed_hands": 3, "longest_unowned_ms": 7, "owners_watched": "each change"}


class NothingInTheWay:
    """The answers of a performer in memory if nothing blocks a plan."""

    cluster_id = "toy"

    def targets_of(self, step):
        return targets_of(step, kinds.all_recipes())

    def refuse_altered(self, plan):
        kinds.refuse_altered(plan)

    def end(self) -> None:
        pass

    def settle(self, plan, other_run, go_on) -> None:
        pass

    def refusal(self, plan):
        return None

    def check_back(self, step, acted):
        return Checked(True, "nobody was there")


class ToyPerformer(NothingInTheWay):
    """Replaces and toggles in memory; a soak has ended at once."""

    def __init__(self, toy: ToyGroup, say: Callable[[str], None]) -> None:
        self.toy, self._say = toy, say

    def observe(self, plan: Plan):
        found = {name: each.value for name, each in group._observed(self.toy.look(GROUP)).items()}
        return {name: plan.observed[name].value if "offsets" in name else found[name] for name in plan.observed}

    def check(self, step):
        return Checked(True, f"found {self._counts()}")

    def state(self, step, acted=None):
        if not step.changes:
            return StepState.NOT_DONE
        wanted = [step.parameters["after"], step.parameters["before"]]
        now = self.toy.mode if step.kind == "toggle" else self._counts()
        if now == wanted[0]:
            return StepState.DONE
        return StepState.NOT_DONE if now == wanted[1] else StepState.PARTLY

    def act(self, step, report):
        return [self._change(step, change, change.before, change.after, report) for change in step.changes]

    def verify(self, step):
        return Verified(not self.toy.fails, "it is so", PAUSE if step.kind == "toggle" else {})

    def undo(self, step, acted, report):
        made = {each.item for each in acted.outcomes if each.outcome == Outcome.CONFIRMED}
        changes = [change for change in step.changes if change.item in made]
        return [self._change(step, change, change.after, change.before, report) for change in changes]

    def _change(self, step, change, old, new, report) -> ItemOutcome:
        self._say(f"Now replace one {old} by one {new}.")
        is_there = step.kind != "toggle" and old not in self.toy.flavours
        if not is_there:
            report.attempt([change.item])
            self.toy.write(f"{old} → {new}")
            if step.kind == "toggle":
                self.toy.mode = new
            else:
                self.toy.flavours[self.toy.flavours.index(old)] = new
        outcome = ItemOutcome(change.item, Outcome.UNCHANGED if is_there else Outcome.CONFIRMED, old, new)
        report([outcome])
        return outcome

    def _counts(self) -> dict[str, int]:
        return {each: self.toy.flavours.count(each) for each in FLAVOURS if each in self.toy.flavours}


class ToyLock:
    def acquire(self, targets, run_id) -> None:
        pass

    def assert_held(self) -> None:
        pass

    def release(self) -> None:
        pass

    def mark(self, targets, run_id) -> None:
        pass

    def followed_by(self, targets, run_id):
        return {}

    def mark_settled(self, targets, run_id) -> None:
        pass

    def unsettled(self, targets, run_id) -> None:
        return None


class ToyOperations(Operations):
    """The real operations but for its hands: plans by :func:`plan_from`, runs on the toy."""

    def __init__(self, toy: ToyGroup, runs: Path, say, tell, needs_second: bool = False) -> None:
        approvals = ApprovalSettings(require_second_person=needs_second)
        profile = SimpleNamespace(deploy=DeploySettings(), approvals=approvals)
        super().__init__(SimpleNamespace(profile=profile, cluster_id="toy", zookeeper=True), runs, say, tell)  # type: ignore[arg-type]
        self.toy = toy

    def make_plan(self, request: GroupPlanRequest, overrides: Iterable[str] = (), made_by: str | None = None) -> Plan:
        self.toy.gate.wait(20)
        looks = self.toy.look(request.group_id), self.toy.look(request.group_id)
        return self.save_plan(
            plan_from(*looks, "toy", deployer_of(self.cluster.profile), request, made_by or "ann", overrides)
        )

    def _performer(self, plan: Plan):
        return ToyPerformer(self.toy, self._say)

    def _run(self, folder: Path, plan: Plan) -> Run:
        return Run(
            folder,
            self._performer(plan),
            ToyLock(),
            clock=self._clock,
            poll_s=0.01,
            tell=self._tell,
            rules=self._rules,
            first_seen=partial(self._first_seen, plan),
        )


def open_toy(toy: ToyGroup, runs: Path, needs_second: bool = False) -> GroupMigration:
    """A model as another kernel would make it: it knows what is in ``runs``."""
    return GroupMigration(lambda say, tell: ToyOperations(toy, runs, say, tell, needs_second), toy.look, GROUP)


__all__ = ["GROUP", "KC", "MEZKCC", "OZKCC", "ToyGroup", "open_toy"]
