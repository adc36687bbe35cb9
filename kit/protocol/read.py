"""Reads of groups for a move between the classic protocol and the consumer protocol (KIP-848): members and epochs.

Each coordinator lists its groups and describes hundreds of them per request: DescribeGroups for the type ``classic``,
ConsumerGroupDescribe for the type ``consumer`` (version 1, brokers >= 4.0, reports the protocol of each member).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.consumer_protocol import parse_member
from kit.groups.read import consumer_group_describe
from kit.groups.read.coordinator import LOCK_GROUPS, ListedGroup, describe_request, described, list_groups
from kit.groups.read.sweep import sweep
from kit.protocol.stage import Stage, stage_of
from kit.tables.groups import CLASSIC, CONSUMER, ReadError

Key: TypeAlias = tuple[str, int]
"""Topic and partition."""
CONVERTED = "the coordinator does not describe the group as the type that it listed: the group was converted or deleted"


@dataclass(frozen=True, slots=True)
class ProtocolMember:
    """One member of a group, of either protocol.

    ``protocol``: ``classic`` or ``consumer``; None: the broker does not report it. ``epoch``: the member epoch; None
    for a member of a classic group. ``topics``: subscribed by name; ``pattern``: subscribed by RE2/J expression.
    ``assigned``: what the member owns now; ``target``: what it is to own, the same for a classic group. ``user_data``:
    bytes of user data in the assignment of a member of a classic group; None: not reported, as while the group
    rebalances. ``rack``: as the member names it. ``error``: why the subscription or assignment can't be decoded.
    """

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    protocol: str | None
    epoch: int | None
    topics: tuple[str, ...]
    pattern: str | None
    assigned: tuple[Key, ...]
    target: tuple[Key, ...]
    user_data: int | None = None
    rack: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GroupProtocol:
    """One group as its coordinator describes it.

    ``group_type``: ``classic`` or ``consumer``; None before Kafka 3.8, where every group is classic. ``protocol_type``:
    ``consumer``, or another client's (``connect``, …); empty for a group of offsets alone. ``assignor``: the client's
    of a classic group, the broker's of a consumer group. ``epoch`` and ``assignment_epoch`` are None for a classic
    group. ``error``: why the group could not be described; then its members are unknown.
    """

    group_id: str
    group_type: str | None
    protocol_type: str
    state: str | None
    assignor: str | None
    coordinator: int
    epoch: int | None = None
    assignment_epoch: int | None = None
    members: tuple[ProtocolMember, ...] = ()
    error: str | None = None

    @property
    def stage(self) -> Stage:
        if self.error is not None:
            return Stage.UNKNOWN
        return stage_of(self.group_type, [each.protocol for each in self.members])

    @property
    def is_settled(self) -> bool:
        """Return whether no rebalance is visible: the state is ``Stable`` or ``Empty``, and all epochs are equal."""
        epochs = {self.epoch, self.assignment_epoch, *(each.epoch for each in self.members)}
        return self.error is None and self.state in ("Stable", "Empty") and (not self.members or len(epochs) == 1)


@dataclass(frozen=True, slots=True)
class GroupProtocols:
    """Groups by id, sorted. ``errors``: brokers that could not list their groups; those groups are missing."""

    groups: Mapping[str, GroupProtocol]
    errors: tuple[ReadError, ...]


def fetch_group_protocols(client: BrokerClient, accepts: Callable[[str], bool]) -> GroupProtocols:
    """Describe every group of type classic or consumer that ``accepts`` accepts; offramp's own locks are left out.

    A group that can't be described is there with its ``error``. Share and streams groups are left out.

    Raises:
        ConnectError: no broker answered before the deadline.
    """
    return client.run(_fetch, client, accepts, Deadline())


async def _fetch(client: BrokerClient, accepts: Callable[[str], bool], deadline: Deadline) -> GroupProtocols:
    everything, errors = await list_groups(client, deadline)
    listed = {
        name: each
        for name, each in sorted(everything.items())
        if each.group_type in (None, CLASSIC, CONSUMER) and not name.startswith(LOCK_GROUPS) and accepts(name)
    }
    found: dict[str, GroupProtocol] = {}
    classic = {name: each.broker_id for name, each in listed.items() if each.group_type != CONSUMER}
    take = partial(_take, found, listed, _classic_group)
    failed = await sweep(client, classic, describe_request, described, take, deadline)
    consumer = {name: each.broker_id for name, each in listed.items() if each.group_type == CONSUMER}
    take = partial(_take, found, listed, _consumer_group)
    ask, answers = consumer_group_describe.describe_request, described
    failed |= await sweep(client, consumer, ask, answers, take, deadline)
    groups = {name: found.get(name) or _undescribed(name, each, failed.get(name)) for name, each in listed.items()}
    return GroupProtocols(groups, tuple(errors))


def _take(
    found: dict[str, GroupProtocol],
    listed: Mapping[str, ListedGroup],
    convert: Callable[[str, ListedGroup, Any], GroupProtocol],
    group_id: str,
    answer: Any,
) -> None:
    found[group_id] = convert(group_id, listed[group_id], answer)


def _undescribed(group_id: str, listed: ListedGroup, error: str | None) -> GroupProtocol:
    """A group that the coordinator listed and did not describe."""
    return GroupProtocol(
        group_id,
        listed.group_type,
        listed.protocol_type,
        listed.state,
        None,
        listed.broker_id,
        error=error or CONVERTED,
    )


def _classic_group(group_id: str, listed: ListedGroup, answer: Any) -> GroupProtocol:
    """``Dead`` is the answer on a group that is not, or no longer, of the type classic."""
    if answer.group_state == "Dead":
        return _undescribed(group_id, listed, CONVERTED)
    is_consumer = answer.protocol_type == CONSUMER
    return GroupProtocol(
        group_id,
        listed.group_type,
        answer.protocol_type,
        answer.group_state,
        answer.protocol_data or None,
        listed.broker_id,
        members=tuple(_classic_member(each, is_consumer) for each in answer.members),
    )


def _classic_member(each: Any, is_consumer: bool) -> ProtocolMember:
    metadata, assignment = (each.member_metadata, each.member_assignment) if is_consumer else (b"", b"")
    topics, assigned, error = parse_member(metadata, assignment)
    return ProtocolMember(
        each.member_id,
        each.client_id,
        each.client_host.removeprefix("/"),
        each.group_instance_id,
        CLASSIC,
        None,
        tuple(topics),
        None,
        tuple(assigned),
        tuple(assigned),
        _decoded(ConsumerProtocolAssignment, assignment, lambda decoded: len(decoded.user_data or b"")),
        _decoded(ConsumerProtocolSubscription, metadata, lambda decoded: getattr(decoded, "rack_id", None) or None),
        error,
    )


def _decoded(form: Any, data: bytes, value: Callable[[Any], Any]) -> Any:
    """A value of the decoded bytes; None if there are none, or if they can't be decoded."""
    try:
        return value(form.decode(data)) if data else None
    except (ValueError, struct.error):
        return None


def _consumer_group(group_id: str, listed: ListedGroup, answer: Any) -> GroupProtocol:
    return GroupProtocol(
        group_id,
        listed.group_type,
        CONSUMER,
        answer.group_state,
        answer.assignor_name or None,
        listed.broker_id,
        answer.group_epoch,
        answer.assignment_epoch,
        tuple(map(_consumer_member, answer.members)),
    )


def _consumer_member(each: Any) -> ProtocolMember:
    return ProtocolMember(
        each.member_id,
        each.client_id,
        each.client_host.removeprefix("/"),
        each.instance_id,
        consumer_group_describe.member_protocol(each),
        each.member_epoch,
        tuple(each.subscribed_topic_names),
        each.subscribed_topic_regex or None,
        _partitions(each.assignment),
        _partitions(each.target_assignment),
        rack=each.rack_id or None,
    )


def _partitions(assignment: Any) -> tuple[Key, ...]:
    return tuple((topic.topic_name, each) for topic in assignment.topic_partitions for each in topic.partitions)
