"""Replace processes when a run asks: promptly, late, half, twice, not at all, or with a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kit.errors import RunError
from kit.moves.group.deploy import MemberReplacement
from tests.adversary.groups import Start

if TYPE_CHECKING:
    from tests.adversary.process import Process
    from tests.adversary.world import ContestedCluster


class Manner(StrEnum):
    PROMPT = "does it at once"
    SLOW = "does it later, or never"
    HALF = "stops the old one and forgets the new one"
    IDLE = "says done and does nothing"
    TWICE = "does it twice"
    REFUSES = "fails without doing it"
    FAILS_DONE = "does it and fails all the same"
    FAILS_HALF = "stops the old one and fails"
    FAILS_LATE = "times out, and it is done later"


PLAIN = (Manner.PROMPT, Manner.SLOW, Manner.REFUSES)
_LATER = (Manner.SLOW, Manner.FAILS_LATE)
_FAILS = (Manner.REFUSES, Manner.FAILS_DONE, Manner.FAILS_HALF, Manner.FAILS_LATE)


@dataclass
class Order:
    """One swap that was asked for, and outcome in truth."""

    run_id: str
    step_id: str | None
    is_back: bool
    replacement: MemberReplacement
    manner: Manner
    stopped: str | None = None
    started: int = 0
    is_pending: bool = False
    is_countermanded: bool = False

    @property
    def is_open(self) -> bool:
        """Somebody may still act on it."""
        return self.is_pending and not self.is_countermanded

    def __str__(self) -> str:
        it = self.replacement
        return f"{it.from_flavour} {it.member or '(none)'} → {it.to_flavour} of {it.group}"


class Deployer:
    """One process's hand. In what manner an order is executed, ``ContestedCluster.manner_of_next`` draws."""

    needs_person = True

    def __init__(self, world: ContestedCluster, process: Process) -> None:
        self._world, self._process = world, process

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return instruction(group, from_flavour, to_flavour)

    def refusal(self, replacement: MemberReplacement) -> str | None:
        return None

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        self._world.point(
            self._process, f"replace {replacement.from_flavour} {replacement.member or '(none)'} of {replacement.group}"
        )
        process = self._process
        order = Order(process.run_id, process.step_id, process.is_back, replacement, self._world.manner_of_next())
        self._world.judge.ordered(process, order)
        process.ordered(order)
        self._world.orders.append(order)
        tell(f"Now replace {order}")
        self._world.say(f"ordered: {order}; who is asked {order.manner}")
        carry_out(self._world, order)
        self._world.point(process, f"replaced {replacement.member or '(none)'}")
        if order.manner in _FAILS:
            raise RunError(f"the deployer {order.manner}")
        return "done"

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        """Cancel orders: a person who has not begun does nothing, and a person who has stopped a member starts no
        other.
        """
        self._world.point(self._process, f"countermand {replacement.member or '(none)'}")
        for order in self._world.orders:
            if order.run_id == self._process.run_id and order.replacement.group == replacement.group:
                order.is_countermanded = order.is_countermanded or _is_same(order.replacement, replacement)
        tell(f"Don't replace {replacement.from_flavour} {replacement.member} any more")
        self._world.say(
            f"countermanded: {replacement.from_flavour} {replacement.member or '(none)'} → {replacement.to_flavour}"
        )
        return "told"


def instruction(group: str, from_flavour: str, to_flavour: str) -> str:
    return f"The model replaces a {from_flavour} of {group} by a {to_flavour}."


def carry_out(world: ContestedCluster, order: Order) -> None:
    """Execute what is done at once; the rest waits for :func:`finish`."""
    manner = order.manner
    if manner in _LATER:
        order.is_pending = True
        return
    if manner in (Manner.IDLE, Manner.REFUSES):
        return
    if order.replacement.from_flavour:
        _stop(world, order)
    if manner in (Manner.HALF, Manner.FAILS_HALF):
        return
    for _ in range(2 if manner == Manner.TWICE else 1):
        _start(world, order)


def finish(world: ContestedCluster, order: Order) -> None:
    """A late one does it now, or half of it; who was told not to any more doesn't continue."""
    if order.is_countermanded:
        order.is_pending = False
        return
    world.foreign[order.replacement.group] += 1
    if order.replacement.member and order.replacement.from_flavour and order.stopped is None:
        _stop(world, order)
        if world.rng.random() < 0.3:
            world.say(f"late, the first half: {order}")
            return
    order.is_pending = False
    world.say(f"late: {order}")
    _start(world, order)


def _stop(world: ContestedCluster, order: Order) -> None:
    gone = world.groups[order.replacement.group].stop(order.replacement.member, world.now())
    order.stopped = gone.member_id if gone else None


def _start(world: ContestedCluster, order: Order) -> None:
    """Nobody, where the order only stops a member."""
    group, flavour = world.groups[order.replacement.group], order.replacement.to_flavour
    if flavour:
        assert flavour in group.flavours
        host, by = order.replacement.host or "host9", Start(order.run_id, order.step_id, order.is_back)
        group.start(flavour, host, world.now(), by)
        order.started += 1


def _is_same(one: MemberReplacement, other: MemberReplacement) -> bool:
    """An order that only starts a member is called off by its flavour."""
    same_member = one.member == other.member or not one.from_flavour
    return same_member and (one.from_flavour, one.to_flavour) == (other.from_flavour, other.to_flavour)
