"""A group that Kafka alone coordinates, as the model's truth has it: its members speak either protocol."""

from __future__ import annotations

from datetime import datetime, timedelta

from kit.moves.group.group_state import CLASSIC, CONSUMER, PROTOCOLS, MemberState, Partition, PartitionOffsets
from kit.moves.protocol.state import ProtocolState
from kit.protocol.read import GroupProtocol, ProtocolMember
from kit.tables.groups import KAFKA
from tests.adversary.groups import N_PARTITIONS, PARTITIONS, TOPIC, ModelGroup, One

SESSION_S = 45.0
"""Kafka's default: a member that was killed is visible for so long."""
BROKERS = 3


class KafkaGroup(ModelGroup):
    """``killed``: members whose process is gone and whose session has not ended, and when it ends."""

    flavours = PROTOCOLS

    def __init__(self, *given: object) -> None:
        self.killed: dict[str, datetime] = {}
        self.coordinator = 1
        super().__init__(*given)  # type: ignore[arg-type]

    def kill(self, member_id: str, now: datetime) -> None:
        self.killed.setdefault(member_id, now + timedelta(seconds=SESSION_S))

    def stop(self, member_id: str, now: datetime) -> One | None:
        """A process that was killed can't leave the group: its member is visible until the session ends."""
        if member_id in self.killed:
            return next((each for each in self.members if each.member_id == member_id), None)
        return super().stop(member_id, now)

    def move_coordinator(self) -> None:
        self.coordinator = self.coordinator % BROKERS + 1

    def hand_out(self, now: datetime) -> None:
        """End sessions; then everybody commits to Kafka."""
        for member_id in [each for each, until in self.killed.items() if until <= now]:
            del self.killed[member_id]
            self.stop(member_id, now)
        if self.members and self.is_settled(now):
            self.progress += 1
            self.kafka = self.progress

    def group_state(self, now: datetime) -> ProtocolState:
        """Return the state that ``kit.moves.protocol.state.read_protocol_state`` returns."""
        described = self._described(now)
        members = tuple(
            MemberState(
                each.member_id, each.client_id, str(each.protocol), each.client_host, frozenset(each.assigned), None
            )
            for each in described.members
        )
        return ProtocolState(
            group_id=self.name,
            observed_at=now,
            stage=str(described.stage),
            effective_mode=KAFKA,
            mode=None,
            mode_version=None,
            members=members,
            embedded={},
            owners={pair: each.member_id for each in members for pair in each.partitions},
            kafka_state=described.state,
            coordinator=described.coordinator,
            offsets={pair: self._position(pair) for pair in PARTITIONS} if self.kafka is not None else {},
            threads={},
            subscribed={TOPIC: N_PARTITIONS} if members else {},
            blockers={},
            protocol=described,
        )

    def _described(self, now: datetime) -> GroupProtocol:
        """The first consumer-protocol member converts the group, and the last one that leaves converts it back."""
        kind = CONSUMER if any(each.flavour == CONSUMER for each in self.members) else CLASSIC
        is_settled, names = self.is_settled(now), sorted(each.member_id for each in self.members)
        moving = "Reconciling" if kind == CONSUMER else "PreparingRebalance"
        state = ("Stable" if is_settled else moving) if names else "Empty"
        epoch = self.touched if kind == CONSUMER else None
        of = {each.member_id: each for each in self.members}
        shares = {name: PARTITIONS[at :: len(names)] if is_settled else () for at, name in enumerate(names)}
        members = tuple(
            ProtocolMember(name, name, of[name].host, None, of[name].flavour, epoch, (TOPIC,), None, shares[name], ())
            for name in names
        )
        assigned = None if epoch is None else epoch if is_settled else epoch - 1
        return GroupProtocol(
            self.name, kind, CONSUMER, state, "range", self.coordinator, epoch, assigned, members=members
        )

    def _position(self, pair: Partition) -> PartitionOffsets:
        return PartitionOffsets(None, None, self.kafka, 0, self.log_end)
