"""The checks of ``kit.protocol`` as rules of a plan: what forbids it, what an operator may override, what is a risk."""

from __future__ import annotations

from kit.protocol.checks import check_group
from kit.protocol.facts import ProtocolFacts, Request
from kit.protocol.verdicts import group_of
from kit.tables.conditions import INFO, Condition

STABLE = "k848_stable"
"""The rules of a replacement ask for the same, and for an owner of each partition."""


def rules_of(facts: ProtocolFacts, group_id: str, request: Request) -> list[Condition]:
    """The checks of one group by facts that were read before.

    Raises:
        NotFound: no coordinator knows the group.
    """
    found = check_group(facts, group_of(facts, group_id), request)
    return [each for each in found if each.severity != INFO and each.check_id != STABLE]
