"""One group of Kafka as plans of protocols see it: which protocol each member speaks, and whether the group is settled.

A group that has one consumer-protocol member is of type ``consumer``, and its classic members stay in it. The broker
assigns partitions to both kinds, so no partition has two owners (KIP-848, "Online Consumer Group Upgrade").
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kit.clients.cluster import Cluster
from kit.errors import ConnectError, NotFound, PlanError
from kit.groups.read.coordinator import await_coordinator
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.snapshot import observe
from kit.moves.group.group_state import GroupState, MemberState, group_states, listed
from kit.protocol.read import GroupProtocol, fetch_group_protocols
from kit.tables.groups import CONSUMER, KAFKA

TRIES = 3
UNKNOWN = "unknown"
NONE = GroupProtocol("", None, "", None, None, -1)


@dataclass(frozen=True, slots=True)
class ProtocolState(GroupState):
    """A :class:`GroupState` whose members' flavours are ``classic`` and ``consumer``, and what its coordinator
    reports."""

    protocol: GroupProtocol = NONE

    @property
    def unsettled(self) -> str:
        """Return why the group is not settled, in words."""
        if self.unconsumed:
            return f"no member owns {listed(self.unconsumed)}"
        epoch = self.protocol.epoch
        if self.protocol.assignment_epoch != epoch:
            return f"the assignment of epoch {epoch} is not computed yet"
        late = [each.member_id for each in self.protocol.members if each.epoch != epoch]
        return f"{min(late)} has not reached epoch {epoch}" if late else f"the group is {self.kafka_state}"

    @property
    def is_settled(self) -> bool:
        """No rebalance is visible: the group is stable, each partition has an owner, and all epochs are equal."""
        return bool(self.members) and self.protocol.is_settled and not self.unconsumed


def read_protocol_state(cluster: Cluster, group_id: str) -> ProtocolState:
    """Read one group from its coordinator: its members, and its offsets.

    Raises:
        NotFound: no coordinator knows the group.
        PlanError: it is not a group of consumers.
        ConnectError: something could not be read, so the group's state is unknown.
    """
    return read_protocol_states(cluster, [group_id])[group_id]


def read_protocol_states(cluster: Cluster, group_ids: Collection[str]) -> dict[str, ProtocolState]:
    """Read several groups with the requests of one. Raises as :func:`read_protocol_state`, of the first bad group."""
    protocols = _fetch_protocols(cluster, group_ids)
    if absent := [name for name in group_ids if name not in protocols]:
        for name in absent:  # No broker lists a group while its coordinator moves.
            await_coordinator(cluster.broker_client, name)
        protocols |= _fetch_protocols(cluster, absent)
    for name in group_ids:
        if name not in protocols:
            raise NotFound(f"there is no group {name!r} of type classic or consumer: see offramp groups{IF_HIDDEN}")
        _refuse_other_types(protocols[name])
    states = group_states(observe(cluster, group_ids), group_ids)
    return {each.group_id: _with_protocol(each, protocols[each.group_id]) for each in states}


def _fetch_protocols(cluster: Cluster, group_ids: Collection[str]) -> dict[str, GroupProtocol]:
    """The groups that a broker lists."""
    found, left = dict[str, GroupProtocol](), set(group_ids)
    for _ in range(TRIES):  # A group that is converted meanwhile is described by the other request then.
        read = fetch_group_protocols(cluster.broker_client, left.__contains__)
        # A partition without a leader matters only if it holds one of the groups: then no broker lists the group.
        if unlisted := [each for each in read.errors if each.topic is None]:
            raise ConnectError(f"group {min(left)} can't be read: {unlisted[0].subject}: {unlisted[0].error}")
        found |= {name: each for name, each in read.groups.items() if each.error is None}
        left = read.groups.keys() - found.keys()
        if not left:
            return found
    raise ConnectError(f"group {min(left)} can't be read: {read.groups[min(left)].error}")


def _refuse_other_types(protocol: GroupProtocol) -> None:
    if protocol.protocol_type not in ("", CONSUMER):
        raise PlanError(
            f"group {protocol.group_id} is of protocol type {protocol.protocol_type!r}: only a group of consumers can"
            " change between the classic and the consumer protocol"
        )


def _with_protocol(state: GroupState, protocol: GroupProtocol) -> ProtocolState:
    members = _members(protocol)
    values = {name: getattr(state, name) for name in GroupState.__dataclass_fields__}
    values |= {
        "members": members,
        "stage": str(protocol.stage),
        "kafka_state": protocol.state,
        "coordinator": protocol.coordinator,
        "owners": {pair: each.member_id for each in members for pair in each.partitions},
        "effective_mode": KAFKA,
    }
    return ProtocolState(**values, protocol=protocol)


def _members(protocol: GroupProtocol) -> tuple[MemberState, ...]:
    members = [
        MemberState(
            each.member_id, each.client_id, each.protocol or UNKNOWN, each.client_host, frozenset(each.assigned), None
        )
        for each in protocol.members
    ]
    return tuple(sorted(members, key=lambda member: member.member_id))
