"""Gates of a move that only a second person overrides, and what that asks of the plan's approval.

Old consumers are overridden group by group (``old_consumers:GROUP``): who overrides has said which groups are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kit.migrate.engine.checks import SECOND_PERSON, Rule

REHEARSED = Rule("rehearsed", "a rehearsal of a save of this cluster went well", overridden_by=SECOND_PERSON)
OLD_CONSUMERS = Rule("old_consumers", "no live member stands under /consumers", overridden_by=SECOND_PERSON)
SOAK = Rule("soak", "KRaft mode was watched for long enough, and nothing diverged", overridden_by=SECOND_PERSON)
_OF_A_GROUP = f"{OLD_CONSUMERS.name}:"


def of_group(group: str) -> Rule:
    """The part of ``OLD_CONSUMERS`` that is about one group."""
    return replace(OLD_CONSUMERS, name=f"{_OF_A_GROUP}{group}")


def left_behind(overridden: Iterable[str]) -> tuple[str, ...]:
    """The groups that these overrides leave behind, each once."""
    groups = {name.removeprefix(_OF_A_GROUP) for name in overridden if name.startswith(_OF_A_GROUP)}
    return tuple(sorted(groups))


def takes_second_person(overridden: Iterable[str]) -> bool:
    names = tuple(overridden)
    return bool(left_behind(names)) or not {REHEARSED.name, SOAK.name}.isdisjoint(names)
