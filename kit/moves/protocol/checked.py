"""The checks of ``kit.protocol`` as rules of a plan: what forbids it, what an operator may override, what is a risk."""

from __future__ import annotations

from kit.clients.cluster import Cluster
from kit.protocol.checks import check_group
from kit.protocol.facts import STOPPED, ProtocolFacts, Request
from kit.protocol.verdicts import group_of, read_facts
from kit.tables.conditions import INFO, Condition

STABLE = "k848_stable"
"""The rules of a replacement ask for the same, and for an owner of each partition."""


def checked_facts(cluster: Cluster, group_id: str, request: Request) -> list[Condition]:
    """Read the facts about one group and evaluate all checks.

    ``__consumer_offsets`` is read only if all members stop: the commit times there decide whether offsets are lost.

    Raises:
        NotFound: no coordinator knows the group.
        ConnectError, ReadError: see ``kit.protocol.verdicts.read_facts``.
    """
    return rules_of(read_facts(cluster, group_id.__eq__, request.how == STOPPED), group_id, request)


def rules_of(facts: ProtocolFacts, group_id: str, request: Request) -> list[Condition]:
    """The checks of one group by facts that were read before.

    Raises:
        NotFound: no coordinator knows the group.
    """
    found = check_group(facts, group_of(facts, group_id), request)
    return [each for each in found if each.severity != INFO and each.check_id != STABLE]
