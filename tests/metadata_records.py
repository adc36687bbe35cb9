"""Records, batches and files of ``__cluster_metadata``, written as Kafka does: what the reader must understand."""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from google_crc32c import value as crc32c

from kit.kraft.metadata_log.fields import is_in
from kit.kraft.metadata_log.records import CONTROL_TYPES, RECORD_TYPES
from tests.coordinator_records import compact, tags, uvarint

KEYS = {each.name: key for key, each in RECORD_TYPES.items()}
CONTROLS = {each.name: key for key, each in CONTROL_TYPES.items()}
NONE = uvarint(0)
_FORMS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d", "bool": ">?"}


def newest(name: str) -> int:
    """The newest version of a record type."""
    return int(RECORD_TYPES[KEYS[name]].versions.rpartition("-")[2])


def value(name: str, body: Mapping[str, Any] | None = None, version: int | None = None) -> bytes:
    """A framed value; fields that are not given are empty, tagged ones are left out."""
    version = newest(name) if version is None else version
    return framed(KEYS[name], version, struct_of(RECORD_TYPES[KEYS[name]].fields, version, body or {}))


def framed(key: int, version: int, message: bytes, frame: int = 1) -> bytes:
    return uvarint(frame) + uvarint(key) + uvarint(version) + message


def struct_of(fields: Sequence[Any], version: int, body: Mapping[str, Any]) -> bytes:
    found, tagged = b"", {}
    for field in fields:
        if not is_in(version, field["versions"]):
            continue
        if "tag" not in field:
            found += field_of(field, version, body.get(field["name"], empty(field)))
        elif field["name"] in body:
            tagged[field["tag"]] = field_of(field, version, body[field["name"]])
    return found + tags(tagged)


def empty(field: Any) -> Any:
    kind = field["type"]
    if kind.startswith("[]"):
        return []
    return {"string": "", "bytes": "", "uuid": "A" * 22, "struct": {}}.get(kind, 0)


def field_of(field: Any, version: int, given: Any) -> bytes:
    kind = field["type"]
    if kind == "struct":
        return struct_of(field["fields"], version, given)
    if kind.startswith("[]"):
        if given is None:
            return NONE
        element = {**field, "type": kind[2:]}
        return uvarint(len(given) + 1) + b"".join(field_of(element, version, each) for each in given)
    if kind in _FORMS:
        return struct.pack(_FORMS[kind], float(given) if kind == "float64" else given)
    if kind == "uuid":
        return octets_of(given)
    return compact(base64.b64decode(given) if kind == "bytes" and given is not None else given)


def octets_of(uuid: str) -> bytes:
    return base64.urlsafe_b64decode(uuid + "==")


def uuid(number: int) -> str:
    """The id of a number, as Kafka prints it."""
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def zigzag(number: int) -> bytes:
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)


def sized(octets: bytes | None) -> bytes:
    return zigzag(-1) if octets is None else zigzag(len(octets)) + octets


def record(delta: int, delta_ms: int, key: bytes | None, octets: bytes | None) -> bytes:
    body = b"\0" + zigzag(delta_ms) + zigzag(delta) + sized(key) + sized(octets) + zigzag(0)
    return zigzag(len(body)) + body


def batch(
    base_offset: int,
    values: Sequence[bytes | None],
    epoch: int = 1,
    first_ms: int = 1_795_409_372_420,
    keys: Sequence[bytes | None] | None = None,
    is_control: bool = False,
    codec: str = "none",
    deltas_ms: Sequence[int] = (),
    attributes: int = 0,
) -> bytes:
    """A record batch of format 2."""
    keys = keys or [None] * len(values)
    deltas = [*deltas_ms, *[0] * (len(values) - len(deltas_ms))]
    records = b"".join(record(at, deltas[at], keys[at], each) for at, each in enumerate(values))
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    attributes |= (0x20 if is_control else 0) | codecs.index(codec.removesuffix("-java"))
    head = struct.pack(
        ">hiqqqhii", attributes, len(values) - 1, first_ms, first_ms + max(deltas), -1, -1, -1, len(values)
    )
    body = head + packed(records, codec)
    return struct.pack(">qiibI", base_offset, 9 + len(body), epoch, 2, crc32c(body)) + body


def packed(records: bytes, codec: str) -> bytes:
    if codec == "none":
        return records
    if codec == "gzip":
        return gzip.compress(records)
    if codec == "snappy-java":
        half = len(records) // 2
        blocks = [pa.Codec("snappy").compress(each, asbytes=True) for each in (records[:half], records[half:])]
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    return bytes(pa.Codec(codec).compress(records, asbytes=True))


def control(
    base_offset: int, name: str, body: Mapping[str, Any] | None = None, version: int = 0, epoch: int = 1
) -> bytes:
    """A batch of one control record."""
    key = struct.pack(">hh", 0, CONTROLS[name])
    octets = struct_of(CONTROL_TYPES[CONTROLS[name]].fields, version, {"version": version, **(body or {})})
    return batch(base_offset, [octets], epoch, keys=[key], is_control=True)


def segment(*values: bytes, base_offset: int = 0, epoch: int = 1, per_batch: int = 2) -> bytes:
    """Batches of some values each."""
    parts = [values[at : at + per_batch] for at in range(0, len(values), per_batch)]
    return b"".join(batch(base_offset + at * per_batch, part, epoch) for at, part in enumerate(parts))


def checkpoint(*values: bytes, epoch: int = 1, logged_ms: int = 1_795_409_383_352) -> bytes:
    """Header, values, footer; offsets count from 0."""
    head = control(0, "SnapshotHeader", {"lastContainedLogTimestamp": logged_ms}, epoch=epoch)
    foot = control(1 + len(values), "SnapshotFooter", epoch=epoch)
    return head + segment(*values, base_offset=1, epoch=epoch) + foot


def write_log(
    folder: Path, segments: Mapping[int, bytes], checkpoints: Mapping[tuple[int, int], bytes] | None = None
) -> Path:
    """A log's folder: segments by base offset, checkpoints by end offset and epoch, and files of no interest."""
    folder.mkdir(parents=True, exist_ok=True)
    for base, octets in segments.items():
        (folder / f"{base:020}.log").write_bytes(octets)
    for (end, epoch), octets in (checkpoints or {}).items():
        (folder / f"{end:020}-{epoch:010}.checkpoint").write_bytes(octets)
    (folder / "00000000000000000000.index").write_bytes(bytes(64))
    (folder / "00000000000000000099-0000000001.checkpoint.part").write_bytes(b"half")
    return folder


def topic(name: str, number: int) -> bytes:
    return value("Topic", {"name": name, "topicId": uuid(number)})


def partition(topic_number: int, number: int, replicas: Sequence[int] = (1, 2, 3), **fields: Any) -> bytes:
    body = {
        "partitionId": number,
        "topicId": uuid(topic_number),
        "replicas": list(replicas),
        "isr": list(replicas),
        "leader": replicas[0],
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": [uuid(100 + each) for each in replicas],
    }
    return value("Partition", body | fields)


def change(topic_number: int, number: int, **fields: Any) -> bytes:
    return value("PartitionChange", {"partitionId": number, "topicId": uuid(topic_number), **fields})


def config(kind: int, name: str, key: str, given: str | None) -> bytes:
    return value("Config", {"resourceType": kind, "resourceName": name, "name": key, "value": given})


def quota(entity: Mapping[str, str | None], key: str, limit: float, remove: bool = False) -> bytes:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity.items()]
    return value("ClientQuota", {"entity": parts, "key": key, "value": limit, "remove": remove})


def credential(user: str, secret: bytes = b"hush", mechanism: int = 1, iterations: int = 4096) -> bytes:
    part = base64.b64encode(secret).decode()
    fields = {"name": user, "mechanism": mechanism, "salt": part, "storedKey": part, "serverKey": part}
    return value("UserScramCredential", fields | {"iterations": iterations})


def broker(node_id: int, epoch: int = 5, version: int | None = None, **fields: Any) -> bytes:
    body = {
        "brokerId": node_id,
        "incarnationId": uuid(200 + node_id),
        "brokerEpoch": epoch,
        "endPoints": [{"name": "PLAINTEXT", "host": "h", "port": 9092, "securityProtocol": 0}],
        "features": [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 25}],
        "rack": None,
        "fenced": True,
    }
    return value("RegisterBroker", body | fields, version)


def acl(number: int, **fields: Any) -> bytes:
    body = {"id": uuid(number), "resourceType": 2, "resourceName": "orders", "patternType": 3, "principal": "User:a"}
    return value("AccessControlEntry", body | {"host": "*", "operation": 3, "permissionType": 3} | fields)
