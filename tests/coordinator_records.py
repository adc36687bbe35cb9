"""Records of ``__consumer_offsets``, written after Kafka's message definitions: what the reader must understand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def octets(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def uvarint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def compact(value: str | bytes | None) -> bytes:
    if value is None:
        return b"\0"
    value = value.encode() if isinstance(value, str) else value
    return uvarint(len(value) + 1) + value


def tags(fields: dict[int, bytes] | None = None) -> bytes:
    found = sorted((fields or {}).items())
    return uvarint(len(found)) + b"".join(uvarint(tag) + uvarint(len(value)) + value for tag, value in found)


def commit_key(group: str, topic: str, partition: int, version: int = 1) -> bytes:
    return struct.pack(">h", version) + text(group) + text(topic) + struct.pack(">i", partition)


def group_key(group: str, version: int = 2) -> bytes:
    return struct.pack(">h", version) + text(group)


def member_key(kind: int, group: str, member: str) -> bytes:
    return struct.pack(">h", kind) + text(group) + text(member)


def epoch_value(epoch: int, fields: dict[int, bytes] | None = None) -> bytes:
    """Return the value of a group (type 3) and of its target assignment (6)."""
    return struct.pack(">hi", 0, epoch) + tags(fields)


def member_value(
    client_id: str = "client",
    client_host: str = "/127.0.0.1",
    instance_id: str | None = None,
    topics: Sequence[str] = ("t",),
    assignor: str | None = None,
    fields: dict[int, bytes] | None = None,
) -> bytes:
    found = struct.pack(">h", 0) + compact(instance_id) + compact("rack") + compact(client_id) + compact(client_host)
    found += uvarint(len(topics) + 1) + b"".join(compact(each) for each in topics)
    return found + compact(None) + struct.pack(">i", 300_000) + compact(assignor) + tags(fields)


def partitions(by_id: dict[bytes, list[int]], fields: dict[int, bytes] | None = None) -> bytes:
    found = uvarint(len(by_id) + 1)
    for topic_id, numbers in by_id.items():
        found += topic_id + uvarint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers) + tags(fields)
    return found


def target_value(by_id: dict[bytes, list[int]]) -> bytes:
    return struct.pack(">h", 0) + partitions(by_id) + tags()


def current_value(
    epoch: int,
    previous: int,
    state: int,
    assigned: dict[bytes, list[int]],
    revoking: dict[bytes, list[int]],
    fields: dict[int, bytes] | None = None,
) -> bytes:
    """``fields`` are of each topic's partitions."""
    found = struct.pack(">hiib", 0, epoch, previous, state)
    return found + partitions(assigned, fields) + partitions(revoking, fields) + tags()


def commit_value(
    version: int,
    offset: int,
    metadata: str = "",
    at_ms: int = 0,
    epoch: int = -1,
    expires_ms: int = -1,
    fields: dict[int, bytes] | None = None,
) -> bytes:
    found = struct.pack(">hq", version, offset)
    if version >= 3:
        found += struct.pack(">i", epoch)
    found += compact(metadata) if version >= 4 else text(metadata)
    found += struct.pack(">q", at_ms)
    if version == 1:
        found += struct.pack(">q", expires_ms)
    return found + (tags(fields) if version >= 4 else b"")


@dataclass(frozen=True)
class Member:
    member_id: str
    subscription: bytes = b""
    assignment: bytes = b""
    client_id: str = "client"
    client_host: str = "/127.0.0.1"
    instance_id: str | None = None
    rebalance_timeout_ms: int = 300_000
    session_timeout_ms: int = 45_000


def group_value(
    version: int,
    generation: int,
    members: Sequence[Member] = (),
    protocol_type: str = "consumer",
    protocol: str | None = "range",
    leader: str | None = None,
    state_ms: int = 0,
) -> bytes:
    string, bytestring, end = (compact, compact, tags()) if version >= 4 else (text, octets, b"")
    found = struct.pack(">h", version) + string(protocol_type) + struct.pack(">i", generation)
    found += string(protocol) + string(leader)
    found += struct.pack(">q", state_ms) if version >= 2 else b""
    found += uvarint(len(members) + 1) if version >= 4 else struct.pack(">i", len(members))
    for each in members:
        found += string(each.member_id)
        found += string(each.instance_id) if version >= 3 else b""
        found += string(each.client_id) + string(each.client_host)
        found += struct.pack(">i", each.rebalance_timeout_ms) if version >= 1 else b""
        found += struct.pack(">i", each.session_timeout_ms)
        found += bytestring(each.subscription) + bytestring(each.assignment) + end
    return found + end


def subscription(topics: Sequence[str], version: int = 0) -> bytes:
    return bytes(ConsumerProtocolSubscription(topics=list(topics), user_data=None).encode(version=version))


def assignment(partitions: dict[str, list[int]], version: int = 0) -> bytes:
    each = ConsumerProtocolAssignment.TopicPartition
    found = [each(topic=topic, partitions=numbers) for topic, numbers in partitions.items()]
    return bytes(ConsumerProtocolAssignment(assigned_partitions=found, user_data=None).encode(version=version))
