"""One group of Kafka as plans of protocols see it: which protocol each member speaks, and whether the group is settled.

A group that has one consumer-protocol member is of type ``consumer``, and its classic members stay in it. The broker
assigns partitions to both kinds, so no partition has two owners (KIP-848, "Online Consumer Group Upgrade").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kit.cluster import Cluster
from kit.errors import ConnectError, PlanError
from kit.migrate.group.group_state import CLASSIC, CONSUMER, GroupState, MemberState, group_states, listed
from kit.read.broker_client import DEADLINE_S, RETRIABLE_CODES, BrokerClient, Deadline, describe_code
from kit.read.consumer_group_describe import describe_request, described
from kit.snapshot import observe
from kit.tables import groups as tables
from kit.tables.groups import KAFKA

CANARY, MIXED, EMPTY, UNKNOWN = "canary", "mixed", "empty", "unknown"
STAGES = (CLASSIC, CANARY, MIXED, CONSUMER)
MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}
"""ConsumerGroupDescribe v1, MemberType; -1 is unknown."""
ABSENT = 69
"""GROUP_ID_NOT_FOUND: the group is of another type by now."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class ProtocolState(GroupState):
    """A :class:`GroupState` whose members' flavours are ``classic`` and ``consumer``.

    ``group_type`` is the broker's: ``classic`` or ``consumer``. The epochs are None for the type ``classic``.
    ``member_epochs`` is by member id.
    """

    group_type: str | None = None
    broker_assignor: str | None = None
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    member_epochs: Mapping[str, int] = field(default_factory=dict)

    @property
    def unsettled(self) -> str:
        """Why the group is not settled, in words."""
        if self.unconsumed:
            return f"no member owns {listed(self.unconsumed)}"
        if self.group_epoch != self.assignment_epoch:
            return f"the assignment of epoch {self.group_epoch} is not computed yet"
        late = sorted(member for member, epoch in self.member_epochs.items() if epoch != self.group_epoch)
        return f"{late[0]} has not reached epoch {self.group_epoch}" if late else f"the group is {self.kafka_state}"

    @property
    def is_settled(self) -> bool:
        """No rebalance is visible: the group is stable, each partition has an owner, and all epochs are equal."""
        has_one_epoch = {self.group_epoch} >= {self.assignment_epoch, *self.member_epochs.values()}
        return bool(self.members) and self.kafka_state == "Stable" and not self.unconsumed and has_one_epoch


def read_protocol_state(cluster: Cluster, group_id: str) -> ProtocolState:
    """Read one group from its coordinator.

    Raises:
        NotFound: no coordinator knows the group.
        PlanError: the group is neither of the type ``classic`` nor ``consumer``, or not one of consumers.
        ConnectError: something could not be read, so the group's state is unknown.
    """
    for _ in range(TRIES):
        state = _read(cluster, group_id)
        if state is not None:
            return state
    raise ConnectError(f"group {group_id}: its type changed {TRIES} times while it was read")


def _read(cluster: Cluster, group_id: str) -> ProtocolState | None:
    """None: the group changed its type between two requests."""
    snapshot = observe(cluster, re.escape(group_id))
    (state,) = group_states(snapshot, [group_id])
    (row,) = snapshot.groups.filter(snapshot.groups["source"] == KAFKA).to_dicts() or [{}]
    group_type = row.get("group_type") or tables.CLASSIC
    if group_type not in (tables.CLASSIC, tables.CONSUMER) or row.get("protocol_type") not in (None, "consumer"):
        raise PlanError(
            f"group {group_id} is of type {group_type!r} and of protocol type {row.get('protocol_type')!r}: only groups"
            " of consumers can change between the classic and the consumer protocol"
        )
    if group_type == tables.CLASSIC:
        members = tuple(replace(each, flavour=CLASSIC) for each in state.members)
        return _protocol_state(state, members, group_type, row.get("protocol"), {})
    found = cluster.broker_client.run(_describe, cluster.broker_client, group_id)
    if found is None:
        return None
    state = replace(state, kafka_state=found.group_state)
    epochs = {each.member_id: each.member_epoch for each in found.members}
    at = (found.group_epoch, found.assignment_epoch)
    return _protocol_state(state, _members(found.members), group_type, found.assignor_name, epochs, *at)


def _protocol_state(
    state: GroupState,
    members: tuple[MemberState, ...],
    group_type: str,
    broker_assignor: str | None,
    epochs: Mapping[str, int],
    group_epoch: int | None = None,
    assignment_epoch: int | None = None,
) -> ProtocolState:
    values = {name: getattr(state, name) for name in GroupState.__dataclass_fields__}
    values |= {
        "members": members,
        "stage": stage_of([each.flavour for each in members]),
        "owners": {pair: each.member_id for each in members for pair in each.partitions},
        "effective_mode": KAFKA,
    }
    return ProtocolState(
        **values,
        group_type=group_type,
        broker_assignor=broker_assignor,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        member_epochs=epochs,
    )


def stage_of(flavours: Iterable[str]) -> str:
    """The stage of a group by its members' protocols.

    >>> stage_of(["classic", "consumer", "classic"]), stage_of(["classic", "consumer", "consumer"]), stage_of([])
    ('canary', 'mixed', 'empty')
    """
    every = list(flavours)
    if not every:
        return EMPTY
    if set(every) - {CLASSIC, CONSUMER}:
        return UNKNOWN
    n_consumers = every.count(CONSUMER)
    if n_consumers in (0, len(every)):
        return CONSUMER if n_consumers else CLASSIC
    return CANARY if n_consumers == 1 else MIXED


def _members(described_members: Iterable[Any]) -> tuple[MemberState, ...]:
    members = [
        MemberState(
            each.member_id,
            each.client_id,
            MEMBER_TYPES.get(each.member_type, UNKNOWN),
            each.client_host.removeprefix("/"),
            frozenset(
                (topic.topic_name, number) for topic in each.assignment.topic_partitions for number in topic.partitions
            ),
            None,
        )
        for each in described_members
    ]
    return tuple(sorted(members, key=lambda member: member.member_id))


async def _describe(client: BrokerClient, group_id: str) -> Any:
    """ConsumerGroupDescribe of one group; None: it is of another type."""
    deadline, attempt = Deadline(DEADLINE_S), 0
    while True:
        coordinator = (await client.find_coordinators([group_id], deadline)).get(group_id)
        code = 15
        if coordinator is not None:
            response = await client.ask(describe_request([group_id]), coordinator, deadline)
            ((_, code, group),) = described(response)
            if code in (0, ABSENT):
                return group if code == 0 else None
        if code not in RETRIABLE_CODES or not deadline.allows(attempt):
            raise ConnectError(f"group {group_id} can't be described: {describe_code(code)}")
        await client.pause(attempt)
        attempt += 1
