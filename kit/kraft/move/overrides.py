"""Gates of a move that only a second person overrides, and what that asks of the plan's approval.

Old consumers are overridden by group (``old_consumers:GROUP``), unreachable controllers by address
(``stopped:HOST:PORT``): the plan names each group that is left behind, and each controller that a person reports as
stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kit.tables.conditions import OPERATOR, SECOND_PERSON, Rule

REHEARSED = Rule("rehearsed", "a rehearsal with a save of this cluster succeeded", overridden_by=SECOND_PERSON)
OLD_CONSUMERS = Rule("old_consumers", "no group under /consumers has a live member", overridden_by=SECOND_PERSON)
SOAK = Rule("soak", "KRaft mode was watched for the required time, and no value diverged", overridden_by=SECOND_PERSON)
STOPPED = Rule("stopped", "each controller answers, or its host refuses the connection", overridden_by=SECOND_PERSON)
VOTERS_KNOWN = Rule("voters_known", "a controller reported the voters of the quorum", overridden_by=OPERATOR)
_OF_A_GROUP = f"{OLD_CONSUMERS.check_id}:"
_OF_A_NODE = f"{STOPPED.check_id}:"


def of_group(group: str) -> Rule:
    """The part of ``OLD_CONSUMERS`` that is about one group."""
    return replace(OLD_CONSUMERS, check_id=f"{_OF_A_GROUP}{group}")


def of_node(address: str) -> Rule:
    """The part of ``STOPPED`` about one controller."""
    return replace(STOPPED, check_id=f"{_OF_A_NODE}{address}")


def left_behind(overridden: Iterable[str]) -> tuple[str, ...]:
    """The groups that these overrides leave behind, each once."""
    return _parts(_OF_A_GROUP, overridden)


def reported_stopped(overridden: Iterable[str]) -> tuple[str, ...]:
    """The addresses of the controllers that a person reports as stopped, each once."""
    return _parts(_OF_A_NODE, overridden)


def reports_voters(overridden: Iterable[str]) -> bool:
    """Return whether the operator answers for it that the profile names every voter."""
    return VOTERS_KNOWN.check_id in overridden


def _parts(prefix: str, overridden: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name.removeprefix(prefix) for name in overridden if name.startswith(prefix)}))


def takes_second_person(overridden: Iterable[str]) -> bool:
    names = tuple(overridden)
    return bool(left_behind(names) or reported_stopped(names)) or not {REHEARSED.check_id, SOAK.check_id}.isdisjoint(
        names
    )
