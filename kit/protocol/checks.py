"""Checks of a move between the classic and the consumer protocol (KIP-848), each with its evidence and remedy.

Rules and releases: Apache Kafka's sources 4.0 to 4.4 (``GroupMetadataManager``, ``ConsumerGroup``) and its issues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kit.protocol import cluster_judgements as cluster, judgements as judge
from kit.protocol.cluster_judgements import Problem
from kit.protocol.facts import ROLLING, GroupFacts, ProtocolFacts, Request
from kit.protocol.read import GroupProtocol
from kit.tables.conditions import ASK, BLOCK, INFO, NEVER, OPERATOR, WARN, Condition, Rule
from kit.tables.groups import CLASSIC, CONSUMER

BOTH = (CONSUMER, CLASSIC)
_API_VERSIONS, _CONFIGS = "ApiVersions of each broker", "DescribeConfigs of each broker"
_MEMBERS = "DescribeGroups, ConsumerGroupDescribe"
_PERSON = "a person"
_TOPIC = "__consumer_offsets (--offsets-topic)"

Judge: TypeAlias = Callable[[GroupFacts], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, and the function that asks for it. ``stopped``: the severity if all members stop; else it is the rule's.

    ``to``: protocols to which it applies. ``of_cluster``: the answer is the same for every group.
    """

    rule: Rule
    stopped: str
    to: tuple[str, ...]
    look: Judge
    of_cluster: bool = False

    def severity(self, how: str) -> str:
        return self.rule.severity if how == ROLLING else self.stopped

    def findings(self, facts: GroupFacts) -> Iterator[Condition]:
        """At least one condition, whose subject is the group."""
        unread = facts.group.error if not self.of_cluster else None
        if unread is None:
            problems = list(self.look(facts))
        else:
            problems = [Problem(f"The group can't be described: {unread}.", "Run the check again.", None)]
        severity, group_id = self.severity(facts.request.how), facts.group.group_id
        for each in problems or [Problem(self.rule.holds, is_met=True)]:
            yield self.rule.found(each.is_met, each.sentence, subject=group_id, remedy=each.remedy, severity=severity)


def _check(
    check_id: str,
    rolling: str,
    stopped: str,
    to: tuple[str, ...],
    holds: str,
    source: str,
    look: Judge,
    of_cluster: bool = False,
    overridden_by: str = NEVER,
) -> Check:
    """``rolling``, ``stopped``: severities by how members are replaced."""
    return Check(Rule(check_id, holds, rolling, overridden_by, source=source), stopped, to, look, of_cluster)


CHECKS: tuple[Check, ...] = (
    _check(
        *("k848_brokers", BLOCK, BLOCK, (CONSUMER,), "Every broker runs Kafka 4.0 or later.", _API_VERSIONS),
        *(cluster.brokers, True),
    ),
    _check(
        *("k848_feature", BLOCK, BLOCK, (CONSUMER,), "The feature group.version is finalized at 1 or higher."),
        *(_API_VERSIONS, cluster.feature, True),
    ),
    _check(
        *("k848_protocols", BLOCK, BLOCK, (CONSUMER,), "Every broker has the consumer protocol switched on."),
        *(_CONFIGS, cluster.protocols, True),
    ),
    _check(
        *("k848_policy", BLOCK, INFO, BOTH, "Every broker converts a group with members to the requested protocol."),
        *(_CONFIGS, cluster.policy, True),
    ),
    _check(
        *(
            "k848_way_back",
            WARN,
            INFO,
            (CONSUMER,),
            "Every broker also converts a group with members back to the classic protocol.",
        ),
        *(_CONFIGS, cluster.way_back, True),
    ),
    _check(
        *("k848_release", WARN, WARN, BOTH, "Every broker runs Kafka 4.3 or later, which has the known fixes."),
        *(_API_VERSIONS, cluster.release, True, OPERATOR),
    ),
    _check(
        *(
            "k848_downgrade_bug",
            WARN,
            WARN,
            (CLASSIC,),
            "The release has no known bug in the change back to the classic protocol.",
        ),
        *(_API_VERSIONS, cluster.downgrade_bug, True),
    ),
    _check(
        *(
            "k848_protocol_type",
            BLOCK,
            BLOCK,
            BOTH,
            "The protocol type of the group is consumer, or the group only has offsets.",
        ),
        *(_MEMBERS, judge.protocol_type),
    ),
    _check(
        *("k848_streams", BLOCK, BLOCK, BOTH, "The assignor is not the one of Kafka Streams.", _MEMBERS),
        judge.streams,
    ),
    _check(
        *("k848_user_data", BLOCK, INFO, (CONSUMER,), "No member's assignment has user data.", _MEMBERS),
        judge.user_data,
    ),
    _check(
        *("k848_malformed", BLOCK, BLOCK, BOTH, "Every subscription and assignment can be parsed.", _MEMBERS),
        judge.malformed,
    ),
    _check(
        *("k848_stable", BLOCK, BLOCK, BOTH, "The group is stable, and all its epochs are equal.", _MEMBERS),
        judge.stable,
    ),
    _check(
        *("k848_size", BLOCK, BLOCK, BOTH, "The group has no more members than the brokers allow."),
        *(f"{_CONFIGS}, {_MEMBERS}", judge.size),
    ),
    _check(
        *("k848_copartition", WARN, WARN, (CONSUMER,), "No co-partitioning by the assignor range is lost."),
        *(f"{_CONFIGS}, {_MEMBERS}", judge.copartition),
    ),
    _check(
        *("k848_assignor", WARN, WARN, (CONSUMER,), "The assignor is one of Kafka's own.", _MEMBERS, judge.assignor),
    ),
    _check(
        *("k848_assignor_known", BLOCK, BLOCK, (CONSUMER,), "Every broker has the assignor of the new members."),
        *(_CONFIGS, judge.assignor_known, True),
    ),
    _check(
        *("k848_rack", WARN, WARN, (CONSUMER,), "No member names a rack.", _MEMBERS, judge.rack),
    ),
    _check(
        *("k848_session", WARN, WARN, (CONSUMER,), "Old and new members have the same session timeout."),
        *(f"{_TOPIC}, DescribeConfigs of the group", judge.session),
    ),
    _check(
        *("k848_static", WARN, WARN, BOTH, "No member is static.", _MEMBERS, judge.static),
    ),
    _check(
        *("old_commits", WARN, BLOCK, BOTH, "No offset is deleted when the group has no members."),
        *(_TOPIC, judge.old_commits),
    ),
    _check(
        *("k848_regex", WARN, WARN, (CONSUMER,), "All members subscribe to the same topics.", _MEMBERS, judge.regex),
    ),
    _check(
        *("k848_rights", WARN, WARN, (CONSUMER,), "The login and the clients may describe every topic of the group."),
        *(f"Metadata, {_PERSON}", judge.rights),
    ),
    _check(
        *("k848_clients", ASK, ASK, (CONSUMER,), "Every client is ready for the consumer protocol."),
        *(_PERSON, judge.clients, True),
    ),
    _check(
        *("k848_monitoring", WARN, WARN, (CONSUMER,), "No tool reads groups by DescribeGroups alone."),
        *(_PERSON, judge.monitoring, True),
    ),
)
RULES: tuple[Rule, ...] = tuple(each.rule for each in CHECKS)


def check_group(facts: ProtocolFacts, group: GroupProtocol, request: Request) -> list[Condition]:
    """Every check that applies to the move of one group: at least one finding for each."""
    of_group = facts.of(group, request)
    return [each for check in CHECKS if request.to in check.to for each in check.findings(of_group)]
