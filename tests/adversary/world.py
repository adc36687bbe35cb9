"""A cluster, its operators and their clock; every request of a process is a point at which another operator or tool
may strike.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from kit.engine.execution.run import start_run
from kit.engine.lock import LOCKS
from kit.engine.model.approval import Approval, approve
from kit.engine.model.clock import Clock
from kit.engine.model.plan import Plan
from kit.errors import OfframpError, PlanError
from kit.moves.group.group_state import GroupState
from kit.moves.group.toggle import mode_path
from tests.adversary.deployers import Manner, Order, finish
from tests.adversary.groups import ModelGroup
from tests.adversary.judge import Facts, RunJudge
from tests.adversary.kafka_groups import KafkaGroup
from tests.adversary.process import LastObservation, Process, ProcessKilled
from tests.adversary.znodes import Tree, Write

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
VALID_FOR = timedelta(hours=4)
NO_APPROVAL, NO_LOCK, STOPPED = "no approval", "no lock", "after a stop"

Strike = Callable[[Process, str], None]


class SkewedTime:
    """A clock that moves by being slept on; ``ahead`` is how wrong the operator's date is."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ahead = timedelta(0)
        self.clock = Clock(self.now, self.tick, self.sleep)

    def now(self) -> datetime:
        return self.true + self.ahead

    @property
    def true(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def tick(self) -> float:
        self.seconds += 0.001
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += max(seconds, 0.001)


class ContestedCluster:
    """``root`` holds the runs; ``manners`` are those of who carries orders out; ``strike`` is asked at each point."""

    def __init__(
        self,
        root: Path,
        groups: Iterable[tuple[str, tuple[str, ...], str | None]],
        seed: int = 0,
        kind: type[ModelGroup] = ModelGroup,
    ) -> None:
        self.root, self.rng = root, random.Random(seed)
        self.time, self.tree = SkewedTime(), Tree()
        self.story: list[str] = []
        self.orders: list[Order] = []
        self.ends: list[tuple[str, str]] = []
        self.foreign: Counter[str] = Counter()
        self.edited: set[str] = set()
        self.zombies: list[int] = []
        """Sessions that nobody keeps alive, and that are not yet known to be over."""
        self.others_wrote: list[tuple[int, str]] = []
        self.manners: tuple[Manner, ...] = (Manner.PROMPT,)
        self.strike: Strike | None = None
        self.locks_in_kafka = False
        """True if runs lock by leases in Kafka; else in ZooKeeper."""
        self.judge = RunJudge(self)
        self.groups: dict[str, ModelGroup] = {}
        for name, flavours, mode in groups:
            self.groups[name] = kind(name, self.tree, flavours, self.now())
            if mode is not None:
                self.tree.create(mode_path(name), mode.encode(), makepath=True)
            self.say(f"{name}: {', '.join(flavours)}, toggle {mode!r}")

    def now(self) -> datetime:
        """Return when it really is; members and brokers have no wrong clock."""
        return self.time.true

    def say(self, text: str) -> None:
        self.story.append(text)

    def hear(self, sentence: str) -> None:
        self.say(f"    told: {sentence}")

    def short(self, run_id: str) -> str:
        return f"run {list(self.judge.runs).index(run_id) + 1}"

    def manner_of_next(self) -> Manner:
        return self.rng.choice(self.manners)

    # Points

    def point(self, process: Process, what: str) -> None:
        if process.is_dead:
            raise ProcessKilled
        process.calls += 1
        self._note_what_is_over(process)
        if self.strike is not None:
            self.strike(process, what)

    def _note_what_is_over(self, process: Process) -> None:
        facts, now = self.judge.runs[process.run_id], self.time.now()
        approved = facts.may_go_back(now) if process.is_back else facts.is_approved(now)
        session = process.client.client_id[0]
        locks = (self.tree.nodes.get(f"{LOCKS}/{quote(target, safe='')}") for target in facts.plan.targets)
        held = all(lock is not None and lock.owner == session for lock in locks)
        for name, is_well in ((NO_APPROVAL, approved), (NO_LOCK, held), (STOPPED, not process.stopped)):
            if is_well:
                process.over.pop(name, None)
            else:
                process.over.setdefault(name, process.calls)

    # Observations, and the effects of a write

    def look(self, name: str, process: Process | None = None) -> GroupState:
        found = self.groups[name]
        found.hand_out(self.now())
        if process is not None:
            process.seen[name] = LastObservation(found.mix, process.slept, self.foreign[name])
        return found.group_state(self.now())

    def follow(self, write: Write) -> None:
        """Members follow the toggle."""
        for name, found in self.groups.items():
            if write.path == mode_path(name):
                found.disturb(self.now())

    def settle(self, seconds: float = 60.0) -> None:
        self.time.sleep(seconds)
        while self.zombies:
            self.tree.end_session(self.zombies.pop())
        for found in self.groups.values():
            found.hand_out(self.now())

    # Operators

    def approve(self, plan: Plan, valid_for: timedelta = VALID_FOR) -> Approval:
        fields = {"typed_subject": plan.subject, "typed_digest_prefix": plan.digest[:8], "approver": "Bob"}
        return approve(plan, **fields, now=self.time.now(), valid_for=valid_for)

    def start(
        self, plan: Plan, root: str = "runs", is_forged: bool = False, valid_for: timedelta = VALID_FOR
    ) -> Process | None:
        """A run of the plan, approved; None where that was refused."""
        self.judge.planned(plan)
        try:
            approval = self.approve(plan, valid_for)
            folder = start_run(plan, approval, self.root / root, clock=self.time.clock)
        except OfframpError as error:
            self.say(f"  not begun: {type(error).__name__}: {error}")
            return None
        self.judge.runs[folder.name] = Facts(plan, self.time.now(), is_forged, [approval])
        self.say(
            f"{self.short(folder.name)} of {plan.kind} {plan.targets}: {', '.join(each.step_id for each in plan.steps)}"
        )
        return Process(self, folder)

    def again(self, process: Process) -> Process:
        """Another process on the same run."""
        return Process(self, process.folder)

    def made_at(self, plan: Plan) -> Plan:
        """Planned by the model's clock."""
        return replace(plan, made_at=self.time.now())

    # Other operators or tools

    def set_toggle(self, name: str, mode: str | None) -> None:
        path = mode_path(name)
        if mode is None:
            if path in self.tree.nodes:
                self.tree.delete(path)
        elif path in self.tree.nodes:
            self.tree.set(path, mode.encode())
        else:
            self.tree.create(path, mode.encode(), makepath=True)
        self.others_wrote.append((self.tree.zxid, path))
        self._touched(name, f"sets the toggle to {mode!r}")

    def replace_member(self, name: str, member_id: str | None, flavour: str | None) -> None:
        """Stop one (None: nobody), start one (None: nobody)."""
        group = self.groups[name]
        gone = group.stop(member_id, self.now()) if member_id else None
        if flavour is not None:
            group.start(flavour, gone.host if gone else "host8", self.now())
        self._touched(name, f"stops {member_id}, starts {flavour}")

    def kill_member(self, group: KafkaGroup, member_id: str) -> None:
        group.kill(member_id, self.now())
        self.foreign[group.name] += 1
        self.say(f"another operator or tool kills {member_id} of {group.name}")

    def finish_late(self, order: Order) -> None:
        finish(self, order)

    def _touched(self, name: str, what: str) -> None:
        self.groups[name].disturb(self.now())
        self.foreign[name] += 1
        self.say(f"another operator or tool {what} in {name}")

    def was_quiet(self, process: Process, name: str) -> bool:
        """No other operator or tool touched the group since this process last examined it."""
        seen = process.seen.get(name)
        return seen is not None and self.foreign[name] == seen.foreign

    @property
    def open_orders(self) -> list[Order]:
        return [order for order in self.orders if order.is_pending]


__all__ = ["ContestedCluster", "PlanError"]
