"""A run that stops and starts all members, killed around each of its orders, and then resumed or undone.

Of an order that was given when the process ended nobody knows whether it comes: at once, later, or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from kit.engine.execution.run import Run, start_run
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.states import RunState
from kit.moves.group import plan as group_plan
from kit.moves.group.deploy import Manual, MemberReplacement
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.performer import RECIPES
from kit.moves.protocol.stop_and_start import StoppedActor
from kit.moves.protocol.stopped import START_ALL, STOP_ALL
from tests.models.engine import START, Hazard, Killed, ModelLock, Time, approve_plan
from tests.unit.operations.protocol.test_stopped import of, plan

N = 2
NOW, LATER, NEVER = "now", "later", "never"
VERBS = ("resume", "undo")
LATER_S = 45.0
"""Kafka's session timeout: a member that was killed is visible until then."""


@dataclass
class Site(Manual):
    """A group, its deployer and the time; ``wrongs``: what an operator must never see."""

    when: str
    time: Time = field(default_factory=Time)
    members: dict[str, str] = field(default_factory=lambda: {f"m{number}": CLASSIC for number in range(N)})
    coming: list[tuple[float, MemberReplacement]] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    strike_at: int = -1
    n_orders: int = 0

    def read(self, *_: object):
        due = [order for at, order in self.coming if at <= self.time.seconds]
        self.coming = [each for each in self.coming if each[0] > self.time.seconds]
        for order in due:
            self.execute(order)
        state = of(*self.members.values())
        named = zip(state.members, self.members, strict=True)
        return replace(state, members=tuple(replace(each, member_id=name) for each, name in named))

    def execute(self, order: MemberReplacement) -> None:
        if order.to_flavour:
            self.members[f"started-{self.n_orders}-{order.number}"] = order.to_flavour
        else:
            self.members.pop(order.member, None)
        if len(set(self.members.values())) > 1 or len(self.members) > N:
            self.wrongs.append(f"the group has {self.members}")

    def replace(self, replacement, tell) -> str:
        self.n_orders += 1
        if self.n_orders - 1 != self.strike_at:
            self.execute(replacement)
            return "done"
        if self.when == NOW:
            self.execute(replacement)
        elif self.when == LATER:
            self.coming.append((self.time.seconds + LATER_S, replacement))
        raise Killed


def carried_out(site: Site, folder, lock: ModelLock) -> Run:
    actor = StoppedActor(None, site, clock=site.time.clock, read=site.read)  # type: ignore[arg-type]
    actors = {STOP_ALL: actor, START_ALL: actor}
    performer = ClusterPerformer(
        lambda: "cluster", actors, {**group_plan.RECIPES, **RECIPES}, lambda made: observed(made)
    )
    return Run(folder, performer, lock, clock=site.time.clock)


def observed(made):
    return {name: each.value for name, each in made.observed.items()}


@pytest.mark.parametrize(
    ("strike_at", "verb", "when"),
    [*product((0, 2), VERBS, (LATER,)), *product((1, 3), VERBS, (NOW,)), (0, "undo", NEVER), (3, "resume", NEVER)],
)
def test_a_run_that_is_killed_at_an_order_ends_with_all_members_of_one_protocol(tmp_path, strike_at, verb, when):
    site, lock = Site(when, strike_at=strike_at), ModelLock(Hazard())
    made = plan(of(CLASSIC, CLASSIC), CONSUMER, proven_from=None, how="stopped", soak_s=0.0)
    made = replace(made, made_at=START)
    folder = start_run(made, approve_plan(made), tmp_path, clock=site.time.clock)
    with pytest.raises(Killed):
        carried_out(site, folder, lock).act()
    lock.holder = None
    result = getattr(carried_out(site, folder, lock), verb)()
    assert result.state == (RunState.VERIFIED if verb == "resume" else RunState.UNDONE), result.sentence
    site.time.clock.sleep(2 * LATER_S)
    site.read()
    assert (list(site.members.values()), site.wrongs) == ([CONSUMER if verb == "resume" else CLASSIC] * N, [])
