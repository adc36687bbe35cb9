"""Checks of a move between the classic and the consumer protocol (KIP-848), each with its evidence and remedy.

Rules and releases: Apache Kafka's sources 4.0 to 4.4 (``GroupMetadataManager``, ``ConsumerGroup``) and its issues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kit.protocol import judgements as judge
from kit.protocol.facts import ROLLING, GroupFacts, ProtocolFacts, Request
from kit.protocol.judgements import Problem
from kit.protocol.read import GroupProtocol
from kit.tables.groups import CLASSIC, CONSUMER

BLOCK, WARN, INFO, ASK = SEVERITIES = ("block", "warn", "info", "ask")
"""``ask``: a person must answer before a plan is made."""
BOTH = (CONSUMER, CLASSIC)
_API_VERSIONS, _CONFIGS = "ApiVersions of each broker", "DescribeConfigs of each broker"
_MEMBERS = "DescribeGroups, ConsumerGroupDescribe"
_PERSON = "a person"
_TOPIC = "__consumer_offsets (--offsets-topic)"

Judge: TypeAlias = Callable[[GroupFacts], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class ProtocolFinding:
    """The answer of one check about one group. ``is_met``: None: unknown; ``sentence`` says why.

    ``severity``: one of ``SEVERITIES``. ``remedy`` is empty if the check is met. ``source``: how the answer is known.
    """

    group_id: str
    check_id: str
    severity: str
    is_met: bool | None
    sentence: str
    remedy: str
    source: str

    @property
    def forbids(self) -> bool:
        """Whether the move must not start: a blocking check is not met, or is unknown."""
        return self.severity == BLOCK and self.is_met is not True


@dataclass(frozen=True, slots=True)
class Check:
    """``rolling`` and ``stopped``: severities by how members are replaced. ``to``: protocols to which it applies.

    ``of_cluster``: the answer is the same for every group. ``is_overridable``: an operator may override it by its id.
    """

    check_id: str
    rolling: str
    stopped: str
    to: tuple[str, ...]
    holds: str
    source: str
    look: Judge
    of_cluster: bool = False
    is_overridable: bool = False

    def severity(self, how: str) -> str:
        return self.rolling if how == ROLLING else self.stopped

    def findings(self, facts: GroupFacts) -> Iterator[ProtocolFinding]:
        """At least one finding."""
        unread = facts.group.error if not self.of_cluster else None
        if unread is None:
            problems = list(self.look(facts))
        else:
            problems = [Problem(f"The group can't be described: {unread}.", "Run this command again.", None)]
        for problem in problems or [Problem(self.holds, is_met=True)]:
            yield ProtocolFinding(
                facts.group.group_id,
                self.check_id,
                self.severity(facts.request.how),
                problem.is_met,
                problem.sentence,
                problem.remedy,
                self.source,
            )


CHECKS: tuple[Check, ...] = (
    Check(
        *("k848_brokers", BLOCK, BLOCK, (CONSUMER,), "Every broker runs Kafka 4.0 or later.", _API_VERSIONS),
        *(judge.brokers, True),
    ),
    Check(
        *("k848_feature", BLOCK, BLOCK, (CONSUMER,), "The feature group.version is finalized at 1 or higher."),
        *(_API_VERSIONS, judge.feature, True),
    ),
    Check(
        *("k848_protocols", BLOCK, BLOCK, (CONSUMER,), "Every broker has the consumer protocol switched on."),
        *(_CONFIGS, judge.protocols, True),
    ),
    Check(
        *("k848_policy", BLOCK, INFO, BOTH, "Every broker converts a group that has members."),
        *(_CONFIGS, judge.policy, True),
    ),
    Check(
        *("k848_way_back", WARN, INFO, (CONSUMER,), "Every broker also converts a group with members back."),
        *(_CONFIGS, judge.way_back, True),
    ),
    Check(
        *("k848_release", WARN, WARN, BOTH, "Every broker runs Kafka 4.3 or later, which has the known fixes."),
        *(_API_VERSIONS, judge.release, True, True),
    ),
    Check(
        *("k848_downgrade_bug", WARN, WARN, (CLASSIC,), "The release has no known bug in the way back."),
        *(_API_VERSIONS, judge.downgrade_bug, True),
    ),
    Check(
        *("k848_protocol_type", BLOCK, BLOCK, BOTH, "The protocol type is consumer, or the group has offsets alone."),
        *(_MEMBERS, judge.protocol_type),
    ),
    Check(
        *("k848_streams", BLOCK, BLOCK, BOTH, "The assignor is not the one of Kafka Streams.", _MEMBERS),
        judge.streams,
    ),
    Check(
        *("k848_user_data", BLOCK, INFO, (CONSUMER,), "No member's assignment has user data.", _MEMBERS),
        judge.user_data,
    ),
    Check(
        *("k848_malformed", BLOCK, BLOCK, BOTH, "Every subscription and assignment can be parsed.", _MEMBERS),
        judge.malformed,
    ),
    Check(
        *("k848_stable", BLOCK, BLOCK, BOTH, "The group is stable, and all its epochs are equal.", _MEMBERS),
        *(judge.stable, False, True),
    ),
    Check(
        *("k848_size", BLOCK, BLOCK, BOTH, "The group has no more members than the brokers allow."),
        *(f"{_CONFIGS}, {_MEMBERS}", judge.size),
    ),
    Check(
        *("k848_copartition", WARN, WARN, (CONSUMER,), "No co-partitioning by the assignor range is lost."),
        *(f"{_CONFIGS}, {_MEMBERS}", judge.copartition),
    ),
    Check(
        *("k848_assignor", WARN, WARN, (CONSUMER,), "The assignor is one of Kafka's own.", _MEMBERS, judge.assignor),
    ),
    Check(
        *("k848_assignor_known", BLOCK, BLOCK, (CONSUMER,), "Every broker has the assignor of the new members."),
        *(_CONFIGS, judge.assignor_known, True),
    ),
    Check(
        *("k848_rack", WARN, WARN, (CONSUMER,), "No member names a rack.", _MEMBERS, judge.rack),
    ),
    Check(
        *("k848_session", WARN, WARN, (CONSUMER,), "Old and new members have the same session timeout."),
        *(f"{_TOPIC}, DescribeConfigs of the group", judge.session),
    ),
    Check(
        *("k848_static", WARN, WARN, BOTH, "No member is static.", _MEMBERS, judge.static),
    ),
    Check(
        *("old_commits", WARN, BLOCK, BOTH, "No offset is deleted when the group has no members."),
        *(_TOPIC, judge.old_commits),
    ),
    Check(
        *("k848_regex", WARN, WARN, (CONSUMER,), "All members subscribe to the same topics.", _MEMBERS, judge.regex),
    ),
    Check(
        *("k848_rights", WARN, WARN, (CONSUMER,), "The login and the clients may describe every topic of the group."),
        *(f"Metadata, {_PERSON}", judge.rights),
    ),
    Check(
        *("k848_clients", ASK, ASK, (CONSUMER,), "Every client is ready for the consumer protocol."),
        *(_PERSON, judge.clients, True),
    ),
    Check(
        *("k848_monitoring", WARN, WARN, (CONSUMER,), "No tool reads groups by DescribeGroups alone."),
        *(_PERSON, judge.monitoring, True),
    ),
)


def check_group(facts: ProtocolFacts, group: GroupProtocol, request: Request) -> list[ProtocolFinding]:
    """Every check that applies to the move of one group: at least one finding for each."""
    of_group = facts.of(group, request)
    return [each for check in CHECKS if request.to in check.to for each in check.findings(of_group)]
