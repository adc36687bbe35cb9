"""A walk through a world: steps of any thread in any order, faults and operators in between, then calm.

``choose`` is the source of randomness: a seeded one here, Hypothesis in the state machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.simulation.model_member import PythonMember
from tests.simulation.settling import settle
from tests.simulation.world import SimulatedGroup

MOST_MEMBERS = 4
NAMES = "abcdefgh"


class RandomSchedule:
    """Actions on ``world``; each takes what it acts on from ``choose(how many)``, a number below."""

    def __init__(self, world: SimulatedGroup, choose: Callable[[int], int], plays_by_the_rules: bool = True) -> None:
        self.world = world
        self.choose = choose
        self.plays_by_the_rules = plays_by_the_rules
        self.log: list[str] = []

    def step(self) -> None:
        """One thread runs alone for a while."""
        ready = self.world.ready()
        if ready:
            name, thread = self._one(ready)
            n_steps = 1 + self.choose(6)
            self._note(f"run {name} {thread} {n_steps}")
            self.world.run(name, thread, n_steps=n_steps)

    def go_round(self) -> None:
        """Everybody does a few steps."""
        n_rounds = 1 + self.choose(8)
        self._note(f"go round {n_rounds}")
        for _ in range(n_rounds):
            for name, thread in self.world.ready():
                if name in self.world.members and self.world.members[name].threads[thread].is_ready:
                    self.world.step(name, thread)

    def tick(self) -> None:
        self._note("tick")
        self.world.tick()

    def join(self) -> None:
        kind = self._one(("mezkcc", "mezkcc", "mezkcc", "ozkcc", "zk", "kc", "namesake"))
        free = [name for name in NAMES if name not in self.world.members]
        if len(self.world.members) >= MOST_MEMBERS or not self._is_allowed(kind):
            return
        name = self._one(free[:3])
        self._note(f"join {kind} {name}")
        self.world.join(kind, name)

    def leave(self) -> None:
        if (name := self._member()) is not None:
            self._note(f"leave {name}")
            self.world.leave(name)

    def kill(self) -> None:
        if (name := self._member()) is not None:
            self._note(f"kill {name}")
            self.world.kill(name)

    def pause(self) -> None:
        if (name := self._member()) is not None:
            is_paused = self.world.members[name].is_paused
            self._note(f"{'resume' if is_paused else 'pause'} {name}")
            (self.world.resume if is_paused else self.world.pause)(name)

    def sleep(self) -> None:
        """A member is stalled for some seconds while the others continue."""
        if (name := self._member()) is not None:
            ticks = 3 + self.choose(6)
            self._note(f"sleep {name} {ticks}")
            self.world.pause(name)
            self.world.run_fairly(ticks)
            if name in self.world.members:
                self.world.resume(name)

    def cut(self) -> None:
        if (name := self._member()) is not None:
            from_zookeeper, is_cut = bool(self.choose(2)), bool(self.choose(2))
            self._note(f"cut {name} {'zookeeper' if from_zookeeper else 'kafka'} {is_cut}")
            self.world.cut(name, from_zookeeper, is_cut)

    def break_connection(self) -> None:
        member = self.world.members.get(self._member() or "")
        if isinstance(member, PythonMember):
            member.client.fails_next = self._one(("before", "after"))
            self._note(f"break {member.consumer_id} {member.client.fails_next}")

    def toggle(self) -> None:
        text = self._one(("kafka", "kafka", "zookeeper", "garbage", None))
        self._note(f"toggle {text}")
        self.world.set_toggle(text)

    def coordinator(self) -> None:
        is_available = not self.world.group.is_available
        self._note(f"coordinator {is_available}")
        self.world.set_coordinator(is_available)

    def grow(self) -> None:
        if len(self.world.partitions) < 6:
            self._note("grow")
            self.world.grow()

    def steal(self) -> None:
        pair = self._one(self.world.partitions)
        if ("owners", pair) in self.world.zookeeper.znodes and self._is_of_python(pair):
            self._note(f"steal {pair}")
            self.world.steal(pair)

    def settle(self) -> int:
        self._note("settle")
        return settle(self.world)

    def _is_allowed(self, kind: str) -> bool:
        may_kc, may_old = self.world.may_join_kc, self.world.may_join_old
        allowed = {"kc": may_kc, "namesake": may_kc, "ozkcc": may_old, "zk": may_old}
        if kind not in allowed or allowed[kind]():
            return True
        if self.plays_by_the_rules:
            return False
        self.world.judge.is_rule_broken = True
        return True

    def _is_of_python(self, pair: tuple[str, int]) -> bool:
        owner = self.world.by_session(self.world.zookeeper.znodes["owners", pair].session)
        return isinstance(owner, PythonMember) and pair in owner.consuming

    def _member(self) -> str | None:
        names = sorted(self.world.members)
        return self._one(names) if names else None

    def _one(self, of: Sequence):  # type: ignore[no-untyped-def, type-arg]
        return of[self.choose(len(of))]

    def _note(self, text: str) -> None:
        self.log.append(text)


ACTIONS: dict[str, int] = {
    "step": 300, "go_round": 120, "tick": 60, "join": 40, "leave": 8, "kill": 6, "pause": 12, "sleep": 8, "cut": 16,
    "break_connection": 20, "toggle": 20, "coordinator": 6, "grow": 3, "steal": 8, "settle": 4,
}  # fmt: skip


BEGINNINGS: tuple[tuple[str, ...], ...] = (
    (),
    ("mezkcc", "mezkcc", "mezkcc"),
    ("mezkcc", "mezkcc", "kafka"),
    ("mezkcc", "mezkcc", "kafka", "kc"),
    ("mezkcc", "mezkcc", "ozkcc", "kafka"),
    ("mezkcc", "zk", "ozkcc"),
    ("mezkcc", "kafka", "kc", "kc"),
)
"""The members that are present and settled when a walk begins."""


def begin(world: SimulatedGroup, beginning: Sequence[str]) -> None:
    for name, kind in zip(NAMES, beginning):
        if kind == "kafka":
            world.set_toggle(kind)
        else:
            world.join(kind, name)
        settle(world)


def wander(
    seed: int, member_class: type[PythonMember] = PythonMember, n_actions: int = 120, by_the_rules: bool = True
) -> RandomSchedule:
    """One walk by a seed, ending in calm."""
    source = random.Random(seed)
    walk = RandomSchedule(SimulatedGroup(member_class=member_class), source.randrange, by_the_rules)
    names, weights = list(ACTIONS), list(ACTIONS.values())
    try:
        begin(walk.world, BEGINNINGS[seed % len(BEGINNINGS)])
        for name in source.choices(names, weights, k=n_actions):
            getattr(walk, name)()
        walk.settle()
    except BaseException as error:
        error.add_note(f"seed {seed}: " + "; ".join(walk.log[-40:]))
        raise
    return walk
