"""Walks of moves between the classic and the consumer protocol: runs of plans, struck at any point; then calm.

Between any two requests of a run, another operator deploys, a member is killed, the coordinator moves, or the lock is
broken. The judge examines each order and each end. In the calm, a run that no other operator disturbed ends by resume
or undo.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kit.engine.execution.run import RunResult
from kit.engine.model.plan import Plan
from kit.engine.model.states import RunState
from kit.errors import OfframpError
from kit.moves.group.group_state import CLASSIC, CONSUMER, PROTOCOLS
from kit.moves.protocol.plan import ProtocolPlanRequest
from kit.moves.protocol.stopped import START_ALL, STOP_ALL
from kit.protocol.facts import ROLLING, STOPPED
from tests.adversary import moves
from tests.adversary.deployers import Manner
from tests.adversary.kafka_groups import KafkaGroup
from tests.adversary.plans import forged, plan_protocol
from tests.adversary.process import Process
from tests.adversary.walk import NAMES, OVER, ContestedRuns, told
from tests.adversary.world import ContestedCluster

PROTOCOL_BEGINNINGS: tuple[tuple[str, ...], ...] = (
    (CLASSIC,) * 3,
    (CLASSIC,) * 4,
    (CONSUMER,) * 3,
    (CONSUMER, CLASSIC, CLASSIC),
    (CONSUMER, CONSUMER, CLASSIC),
)
CERTAIN = {Manner.PROMPT, Manner.REFUSES}
"""Deployers that do what they say."""


@dataclass
class ProtocolRuns(ContestedRuns):
    """``foreign``: by run, how often other operators had touched its group when the run began."""

    pool: tuple[moves.Move, ...] = moves.OF_PROTOCOLS
    foreign: dict[str, int] = field(default_factory=dict)

    def _act(self, plan: Plan, root: str = "runs") -> None:
        before, n_runs = self.world.foreign[plan.targets[0]], len(self.world.judge.runs)
        super()._act(plan, root)
        for run_id in list(self.world.judge.runs)[n_runs:]:
            self.foreign.setdefault(run_id, before)

    def _plan(self) -> Plan | None:
        self.world.settle()
        name = next(iter(self.world.groups))
        how = self.rng.choice((ROLLING, ROLLING, STOPPED))
        request = ProtocolPlanRequest(
            name,
            self.rng.choice(PROTOCOLS),
            soak_s=self.rng.choice((0, 30)),
            step_timeout_s=self.rng.choice((40, 90)),
            on_failure=self.rng.choice(("stop", "stop", "undo")),
            how=how,
        )
        return plan_protocol(self.world, request)

    def _forge(self) -> None:
        plan = self._plan()
        if plan is None or any(step.kind in (STOP_ALL, START_ALL) for step in plan.steps):
            return
        try:
            other = forged(plan, [each for each in self.world.groups if each not in plan.targets], self.rng)
        except OfframpError as error:
            self.world.say(f"a forged plan can't even be made: {error}")
            return
        process = self.world.start(other, is_forged=True)
        if process is not None:
            process.work("act")

    def _elsewhere(self) -> None:
        if self.rng.random() < 0.6:
            self._bring_to(self.rng.choice(PROTOCOL_BEGINNINGS))
        else:
            name, any_process = next(iter(self.world.groups)), None
            self.world.say(f"somebody works on {name}")
            move = self.rng.choice((moves.replaces, moves.adds, moves.restarts))
            move(self.world, any_process, self.rng)  # type: ignore[arg-type]

    def _bring_to(self, protocols: tuple[str, ...]) -> None:
        name = next(iter(self.world.groups))
        found = self.world.groups[name]
        assert isinstance(found, KafkaGroup)
        found.killed.clear()
        for one in list(found.members):
            found.stop(one.member_id, self.world.now())
        for number, protocol in enumerate(protocols):
            found.start(protocol, f"host{number}", self.world.now())
        self.world.foreign[name] += 1
        self.world.say(f"{name} was brought to {', '.join(protocols)}")

    def _bring_to_an_end(self, process: Process) -> None:
        super()._bring_to_an_end(process)
        state = self._state(process)
        if state in {*OVER, RunState.VERIFIED, RunState.APPROVED, None} or not self._was_alone(process.run_id):
            return
        self.world.judge.wrong("stuck", f"{process} is {state}, and nobody but its run changed the group")

    def _was_alone(self, run_id: str) -> bool:
        """No other operator and no later run touched the group since the run began, and each order was executed."""
        runs = list(self.world.judge.runs)
        name = self.world.judge.runs[run_id].plan.targets[0]
        manners = {order.manner for order in self.world.orders if order.run_id == run_id}
        is_last = run_id == runs[-1]
        return is_last and manners <= CERTAIN and self.world.foreign[name] == self.foreign.get(run_id)

    def _begin_anew(self) -> None:
        """Nothing that is left of any run keeps a new one from its end."""
        name = next(iter(self.world.groups))
        self._bring_to((CLASSIC,) * 3)
        self.world.settle()
        plan = plan_protocol(self.world, ProtocolPlanRequest(name, CONSUMER, soak_s=0, step_timeout_s=60))
        process = None if plan is None else self.world.start(plan, "anew")
        result = None if process is None else process.work("act")
        if not isinstance(result, RunResult) or result.state != RunState.VERIFIED:
            self.world.judge.wrong("never again", f"a new plan for {name} came to {result}")


def wander_protocols(seed: int) -> ContestedCluster:
    """One walk; what was wrong is raised with its story. All runs lock in Kafka."""
    rng = random.Random(seed)
    groups = [(name, rng.choice(PROTOCOL_BEGINNINGS), None) for name in rng.sample(NAMES, 2)]
    with told(seed, lambda root: ContestedCluster(root, groups, seed, KafkaGroup)) as world:
        world.locks_in_kafka = True
        ProtocolRuns(world, rng).go()
    return world
