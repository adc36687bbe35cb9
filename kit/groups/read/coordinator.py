"""Reads from the group coordinators: every group with its members, assignment and committed offsets.

The broker that lists a group is its coordinator, so no coordinator has to be found. Each broker gets DescribeGroups
(ConsumerGroupDescribe for groups of KIP-848, and so on) and multi-group OffsetFetch (KIP-709, brokers ≥ 3.0) for
hundreds of its groups at a time. Share groups have start offsets instead of commits, by DescribeShareGroupOffsets.
A group that fails is a row with its error. A retriable request is sent again, to the coordinator of that moment, until
the deadline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from kit.clients.broker_client import (
    DEADLINE_S,
    RETRIABLE_CODES,
    RETRIABLE_FAILURES,
    BrokerClient,
    Deadline,
    describe_code,
)
from kit.clients.consumer_protocol import is_embedded, parse_member
from kit.errors import ConnectError
from kit.groups.read import consumer_group_describe, offset_fetch, other_groups
from kit.groups.read.kafka_member import kafka_member
from kit.groups.read.offsets_partitions import partitions_without_leader
from kit.groups.read.sweep import sweep
from kit.tables import schema as tables
from kit.tables.groups import (
    CLASSIC,
    CONSUMER,
    KAFKA,
    SHARE,
    STREAMS,
    Group,
    Member,
    Ownership,
    ReadError,
    Subscription,
)

LOCK_GROUPS = "offramp.lock."
"""The names of offramp's own locks (``kit.moves.locks.lease``) begin so: no consumer is in these groups."""
_TAKE_OVER_ATTEMPT, _ELECTION_ATTEMPTS = 3, 2
_TYPES_READ = (None, CLASSIC, CONSUMER, SHARE, STREAMS)


@dataclass(frozen=True)
class CoordinatedGroups:
    """All groups of all coordinators; ``errors`` are brokers that could not list theirs, and partitions without one.

    ``unsupported``: ids of groups whose type the brokers or offramp can't describe; their rows have an ``error``.
    """

    groups: tables.Columns
    members: tables.Columns
    subscriptions: tables.Columns
    ownership: tables.Columns
    committed_offsets: tables.Columns
    errors: tuple[ReadError, ...]
    unsupported: frozenset[str] = frozenset()


def fetch_groups(
    client: BrokerClient,
    accepts: Callable[[str], bool] = lambda group_id: True,
    deadline_s: float = DEADLINE_S,
    only_stable: bool = False,
    locks: bool = False,
) -> CoordinatedGroups:
    """Read the groups that ``accepts`` accepts, without offramp's own locks; ``locks``: those alone.

    ``only_stable``: a group with offsets of an open transaction is asked again, and fails at the deadline.

    Raises:
        ConnectError: no broker answered before the deadline.
    """
    wanted = lambda group_id: group_id.startswith(LOCK_GROUPS) == locks and accepts(group_id)  # noqa: E731
    return client.run(_fetch_groups, client, wanted, Deadline(deadline_s), only_stable)


def await_coordinator(client: BrokerClient, group_id: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until the group's coordinator answers for the group, whatever the answer is.

    Between the death of a coordinator and the moment when the next one begins to load, no broker lists its groups: a
    group that is listed nowhere is absent only if it is so after this.

    Raises:
        ConnectError: the coordinator did not answer before the deadline, so whether the group exists is unknown.
    """

    def answered(response: Any) -> Iterator[tuple[str, int, None]]:
        return ((each, code if code in RETRIABLE_CODES else 0, None) for each, code, _ in described(response))

    anywhere = {group_id: client.broker_ids()[0]}
    failed = client.run(sweep, client, anywhere, describe_request, answered, lambda *_: None, Deadline(deadline_s))
    if failed:
        raise ConnectError(f"the coordinator of group {group_id!r} does not answer for it: {failed[group_id]}")


async def _fetch_groups(
    client: BrokerClient, accepts: Callable[[str], bool], deadline: Deadline, only_stable: bool
) -> CoordinatedGroups:
    collected = _Collected()
    await _list_everywhere(client, collected, deadline)
    collected.listed = {
        group_id: collected.listed[group_id] for group_id in sorted(collected.listed) if accepts(group_id)
    }
    failed = await _describe(client, collected, deadline)
    everyone = {group_id: each.broker_id for group_id, each in collected.listed.items() if each.group_type != SHARE}
    for group_id, error in (await _fetch_offsets(client, everyone, collected, deadline, only_stable)).items():
        failed.setdefault(group_id, f"the group's committed offsets can't be read: {error}")
    for group_id, error in (await _fetch_start_offsets(client, collected, deadline)).items():
        failed.setdefault(group_id, f"the group's start offsets can't be read: {error}")
    return collected.result(failed)


async def _describe(client: BrokerClient, collected: _Collected, deadline: Deadline) -> dict[str, str]:
    """Ask by the request of each type of group. Return the groups that could not be described, with the error."""
    classic = collected.coordinators(CLASSIC)
    failed = await sweep(client, classic, describe_request, described, collected.take_description, deadline)
    consumer = collected.coordinators(CONSUMER)
    ask, answers = consumer_group_describe.describe_request, described
    failed |= await sweep(client, consumer, ask, answers, collected.take_consumer_group, deadline)
    for group_type in (SHARE, STREAMS):
        groups = collected.coordinators(group_type)
        if groups and not other_groups.can_describe(client, group_type):
            failed |= dict.fromkeys(groups, f"these brokers can't describe groups of type {group_type!r}")
            collected.unsupported |= groups.keys()
        elif groups:
            asked = partial(other_groups.describe_request, group_type)
            failed |= await sweep(client, groups, asked, answers, partial(collected.take_other, group_type), deadline)
    return failed


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group in its coordinator's list."""

    broker_id: int
    protocol_type: str
    state: str | None
    group_type: str | None
    """``classic``, ``consumer`` (KIP-848), ``share`` …; None from a broker older than 3.8, where all are classic."""


@dataclass(frozen=True, slots=True)
class _Described:
    state: str
    protocol_type: str
    protocol: str
    group_epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass
class _Collected:
    """The answers so far."""

    listed: dict[str, ListedGroup] = field(default_factory=dict)
    described: dict[str, _Described] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    ownership: list[Ownership] = field(default_factory=list)
    offsets: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    errors: list[ReadError] = field(default_factory=list)
    unsupported: set[str] = field(default_factory=set)

    def coordinators(self, group_type: str) -> dict[str, int]:
        """Broker id by group id, of the groups of one type."""
        return {
            group_id: listed.broker_id
            for group_id, listed in self.listed.items()
            if (listed.group_type or "classic") == group_type
        }

    def take_description(self, group_id: str, described: Any) -> None:
        self.described[group_id] = _Described(described.group_state, described.protocol_type, described.protocol_data)
        is_consumer = described.protocol_type == "consumer"
        for each in described.members:
            subscription, assignment = (each.member_metadata, each.member_assignment) if is_consumer else (b"", b"")
            subscribed, assigned, problem = parse_member(subscription, assignment)
            is_marked = is_embedded(subscription) if subscription else None
            self.members.append(kafka_member(group_id, each, error=problem, is_embedded=is_marked))
            self.subscriptions += [Subscription(group_id, KAFKA, each.member_id, topic, 1) for topic in subscribed]
            self.ownership += [
                Ownership(group_id, KAFKA, topic, partition, each.member_id, None, None, None)
                for topic, partition in assigned
            ]

    def take_consumer_group(self, group_id: str, described: Any) -> None:
        self._take_epochs(group_id, "consumer", described)
        self.members += consumer_group_describe.members(described)
        self.subscriptions += consumer_group_describe.subscriptions(described)
        self.ownership += consumer_group_describe.ownership(described)

    def take_other(self, group_type: str, group_id: str, described: Any) -> None:
        self._take_epochs(group_id, group_type, described)
        self.members += other_groups.members(group_type, described)
        self.subscriptions += other_groups.subscriptions(group_type, described)
        self.ownership += other_groups.ownership(group_type, described)

    def _take_epochs(self, group_id: str, protocol_type: str, described: Any) -> None:
        assignor = getattr(described, "assignor_name", None) or ""
        epochs = described.group_epoch, described.assignment_epoch
        self.described[group_id] = _Described(described.group_state, protocol_type, assignor, *epochs)

    def take_start_offsets(self, group_id: str, topics: Iterable[Any]) -> None:
        columns = self.offsets
        for topic in topics:
            partitions = topic.partitions
            columns["group_id"] += [group_id] * len(partitions)
            columns["topic"] += [topic.topic_name] * len(partitions)
            columns["partition"] += [each.partition_index for each in partitions]
            columns["committed_offset"] += [_known(each.start_offset) for each in partitions]
            columns["leader_epoch"] += [_known(each.leader_epoch) for each in partitions]
            columns["metadata"] += [None] * len(partitions)
            columns["error"] += [describe_code(each.error_code) if each.error_code else None for each in partitions]
            columns["unfinished"] += [_known(each.lag) for each in partitions]

    def take_offsets(self, group_id: str, topics: Iterable[Any]) -> None:
        columns = self.offsets
        for topic in topics:
            partitions = topic.partitions
            columns["group_id"] += [group_id] * len(partitions)
            columns["topic"] += [topic.name] * len(partitions)
            columns["partition"] += [each.partition_index for each in partitions]
            columns["committed_offset"] += [_known(each.committed_offset) for each in partitions]
            columns["leader_epoch"] += [_known(each.committed_leader_epoch) for each in partitions]
            columns["metadata"] += [each.metadata or None for each in partitions]
            columns["error"] += [describe_code(each.error_code) if each.error_code else None for each in partitions]
            columns["unfinished"] += [None] * len(partitions)

    def result(self, failed: dict[str, str]) -> CoordinatedGroups:
        self.offsets["store"] = [KAFKA] * len(self.offsets["group_id"])
        return CoordinatedGroups(
            groups=tables.GROUPS.columns_of(self._group(group_id, failed.get(group_id)) for group_id in self.listed),
            members=tables.MEMBERS.columns_of(self.members),
            subscriptions=tables.SUBSCRIPTIONS.columns_of(self.subscriptions),
            ownership=tables.OWNERSHIP.columns_of(self.ownership),
            committed_offsets=tables.COMMITTED_OFFSETS.columns(self.offsets),
            errors=tuple(self.errors),
            unsupported=frozenset(self.unsupported | {key for key, each in self.listed.items() if not _is_read(each)}),
        )

    def _group(self, group_id: str, error: str | None) -> Group:
        listed, described = self.listed[group_id], self.described.get(group_id)
        if not _is_read(listed):
            error = error or f"members of a group of type {listed.group_type!r} are not read"
        state = described.state if described else listed.state
        protocol_type = described.protocol_type if described else listed.protocol_type
        protocol = described.protocol if described else None
        return Group(
            group_id=group_id,
            source=KAFKA,
            state=state,
            group_type=listed.group_type,
            protocol_type=protocol_type or None,
            protocol=protocol or None,
            coordinator=listed.broker_id,
            error=error,
            group_epoch=described.group_epoch if described else None,
            assignment_epoch=described.assignment_epoch if described else None,
        )


def _is_read(listed: ListedGroup) -> bool:
    return listed.group_type in _TYPES_READ


async def list_groups(client: BrokerClient, deadline: Deadline) -> tuple[dict[str, ListedGroup], list[ReadError]]:
    """Every group of every coordinator, by id; and the brokers that could not list theirs."""
    collected = _Collected()
    await _list_everywhere(client, collected, deadline)
    return collected.listed, collected.errors


async def _list_everywhere(client: BrokerClient, collected: _Collected, deadline: Deadline) -> None:
    """Every broker's groups. If a broker dies meanwhile, or a partition of the offsets topic has no leader, the brokers
    are asked again: the groups move to them.
    """
    n_without_leader = 0
    while True:
        collected.errors.clear()
        asked = [partial(_list_groups, client, broker_id, collected, deadline) for broker_id in client.broker_ids()]
        has_left = any(await client.gather(asked))
        without_leader = [] if has_left else await partitions_without_leader(client, deadline)
        if not has_left and (not without_leader or n_without_leader == _ELECTION_ATTEMPTS):
            collected.errors += without_leader
            return
        n_without_leader += not has_left
        # The controller needs a moment to move the coordinators; the new ones then answer that they are loading.
        await client.pause(_TAKE_OVER_ATTEMPT)


async def _list_groups(client: BrokerClient, broker_id: int, collected: _Collected, deadline: Deadline) -> bool:
    """Return whether the broker left the cluster instead of answering."""
    attempt = 0
    while True:
        problem = await _try_to_list(client, broker_id, collected)
        if problem is None:
            return False
        if not deadline.allows(attempt):
            collected.errors.append(_unlisted(broker_id, problem))
            return False
        await client.pause(attempt)
        attempt += 1
        await client.refresh_metadata()
        if broker_id not in client.broker_ids():
            return True


async def _try_to_list(client: BrokerClient, broker_id: int, collected: _Collected) -> str | None:
    """The retriable error; None: the broker has answered."""
    try:
        response = await client.send(ListGroupsRequest(min_version=0), broker_id)
    except RETRIABLE_FAILURES as error:
        return str(error)
    if response.error_code in RETRIABLE_CODES:
        return describe_code(response.error_code)
    if response.error_code:
        collected.errors.append(_unlisted(broker_id, describe_code(response.error_code)))
    for each in response.groups:
        state, group_type = getattr(each, "group_state", None), getattr(each, "group_type", None)
        collected.listed[each.group_id] = ListedGroup(
            broker_id, each.protocol_type, state or None, group_type.lower() if group_type else None
        )
    return None


def _unlisted(broker_id: int, problem: str) -> ReadError:
    return ReadError(KAFKA, None, None, f"broker {broker_id}", f"the groups of this broker can't be listed: {problem}")


async def _fetch_offsets(
    client: BrokerClient,
    coordinators: dict[str, int],
    collected: _Collected,
    deadline: Deadline,
    only_stable: bool,
) -> dict[str, str]:
    if offset_fetch.takes_many(client):
        request = lambda group_ids: offset_fetch.fetch_many(dict.fromkeys(group_ids), only_stable)  # noqa: E731
        answers = partial(offset_fetch.answers, ())
        return await sweep(client, coordinators, request, answers, collected.take_offsets, deadline)
    failed: dict[str, str] = {}
    for group_id, broker_id in coordinators.items():
        request = lambda group_ids: offset_fetch.fetch_one(group_ids[0], None, only_stable)  # noqa: E731
        answers, single = partial(offset_fetch.answers, (group_id,)), {group_id: broker_id}
        failed |= await sweep(client, single, request, answers, collected.take_offsets, deadline)
    return failed


async def _fetch_start_offsets(client: BrokerClient, collected: _Collected, deadline: Deadline) -> dict[str, str]:
    groups = collected.coordinators(SHARE)
    if not groups or not other_groups.can_fetch_start_offsets(client):
        collected.unsupported |= groups.keys()
        return dict.fromkeys(groups, "these brokers can't report start offsets of share groups")
    ask, answers = other_groups.start_offsets_request, other_groups.start_offsets
    return await sweep(client, groups, ask, answers, collected.take_start_offsets, deadline)


def describe_request(group_ids: Sequence[str]) -> Any:
    """One DescribeGroups for many groups of one coordinator."""
    return DescribeGroupsRequest(groups=list(group_ids), include_authorized_operations=False)


def described(response: Any) -> Iterator[tuple[str, int, Any]]:
    """Group id, error code and description of every group of an answer."""
    return ((each.group_id, each.error_code, each) for each in response.groups)


def _known(value: int) -> int | None:
    """None for the protocol's -1."""
    return None if value < 0 else value
