"""One member of a classic group whose protocol type, subscription and assignment are any bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kit.clients.broker_client import BrokerClient, Deadline
from kit.lab import Lab
from kit.lab.topics import QUIET
from tests.servers.awaiting import awaited

SESSION_MS = 120_000
"""The member sends no heartbeat, and is read long before its session ends."""


def subscription(topics: list[str], rack: str | None = None) -> bytes:
    return bytes(ConsumerProtocolSubscription(topics=topics, user_data=None, rack_id=rack).encode(version=3))


def assignment(user_data: bytes = b"") -> bytes:
    return bytes(ConsumerProtocolAssignment(assigned_partitions=[], user_data=user_data).encode(version=0))


@dataclass(frozen=True)
class RawMember:
    """``assignor`` is the one protocol that the member supports; it leads its group and assigns itself."""

    group: str
    subscribed: bytes = b""
    assigned: bytes = b""
    assignor: str = "range"
    protocol_type: str = "consumer"
    instance_id: str | None = None

    def join(self, client: BrokerClient) -> None:
        """Join and receive the assignment: the group is stable then."""
        client.run(self._join, client, Deadline(60.0))

    async def _join(self, client: BrokerClient, deadline: Deadline) -> None:
        coordinators: dict[str, int] = {}
        while not coordinators:
            coordinators = await client.find_coordinators([self.group], deadline)
        broker_id, member_id = coordinators[self.group], ""
        while True:  # The first answer gives a member its id, or the coordinator is loading.
            joined = await client.ask(self._request(member_id), broker_id, deadline)
            if joined.error_code == 0:
                break
            assert joined.error_code in (14, 15, 16, 79), joined
            member_id = joined.member_id
        part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=self.assigned)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.assignor,
            assignments=[part],
        )
        synced = await client.ask(request, broker_id, deadline)
        assert synced.error_code == 0, synced

    def _request(self, member_id: str) -> Any:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=self.assignor, metadata=self.subscribed)
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[protocol],
        )


def answer_to_new_member(lab: Lab, group: str, topic: str) -> str:
    """The error that the broker gives to a consumer-protocol member that joins; empty: the member was accepted."""
    errors: list[str] = []
    config = {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group, "group.protocol": "consumer"}
    accepted: list[bool] = []
    consumer = Consumer({**config, "error_cb": lambda error: errors.append(error.str())})
    consumer.subscribe([topic], on_assign=lambda *_: accepted.append(True))

    def answered() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            errors.append(message.error().str())
        return bool(errors or accepted)

    try:
        awaited(answered, bool, f"an answer to a new member of {group}")
    finally:
        consumer.close()
    return errors[0] if errors else ""
