"""Members of KIP-848 groups by ConsumerGroupDescribe (API 69): DescribeGroups does not return them.

The pinned kafka-python knows the number of this request but not its form. Its classes are made from the two JSON files
beside this module, as kafka-python makes its own. The files follow Kafka's protocol guide. Version 0: brokers
>= 3.7. Version 1, with the protocol of each member: brokers >= 4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kit.clients.kafka_messages import messages_of
from kit.groups.read.kafka_member import kafka_member
from kit.tables.groups import CLASSIC, CONSUMER, KAFKA, Member, Ownership, Subscription

ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse = messages_of("ConsumerGroupDescribe", "kit.groups.read")


def describe_request(group_ids: Sequence[str]) -> Any:
    """One request for many groups of one coordinator."""
    return ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=False, min_version=0, max_version=1
    )


def member_protocol(member: Any) -> str | None:
    """``classic`` or ``consumer``; None: the broker does not report it (version 0)."""
    return {0: CLASSIC, 1: CONSUMER}.get(getattr(member, "member_type", -1))


def members(group: Any) -> list[Member]:
    """The members; ``pattern`` is a subscription by RE2 expression, which the broker resolves (KIP-848)."""
    return [
        kafka_member(
            group.group_id,
            each,
            pattern=each.subscribed_topic_regex or None,
            member_type=member_protocol(each),
        )
        for each in group.members
    ]


def subscriptions(group: Any) -> list[Subscription]:
    """Topics subscribed to by name, and topics that the broker resolved from a pattern."""
    return [
        Subscription(group.group_id, KAFKA, each.member_id, topic, 1)
        for each in group.members
        for topic in _topics(each)
    ]


def ownership(group: Any) -> list[Ownership]:
    """The partitions that members hold now; while the group is ``Reconciling`` the target assignment differs."""
    return [
        Ownership(group.group_id, KAFKA, topic.topic_name, partition, each.member_id, None, None, None)
        for each in group.members
        for topic in each.assignment.topic_partitions
        for partition in topic.partitions
    ]


def _topics(member: Any) -> list[str]:
    named = list(member.subscribed_topic_names)
    if member.subscribed_topic_regex:
        assigned = [*member.assignment.topic_partitions, *member.target_assignment.topic_partitions]
        named += [each.topic_name for each in assigned]
    return sorted(set(named))
