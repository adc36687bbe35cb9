"""Judge whether groups can change their protocol now: facts of the whole cluster, and a verdict for each group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

from kit.clients.cluster import Cluster
from kit.errors import NotFound, PartialRead, UnsafePlan
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.read.topics import fetch_sight
from kit.protocol.brokers import fetch_cluster_facts, fetch_session_timeouts
from kit.protocol.checks import CHECKS, check_group
from kit.protocol.commit_times import read_commit_times
from kit.protocol.facts import ROLLING, STOPPED, ProtocolFacts, Request
from kit.protocol.read import GroupProtocol, fetch_group_protocols
from kit.protocol.stage import Stage
from kit.tables.conditions import ASK, BLOCK, WARN, Condition
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.quantity import quantity

if TYPE_CHECKING:
    import polars as pl


def read_facts(
    cluster: Cluster,
    accepts: Callable[[str], bool] = lambda group_id: True,
    offsets_topic: bool = False,
    tell: Callable[[str], None] = lambda step: None,
) -> ProtocolFacts:
    """Read what the checks need, for all groups that ``accepts`` accepts: a few requests per broker and 500 groups.

    Args:
        offsets_topic: also read ``__consumer_offsets``, which alone has commit times.
        tell: called before each part of the reading with its name.

    Raises:
        ConnectError, ReadError: the brokers stopped answering, or refused.
        NotFound: with ``offsets_topic``, if there is no such topic yet.
    """
    client = cluster.broker_client
    tell("brokers")
    facts = fetch_cluster_facts(client)
    tell("groups")
    found = fetch_group_protocols(client, accepts)
    tell(f"settings of {quantity(len(found.groups), 'group')}")
    sessions = fetch_session_timeouts(client, found.groups) if facts.group_version else {}
    sight = fetch_sight(client)
    commits = None
    if offsets_topic:
        tell(OFFSETS_TOPIC)
        commits = read_commit_times(cluster.profile)
    return ProtocolFacts(
        round(time.time() * 1000),
        facts,
        found.groups,
        sessions,
        commits,
        None if sight.unknown is not None else frozenset(sight.hidden),
        tuple(f"{each.subject}: {each.error}" for each in found.errors) + (commits.errors if commits else ()),
    )


def group_of(facts: ProtocolFacts, group_id: str) -> GroupProtocol:
    """Raises NotFound: no coordinator lists the group as one of type classic or consumer."""
    if group_id not in facts.groups:
        raise NotFound(
            f"there is no group {group_id!r} of the classic or the consumer protocol in Kafka: see offramp groups"
            f"{IF_HIDDEN}"
        )
    return facts.groups[group_id]


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """The verdict whether one group can be moved now.

    ``rolling``, ``stopped``: ``yes``, ``no`` or ``unknown``, by how members are replaced; ``done``: the group has the
    protocol; None: the group has no members to replace one by one. ``loses_offsets``: offsets that the brokers delete
    when the group has no members under the consumer protocol; None: unknown. ``blocked_by``, ``unknown``: ids of
    blocking checks that are not met, or unknown, for either way. ``to_answer``: ids that a person must answer.
    """

    group_id: str
    stage: str
    group_type: str | None
    n_members: int | None
    rolling: str | None
    stopped: str
    loses_offsets: int | None
    blocked_by: tuple[str, ...]
    unknown: tuple[str, ...]
    warnings: tuple[str, ...]
    to_answer: tuple[str, ...]
    error: str | None = None


def verdict(facts: ProtocolFacts, group: GroupProtocol, request: Request) -> GroupVerdict:
    """Judge one group for both ways of replacing members; ``request.how`` does not matter."""
    found = check_group(facts, group, request)
    by_id = {check.rule.check_id: check for check in CHECKS}
    of_way = {
        how: [each for each in found if by_id[each.check_id].severity(how) == BLOCK and each.is_met is not True]
        for how in (ROLLING, STOPPED)
    }
    blocking = [*of_way[ROLLING], *(each for each in of_way[STOPPED] if each not in of_way[ROLLING])]
    if group.stage is Stage.EMPTY:
        blocking = of_way[STOPPED]
    is_done = group.stage == request.to
    return GroupVerdict(
        group.group_id,
        group.stage.value,
        group.group_type,
        None if group.error else len(group.members),
        None if group.stage is Stage.EMPTY else "done" if is_done else _answer(of_way[ROLLING]),
        "done" if is_done else _answer(of_way[STOPPED]),
        facts.of(group, request).n_expiring,
        _ids(each for each in blocking if each.is_met is False and not is_done),
        _ids(each for each in blocking if each.is_met is None and not is_done),
        _ids(each for each in found if each.severity == WARN and each.is_met is False),
        _ids(each for each in found if each.severity == ASK and each.is_met is not True and not is_done),
        group.error,
    )


def verdicts(facts: ProtocolFacts, request: Request) -> list[GroupVerdict]:
    """Judge every group: first those that can't be moved, then those of which that is unknown."""
    rows = [verdict(facts, group, request) for group in facts.groups.values()]
    order = ("no", "unknown", None, "yes", "done")
    return sorted(rows, key=lambda each: (order.index(each.rolling), order.index(each.stopped), each.group_id))


def verdict_rows(rows: Sequence[GroupVerdict]) -> pl.DataFrame:
    """Return verdicts as rows: a column per field of :class:`GroupVerdict`, lists for its tuples."""
    import polars as pl

    schema: dict[str, pl.DataType] = {each.name: pl.String() for each in fields(GroupVerdict)}
    schema |= dict.fromkeys(("n_members", "loses_offsets"), pl.Int64())
    schema |= dict.fromkeys(("blocked_by", "unknown", "warnings", "to_answer"), pl.List(pl.String()))
    return pl.DataFrame([astuple(each) for each in rows], schema=schema, orient="row")


def _answer(blocking: list[Condition]) -> str:
    if any(each.is_met is False for each in blocking):
        return "no"
    return "unknown" if blocking else "yes"


def _ids(findings: Iterable[Condition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.check_id for each in findings))


def verify_move(group_id: str, found: Sequence[Condition]) -> str:
    """A sentence if no check forbids the move of the group.

    Raises:
        UnsafePlan: a blocking check is not met.
        PartialRead: a blocking check is unknown.
    """
    bad = _ids(each for each in found if each.severity == BLOCK and each.is_met is False)
    dark = _ids(each for each in found if each.severity == BLOCK and each.is_met is None)
    if bad:
        more = f"; unknown: {', '.join(dark)}" if dark else ""
        raise UnsafePlan(
            f"group {group_id!r} can't be moved now: {', '.join(bad)}{more}. Follow each remedy, then run the check "
            "again."
        )
    if dark:
        raise PartialRead(f"group {group_id!r}: some checks are unknown: {', '.join(dark)}")
    ask = _ids(each for each in found if each.severity == ASK and each.is_met is not True)
    return f"No check forbids the move of group {group_id!r}." + (f" Answer first: {', '.join(ask)}." if ask else "")


def verify_facts(facts: ProtocolFacts) -> str:
    """A sentence if every group was read.

    Raises:
        PartialRead: naming what could not be read (the first 20).
    """
    lines = [*facts.problems, *(f"group {each.group_id}: {each.error}" for each in facts.groups.values() if each.error)]
    if lines:
        shown = "\n".join([*lines[:20], *["…"] * (len(lines) > 20)])
        raise PartialRead(
            f"{quantity(len(lines), 'thing')} could not be read, so the values are unknown, not zero:\n{shown}"
        )
    return f"{quantity(len(facts.groups), 'group')}: everything was read."
