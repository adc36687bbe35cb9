"""A walk: plans, runs and ways to undo in any order, by anybody, struck at any point; then calm, in which all ends.

Walks are drawn by seeds. One that fails shows its story, every move a line, and the seed that shows it again.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from kit.engine.execution.run import RunResult
from kit.engine.model.plan import Plan
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import OfframpError, PlanError
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.group import subject as group_subject
from kit.moves.group.group_state import KC, MEZKCC, OZKCC
from kit.moves.group.plan import PATH, GroupPlanRequest
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary import moves
from tests.adversary.deployers import PLAIN, Manner
from tests.adversary.judge import Wrong
from tests.adversary.plans import forged, plan_fleet, plan_group, senseless
from tests.adversary.process import Process, seams
from tests.adversary.world import VALID_FOR, ContestedCluster

NAMES = ("orders.v1", "reset-password", "auth.secret", "user_api-key", "rotate-credentials", "payments", "a-token")
"""Some resemble secrets to who tests names as such."""
BEGINNINGS: tuple[tuple[tuple[str, ...], str | None], ...] = (
    ((OZKCC,) * 3, None),
    ((OZKCC,) * 4, ZOOKEEPER),
    ((MEZKCC,) * 3, ZOOKEEPER),
    ((MEZKCC,) * 3, None),
    ((MEZKCC,) * 4, KAFKA),
    ((KC,) * 3, KAFKA),
    ((MEZKCC, MEZKCC, KC), KAFKA),
    ((OZKCC, OZKCC, MEZKCC), None),
)
OVER = {RunState.UNDONE, RunState.STALE}
N_STEPS = (3, 8)
STRIKES_WITHIN = 80
SHORT = (timedelta(seconds=12), timedelta(minutes=1))
"""Approvals that run out in the midst of most runs."""
ALL_MANNERS = tuple(Manner)


@dataclass
class ContestedRuns:
    """``world`` after it; ``processes`` has the last process of each run."""

    world: ContestedCluster
    rng: random.Random
    processes: list[Process] = field(default_factory=list)
    depth: int = 0
    pool: tuple[moves.Move, ...] = moves.ANY + moves.LIKELY

    def go(self) -> None:
        for _ in range(self.rng.randint(*N_STEPS)):
            self.rng.choice(self._moves())()
            self.world.judge.raise_if_wrong()
        self._calm()
        self.world.judge.raise_if_wrong()

    def _moves(self) -> list:
        found = [self._plan_and_act, self._plan_and_act, self._forge, self._elsewhere, self._time_passes]
        return [*found, *([self._undo, self._undo, self._undo, self._resume, self._resume] if self.processes else [])]

    # Operators

    def _plan_and_act(self, root: str = "runs") -> None:
        plan = self._plan()
        if plan is not None:
            self._act(plan, root)

    def _act(self, plan: Plan, root: str = "runs") -> None:
        valid_for = self.rng.choice((VALID_FOR, VALID_FOR, *SHORT))
        process = self.world.start(plan, root, valid_for=valid_for)
        if process is not None:
            self.processes.append(process)
            self._work(process, "act")

    def _plan(self) -> Plan | None:
        self.world.settle()
        on_failure = self.rng.choice(("stop", "stop", "undo"))
        names = list(self.world.groups)
        if self.rng.random() < 0.3:
            wave = FleetPlanRequest(
                self.rng.choice((KAFKA, ZOOKEEPER)), groups=tuple(names[:2]), wave=self.rng.choice((1, 0))
            )
            return self._fleet(wave, on_failure)
        to_stage = self.rng.choice(PATH)
        soak_s = self.rng.choice((0, 30))
        request = GroupPlanRequest(
            names[0], to_stage, soak_s=soak_s, min_stable_s=0, step_timeout_s=40, on_failure=on_failure
        )
        return plan_group(self.world, request)

    def _fleet(self, request: FleetPlanRequest, on_failure: str) -> Plan | None:
        fields = {"pause_s": 30, "min_stable_s": 0, "on_failure": on_failure}
        groups = [
            name for name in request.groups if {each.flavour for each in self.world.groups[name].members} == {MEZKCC}
        ]
        wave = 1 if request.to == KAFKA else request.wave
        return (
            plan_fleet(self.world, FleetPlanRequest(request.to, groups=tuple(groups), wave=wave, **fields))
            if groups
            else None
        )

    def _undo(self) -> None:
        self._again("undo")

    def _resume(self) -> None:
        self._again("resume")

    def _again(self, verb: str) -> None:
        number = self.rng.randrange(len(self.processes))
        process = self.processes[number] = self.world.again(self.processes[number])
        self._work(process, verb, with_approval=self.rng.random() < 0.4)

    def _work(self, process: Process, verb: str, with_approval: bool = False) -> None:
        strikes = self.rng.choice((0, 1, 1, 2, 3)) if self.depth == 0 else 0
        due = sorted(self.rng.sample(range(STRIKES_WITHIN), strikes))
        self.world.manners = self.rng.choice(((Manner.PROMPT,), (Manner.PROMPT,), PLAIN, ALL_MANNERS))

        def strike(struck: Process, what: str) -> None:
            if due and struck is process and struck.calls >= due[0]:
                due.pop(0)
                self._strike(struck, what)

        before, self.world.strike = self.world.strike, strike
        try:
            process.work(verb, self._approval(process) if with_approval else None)
        finally:
            self.world.strike = before

    def _strike(self, process: Process, what: str) -> None:
        self.world.say(f"  at {process}: {what}:")
        if self.depth == 0 and self.rng.random() < 0.1:
            return self._second_operator()
        return self.rng.choice(self.pool)(self.world, process, self.rng)

    def _second_operator(self) -> None:
        """In the midst of a run, with a runs folder of their own."""
        self.depth += 1
        before, self.world.strike = self.world.strike, None
        try:
            choice = self.rng.random()
            if choice < 0.5 or not self.processes:
                self._plan_and_act("others")
            else:
                self._again("undo")
        finally:
            self.depth -= 1
            self.world.strike = before

    def _approval(self, process: Process):
        try:
            return self.world.approve(load_run(process.folder).plan)
        except OfframpError:
            return None

    def _forge(self) -> None:
        plan = self._plan()
        if plan is None:
            return
        if self.rng.random() < 0.4 and plan.kind == group_subject.KIND:
            self._act_senseless(plan)
            return
        others = [name for name in self.world.groups if name not in plan.targets]
        try:
            other = forged(plan, others, self.rng)
        except OfframpError as error:
            self.world.say(f"a forged plan can't even be made: {error}")
            return
        process = self.world.start(other, is_forged=True)
        if process is not None:
            process.work("act")

    def _act_senseless(self, plan: Plan) -> None:
        try:
            self._act(senseless(self.world, plan))
        except PlanError as error:
            self.world.say(f"a senseless plan can't even be made: {error}")

    def _elsewhere(self) -> None:
        """Somebody works on a group while no run does; mostly as far as that is sound."""
        name = next(iter(self.world.groups))
        flavours, mode = self.rng.choice(BEGINNINGS)
        found = self.world.groups[name]
        if self.rng.random() < 0.6:
            for one in list(found.members):
                found.stop(one.member_id, self.world.now())
            for number, flavour in enumerate(flavours):
                found.start(flavour, f"host{number}", self.world.now())
            self.world.set_toggle(name, mode)
            self.world.say(f"{name} was brought to {', '.join(flavours)}")
        else:
            self.rng.choice((moves.toggles, moves.replaces, moves.adds, moves.restarts))(self.world, None, self.rng)

    def _time_passes(self) -> None:
        hours = self.rng.choice((1, 5, 24, 90 * 24))
        self.world.time.seconds += hours * 3600
        self.world.say(f"{hours} hours pass")
        for order in list(self.world.open_orders):
            if self.rng.random() < 0.5:
                self.world.finish_late(order)

    # Calm

    def _calm(self) -> None:
        """Nobody strikes any more: each run ends or says why not, and a new plan is executed."""
        self.world.say("calm")
        self.world.strike, self.world.manners, self.world.time.ahead = None, (Manner.PROMPT,), timedelta(0)
        while self.world.open_orders:
            self.world.finish_late(self.world.open_orders[0])
        self.world.settle()
        for process in reversed(self.processes):
            self._bring_to_an_end(process)
        self._begin_anew()

    def _bring_to_an_end(self, process: Process) -> None:
        found: RunResult | OfframpError | None = None
        for verb in ("resume", "undo", "undo"):
            if self._state(process) in {*OVER, RunState.VERIFIED, RunState.APPROVED, None}:
                return
            process = self.world.again(process)
            found = process.work(verb, self._approval(process))
            self.world.settle()
        if isinstance(found, RunResult):
            self.world.judge.at_rest(process, found.sentence)

    def _state(self, process: Process) -> RunState | None:
        try:
            return load_run(process.folder).state
        except OfframpError:
            return None

    def _begin_anew(self) -> None:
        """Nothing that is left of any run keeps a new one from its end."""
        name = next(iter(self.world.groups))
        found = self.world.groups[name]
        for one in list(found.members):
            found.stop(one.member_id, self.world.now())
        for number in range(3):
            found.start(OZKCC, f"host{number}", self.world.now())
        self.world.set_toggle(name, None)
        self.world.settle()
        plan = plan_group(
            self.world, GroupPlanRequest(name, "canary MEZKCC", soak_s=0, min_stable_s=0, step_timeout_s=60)
        )
        process = None if plan is None else self.world.start(plan, "anew")
        result = None if process is None else process.work("act")
        if not isinstance(result, RunResult) or result.state != RunState.VERIFIED:
            self.world.judge.wrong("never again", f"a new plan for {name} came to {result}")


def wander(seed: int) -> ContestedCluster:
    """One walk; what was wrong is raised with its story. By odd seeds the runs lock in Kafka."""
    rng = random.Random(seed)
    groups = [(name, *rng.choice(BEGINNINGS)) for name in rng.sample(NAMES, 3)]
    with told(seed, lambda root: ContestedCluster(root, groups, seed)) as world:
        world.locks_in_kafka = seed % 2 == 1
        ContestedRuns(world, rng).go()
    return world


@contextmanager
def told(seed: int, made: Callable[[Path], ContestedCluster]) -> Iterator[ContestedCluster]:
    """A world in a folder of its own; what was wrong in it is raised with its story."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="adversary-", dir=memory if memory.is_dir() else None))
    world = made(root)
    try:
        with seams():
            yield world
    except Wrong as wrong:
        story = "\n".join(world.story)
        raise Wrong(wrong.what, f"{wrong}\nwalk {seed}:\n{story}") from None
    finally:
        shutil.rmtree(root)
