"""Judge what must hold after every write and at every end, by the model's truth and not by what the engine believes.

An engine can't know what another operator or tool did after its last observation. So each order and each toggle is
judged by what that observation could see, and each approval, lock and stop by whether it was over for more than
``GRACE`` requests already.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kit.engine.model.approval import CLOCK_SKEW, Approval
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord, load_run
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.moves.fleet import subject as fleet_subject
from kit.moves.group.toggle import mode_path
from kit.moves.protocol.stopped import START_ALL, STOP_ALL, StoppedParameters
from tests.adversary.deployers import Order
from tests.adversary.groups import Start
from tests.adversary.znodes import Write

if TYPE_CHECKING:
    from tests.adversary.process import Process
    from tests.adversary.world import ContestedCluster

GRACE = 16
"""Requests between the engine's examine an approval, a lock or a button and the write it allows."""
FRESH_S = 5.0
"""The largest age of the observation that an order rests on."""
WAY_BACK = timedelta(days=7)
"""The time limit of an undo where a plan doesn't name one."""
WRITTEN = {Outcome.CONFIRMED, Outcome.UNKNOWN}
HALTED = {RunState.FAILED, RunState.STOPPED, RunState.UNDO_HALTED}


class Wrong(AssertionError):
    """``what`` must hold and doesn't."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(f"{what}: {text}")
        self.what = what


@dataclass
class Facts:
    """The truth about one run, whatever its journal has."""

    plan: Plan
    began_at: datetime
    is_forged: bool = False
    approvals: list[Approval] = field(default_factory=list)
    mzxids: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The mzxids that each toggle got by the run's writes, forward and back."""
    in_place: dict[str, int] = field(default_factory=dict)
    """Toggles whose last write of this run was forward, and the mzxid it left."""
    unsure: set[str] = field(default_factory=set)
    """Paths of writes whose answer was lost."""

    def is_approved(self, now: datetime) -> bool:
        return any(
            each.digest == self.plan.digest and each.approved_at - CLOCK_SKEW <= now < each.expires_at
            for each in self.approvals
        )

    def may_go_back(self, now: datetime) -> bool:
        seconds = getattr(self.plan, "way_back_s", None)
        limit = WAY_BACK if seconds is None else timedelta(seconds=seconds)
        return self.is_approved(now) or now <= self.began_at + limit

    def step(self, step_id: str | None) -> Step | None:
        return next((step for step in self.plan.steps if step.step_id == step_id), None)


class RunJudge:
    """Collects what was wrong; raising it at once would only resemble a fault of the performer to the engine."""

    def __init__(self, world: ContestedCluster) -> None:
        self._world = world
        self.runs: dict[str, Facts] = {}
        self.wrongs: list[Wrong] = []
        self.met: Counter[str] = Counter()
        self._planned: dict[str, dict[str, int]] = {}
        self._there: dict[str, frozenset[str]] = {}

    def raise_if_wrong(self) -> None:
        if self.wrongs:
            raise self.wrongs[0]

    def wrong(self, what: str, text: str) -> None:
        self.met[what] += 1
        self._world.say(f"WRONG {what}: {text}")
        self.wrongs.append(Wrong(what, text))

    def planned(self, plan: Plan) -> None:
        """Return the toggles and the members when a plan is made."""
        nodes = self._world.tree.nodes
        paths = [mode_path(group) for group in plan.targets]
        members = [each.member_id for group in plan.targets for each in self._world.groups[group].members]
        self._there[plan.digest] = frozenset(members)
        self._planned[plan.digest] = {path: nodes[path].mzxid for path in paths if path in nodes}

    # Writes

    def wrote(self, process: Process, write: Write) -> None:
        if write.path.startswith("/offramp/"):
            return
        group = write.path.split("/")[2]
        self._may_write(process, group, f"{write.verb} {write.path} {write.text!r}")
        if write.path == mode_path(group):
            self._toggled(process, group, write)
        elif write.path.startswith(f"/consumers/{group}/offsets/"):
            self._moved_offset(process, write)
        else:
            self.wrong("stranger", f"{process}: {write.verb} {write.path}")

    def ordered(self, process: Process, order: Order) -> None:
        replacement, facts = order.replacement, self.runs[process.run_id]
        self._may_write(process, replacement.group, str(order))
        seen = process.seen.get(replacement.group)
        if seen is None or process.slept - seen.at > FRESH_S:
            self.wrong("stale look", f"{process} orders {order} and has slept since it looked")
            return
        step = facts.step(order.step_id)
        problem = None if step is None else _off_the_way(step, seen.mix.counts)
        if problem:
            self.wrong("foreign", f"{process} orders {order}, and {problem}")
        after = seen.mix.changed(replacement.from_flavour if replacement.member else None, replacement.to_flavour)
        if after.reads_twice:
            self.wrong("reads another's", f"{process} orders {order} where {after.counts} then read, {after.mode!r}")
        self._victim(process, order, seen.mix.flavours)
        open_orders = self._open_orders(process, replacement.group)
        if step is not None and step.kind in (STOP_ALL, START_ALL):  # It orders all its members one after the other.
            open_orders = [each for each in open_orders if each.replacement.member == replacement.member]
        if open_orders:
            self.wrong("two orders", f"{process} orders {order} while another order of it may still be executed")

    def _may_write(self, process: Process, group: str, what: str) -> None:
        facts = self.runs[process.run_id]
        if facts.is_forged or process.is_of_edited:
            self.wrong("forged", f"{process}: {what}, by a plan whose steps say something else")
        if group not in facts.plan.targets:
            self.wrong("other group", f"{process}: {what}; its plan is for {facts.plan.targets}")
        for name, since in process.over.items():
            if process.calls - since > GRACE:
                self.wrong(name, f"{process}: {what}, {process.calls - since} requests after that")

    def _toggled(self, process: Process, group: str, write: Write) -> None:
        facts = self.runs[process.run_id]
        seen = process.seen.get(group)
        mix = seen.mix if seen else self._world.groups[group].mix
        if mix.toggled(write.text).reads_twice:
            self.wrong("reads another's", f"{process} sets {write.path} to {write.text!r} where {mix.counts} read")
        found = None if write.before is None else write.before.mzxid
        if found not in self._known(process, write.path):
            back = "undoes" if process.is_back else "overwrites"
            self.wrong("another's toggle", f"{process} {back} {write.path}, which another operator or tool set")
        facts.mzxids[write.path].append(write.zxid)
        facts.in_place.pop(write.path, None)
        if not process.is_back:
            facts.in_place[write.path] = write.zxid

    def _known(self, process: Process, path: str) -> set[int | None]:
        """Return what this run may find there: what it wrote, and going forward what its plan saw."""
        facts = self.runs[process.run_id]
        mine: set[int | None] = {*facts.mzxids[path]}
        if path in facts.unsure:  # It can't determine whose the one write is that followed what it knew.
            node = self._world.tree.nodes.get(path)
            mine |= {None if node is None else node.mzxid, *self._others(path)}
        return mine if process.is_back else mine | {self._planned[facts.plan.digest].get(path)}

    def _others(self, path: str) -> set[int]:
        return {zxid for zxid, where in self._world.others_wrote if where == path}

    def _moved_offset(self, process: Process, write: Write) -> None:
        before = None if write.before is None else int(write.before.data)
        if write.text is None or (before is not None and int(write.text) < before):
            self.wrong("offset lowered", f"{process}: {write.path} from {before} to {write.text}")

    def _victim(self, process: Process, order: Order, flavours: Mapping[str, str]) -> None:
        replacement = order.replacement
        if not replacement.member:
            # A member may have left by its order or by another operator or tool: this can't be
            # distinguished.
            seen_through = self._seen_through(process)
            wanted = {each.replacement.member for each in self._orders_of(process.run_id, replacement.group)} - {""}
            if not wanted - seen_through - flavours.keys():
                self.wrong("no victim", f"{process} has one started and stopped nobody: {order}")
        elif not replacement.from_flavour:
            if replacement.member in flavours:
                self.wrong("no victim", f"{process} orders {order}, and that member is still there")
        elif not replacement.to_flavour and replacement.member not in flavours:
            pass  # It left since the step began: no member is stopped.
        elif flavours.get(replacement.member) != replacement.from_flavour:
            self.wrong("no victim", f"{process} orders {order}; it saw {dict(flavours)}")
        elif process.is_back and not self._is_mine(process, order):
            self.wrong("undo of another's", f"{process} orders {order}, which another operator or tool started")

    def _is_mine(self, process: Process, order: Order) -> bool:
        """Return whether this run started the member. A member that was restarted since has another id: only its
        flavour is known.
        """
        members = self._world.groups[order.replacement.group].everybody
        seen = process.seen[order.replacement.group].mix.flavours
        ours = {
            name for name, each in members.items() if each.started_for and each.started_for.run_id == process.run_id
        }
        wanted = Start(process.run_id, order.step_id, is_back=False)
        left = [name for name in ours & seen.keys() if members[name].started_for == wanted]
        return order.replacement.member in ours or not left or self._is_unheard(process, order)

    def _is_unheard(self, process: Process, order: Order) -> bool:
        """Return whether the member came by an order without an answer, or was restarted since: the two can't be
        distinguished.
        """
        there = self._there[self.runs[process.run_id].plan.digest]
        forward = {
            it.replacement.member for it in self._orders_of(process.run_id, order.replacement.group) if not it.is_back
        }
        return order.replacement.member not in there and bool(forward - self._seen_through(process))

    def _orders_of(self, run_id: str, group: str) -> list[Order]:
        return [each for each in self._world.orders if each.run_id == run_id and each.replacement.group == group]

    def _open_orders(self, process: Process, group: str) -> list[Order]:
        """Without those that another operator or tool executed meanwhile, so that the run takes them for done."""
        mine = [each for each in self._orders_of(process.run_id, group) if each.is_open]
        seen_through = self._seen_through(process) if mine else set()
        return [each for each in mine if each.replacement.member not in seen_through]

    def _seen_through(self, process: Process) -> set[str]:
        """Return the members in whose place this run saw another one come."""
        events = [it for it in load_run(process.folder).events if it.outcome == Outcome.CONFIRMED and it.before]
        before = [json.loads(it.before or "null") for it in events]
        return {each["member"] for each in before if isinstance(each, dict) and each.get("member")}

    # Ends

    def ended(self, process: Process, record: RunRecord, told: str | None) -> None:
        """One process on a run has ended, and not by a crash; ``told`` None: it was refused before it began."""
        for event in record.events:
            # A part of errors and sentences, which quote strangers, may be a secret; no part of a write.
            if set((event.withheld or "").split(", ")) & {"item", "before", "after", "details"}:
                self.wrong("withheld", f"{process}: {event.withheld} of {event.item or event.event}")
        self._outcomes(process, record)
        if told is not None:
            self._unknowns(process, record, told)
        if record.state == RunState.UNDONE:
            self._undone(process)
        if record.state == RunState.VERIFIED and process.verb != "undo":
            self._verified(process)

    def _outcomes(self, process: Process, record: RunRecord) -> None:
        """Check that what was written or ordered is reported as CONFIRMED or UNKNOWN, never as 'not attempted'."""
        for event, step_id in {(each.event, each.step_id) for each in process.did}:
            told = {each.outcome for each in record.events if (each.event, each.step_id) == (event, step_id)}
            if told.isdisjoint({"CONFIRMED", "UNKNOWN", "REFUSED"}):
                self.wrong("untold", f"{process}: step {step_id} wrote, and its outcomes are {told or 'none'}")
        for item in process.silent:
            told = {each.outcome for each in record.events if each.item == item and each.outcome}
            if told <= {"NOT_ATTEMPTED", "UNCHANGED"}:
                self.wrong("untold", f"{process}: nobody knows what became of {item}, and it is reported as {told}")

    def _unknowns(self, process: Process, record: RunRecord, told: str) -> None:
        """Check that the last sentence of a halted run names the items whose outcome is unknown."""
        last: dict[tuple[str | None, str | None], str | None] = {}
        for event in record.events:
            if event.event == "opened":
                last = {}
            elif event.event in ("acted", "undone"):
                last[event.step_id, event.item] = event.outcome
            elif event.event in ("verified", "step_undone") and event.outcome == "ok":
                last = {place: it for place, it in last.items() if place[0] != event.step_id}
        unsure = {str(item) for (_, item), outcome in last.items() if outcome == Outcome.UNKNOWN}
        if record.state in HALTED and unsure and not any(item in told for item in unsure):
            self.wrong("untold ending", f"{process} is {record.state}, unsure of {unsure}, and says: {told}")

    def _undone(self, process: Process) -> None:
        facts = self.runs[process.run_id]
        for group in facts.plan.targets:
            pending = self._open_orders(process, group)
            if pending:
                self.wrong("undone while pending", f"{process} is UNDONE, and somebody may still execute {pending[0]}")
            if self._world.was_quiet(process, group):
                left = self.left_in_place(process.run_id, group)
                if left:
                    self.wrong("not undone", f"{process} is UNDONE, and {left}")

    def at_rest(self, process: Process, told: str) -> None:
        """A way back may halt because of what it found; not because of what isn't there."""
        facts = self.runs[process.run_id]
        left = [self.left_in_place(process.run_id, group) for group in facts.plan.targets]
        if (
            facts.plan.kind == fleet_subject.KIND
            and not any(left)
            and load_run(process.folder).state == RunState.UNDO_HALTED
        ):
            self.wrong("halts for ever", f"{process} has nothing left to undo and says: {told}")

    def left_in_place(self, run_id: str, group: str) -> str | None:
        """Return what this run did to a group and is still so."""
        facts, tree, path = self.runs[run_id], self._world.tree, mode_path(group)
        if path in facts.in_place and path in tree.nodes and tree.nodes[path].mzxid == facts.in_place[path]:
            return f"{path} still holds what it wrote, {tree.text(path)!r}"
        steps = [Start(run_id, step.step_id, is_back=False) for step in facts.plan.steps]
        left = [each for each in self._world.groups[group].members if each.started_for in steps]
        before = next((_counts(step, "before") for step in facts.plan.steps if step.kind == "replace"), {})
        found = self._world.groups[group].mix.counts
        # One of two members that it had started, there and back, is as good as the other.
        more = [each.member_id for each in left if found[each.flavour] > before.get(each.flavour, 0)]
        return f"{more[0]} is still there, which it had started" if more else None

    def _verified(self, process: Process) -> None:
        facts = self.runs[process.run_id]
        last: dict[str, Step] = {step.kind: step for step in facts.plan.steps if step.changes}
        step = last.get("replace", last.get(START_ALL))
        group = facts.plan.targets[0]
        if step is not None and step is facts.plan.steps[-1] and self._world.was_quiet(process, group):
            found = self._world.groups[group].mix.counts
            after = StoppedParameters.of(step).after if step.kind == START_ALL else _counts(step, "after")
            if found != Counter({name: int(str(count)) for name, count in after.items() if count}):
                self.wrong("not verified", f"{process} is VERIFIED, and {group} has {dict(found)}")


def _off_the_way(step: Step, counts: Counter[str]) -> str | None:
    """Between ``before`` and ``after`` there are as many members, or one less in the midst of a swap."""
    if step.kind in (STOP_ALL, START_ALL):
        most = StoppedParameters.of(step).before if step.kind == STOP_ALL else StoppedParameters.of(step).after
        more = {flavour: count for flavour, count in counts.items() if count > most.get(flavour, 0)}
        return f"it has {dict(counts)}, more than {most}" if more else None
    if step.kind != "replace":
        return f"step {step.step_id} replaces nobody"
    before, after = _counts(step, "before"), _counts(step, "after")
    flavours = {*before, *after, *counts}
    low = {each: min(before.get(each, 0), after.get(each, 0)) for each in flavours}
    high = {each: max(before.get(each, 0), after.get(each, 0)) for each in flavours}
    total, wanted = sum(counts.values()), sum(before.values())
    missing = wanted - total
    for flavour in flavours:
        if not low[flavour] - max(missing, 0) <= counts[flavour] <= high[flavour]:
            return f"it has {dict(counts)}, not between {before} and {after}"
    return f"it has {total} members instead of {wanted}" if missing < 0 or missing > 1 else None


def _counts(step: Step, name: str) -> dict[str, int]:
    counts = step.parameters[name]
    assert isinstance(counts, Mapping)
    return {flavour: int(str(count)) for flavour, count in counts.items() if count}
