"""The checks of ``kit.protocol`` as rules of a plan: what forbids it, what an operator may override, what is a risk."""

from __future__ import annotations

from kit.clients.cluster import Cluster
from kit.engine.model.checks import BLOCKS, NEVER, OPERATOR, WARNS, Finding, Rule
from kit.protocol.checks import ASK, BLOCK, CHECKS, INFO, ProtocolFinding, check_group
from kit.protocol.facts import STOPPED, Request
from kit.protocol.verdicts import group_of, read_facts

STABLE = "k848_stable"
"""The rules of a replacement ask for the same, and for an owner of each partition."""


def checked_facts(cluster: Cluster, group_id: str, request: Request) -> list[Finding]:
    """Read the facts about one group and evaluate all checks.

    ``__consumer_offsets`` is read only if all members stop: the commit times there decide whether offsets are lost.

    Raises:
        NotFound: no coordinator knows the group.
        ConnectError, ReadError: see ``kit.protocol.verdicts.read_facts``.
    """
    facts = read_facts(cluster, group_id.__eq__, request.how == STOPPED)
    found = check_group(facts, group_of(facts, group_id), request)
    return [as_rule(each) for each in found if each.severity != INFO and each.check_id != STABLE]


def as_rule(found: ProtocolFinding) -> Finding:
    """A check that a person must answer blocks until it is answered."""
    check = next(each for each in CHECKS if each.check_id == found.check_id)
    level = BLOCKS if found.severity in (BLOCK, ASK) else WARNS
    overridden_by = OPERATOR if check.is_overridable else NEVER
    rule = Rule(found.check_id, check.holds, level, overridden_by)
    return rule.found(found.is_met, f"{found.sentence} {found.remedy}".rstrip())
