"""Parse Kafka's metadata znodes into the values that KRaft's records have, so that the two can be compared.

Pure: bytes in, values out. Any client may have written a znode, so whatever is not as brokers of 3.9 write it raises
``BadValue`` with a sentence's end that reports what is wrong. Rules: ``kafka.zk.ZkData``, ``kafka.zk.migration``.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from itertools import chain
from typing import Any
from urllib.parse import unquote

from kit.clients.values import is_text, json_in, shown
from kit.text.fingerprints import Hide, is_fingerprint, stars
from kit.text.numbers import INT32_MAX, INT64_MAX, partition_in

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_WHOLE_QUOTAS = {
    **dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), (-INT64_MAX - 1, INT64_MAX)),
    "connection_creation_rate": (-INT32_MAX - 1, INT32_MAX),
}
"""Quota → the least and the greatest value that brokers parse; all others are of type double."""
_SCRAM_PARTS = ("salt", "stored_key", "server_key", "iterations")
DEFAULT = "<default>"
"""The znode of all entities of a kind that have none of their own."""
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PRINCIPAL = re.compile(r"[^:]+:.*", re.DOTALL)
RESOURCE_TYPES = {
    "Topic": "TOPIC",
    "Group": "GROUP",
    "Cluster": "CLUSTER",
    "TransactionalId": "TRANSACTIONAL_ID",
    "DelegationToken": "DELEGATION_TOKEN",
    "User": "USER",
}


class BadValue(Exception):
    """The znode holds something else than a broker would have written."""


@dataclass(frozen=True, slots=True)
class TopicValue:
    """``/brokers/topics/<topic>``: replicas, in order, by partition."""

    topic_id: str | None
    replicas: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class StateValue:
    """``…/partitions/<partition>/state``; ``leader`` is None where there is none."""

    leader: int | None
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    recovery: int


def topic_value(data: bytes) -> TopicValue:
    """Versions 1 to 3 of a topic's znode; raises BadValue.

    >>> topic_value(b'{"version":1,"partitions":{"0":[1,2]}}').replicas
    {0: (1, 2)}
    """
    held = _object(data)
    topic_id = held.get("topic_id")
    if topic_id is not None and not _is_uuid(topic_id):
        raise BadValue(f"the field topic_id is {shown(str(topic_id))}")
    parts = [_replica_map(held.get(key, {}), key) for key in ("partitions", "adding_replicas", "removing_replicas")]
    if not parts[0]:
        raise BadValue("the field partitions is empty")
    return TopicValue(topic_id, *parts)


def state_value(data: bytes) -> StateValue:
    """A partition's state; raises BadValue."""
    held = _object(data)
    leader = _number(held, "leader", -1, INT32_MAX)
    return StateValue(
        leader=None if leader < 0 else leader,
        leader_epoch=_number(held, "leader_epoch", 0, INT32_MAX),
        controller_epoch=_number(held, "controller_epoch", -1, INT32_MAX),
        isr=_ids(held.get("isr"), "isr"),
        recovery=_number(held, "leader_recovery_state", 0, 127, default=0),
    )


def config_value(data: bytes) -> dict[str, str]:
    """Key → text of ``/config/<type>/<name>``; raises BadValue."""
    held = _object(data)
    config = held.get("config", {})
    if held.get("version") != 1:
        raise BadValue(f"the field version is {shown(str(held.get('version')))}, not 1")
    if not isinstance(config, dict) or not all(is_text(each) for pair in config.items() for each in pair):
        raise BadValue("the field config must be a map of text")
    return config


def is_broker_name(name: str) -> bool:
    """Return whether it is a broker's id, or the name for all brokers."""
    return name == DEFAULT or partition_in(name) is not None


def is_address(name: str) -> bool:
    """Return whether it is an IP address, or the name for all."""
    try:
        ip_address(name)
    except ValueError:
        return name == DEFAULT
    return True


def is_host_name(name: str) -> bool:
    """Return whether it is an address, or a name that may have one."""
    return is_address(name) or _HOST_NAME.fullmatch(name) is not None


def quota_value(key: str, value: str) -> str:
    """A quota's number, in the shortest form; raises BadValue.

    Brokers parse some quotas as whole numbers (``QuotaConfigHandler``, ``IpConfigHandler``) and end otherwise.

    >>> quota_value("request_percentage", "1000.0"), quota_value("request_percentage", "12.5")
    ('1000', '12.5')
    """
    if key in _WHOLE_QUOTAS:
        least, most = _WHOLE_QUOTAS[key]
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", value) or not least <= int(value) <= most:
            raise BadValue(f"the quota {key} is {shown(value)}; expected {least} to {most}")
        return str(int(value))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in value:
        raise BadValue(f"{shown(value)} is no number")
    return number_text(number)


def number_text(value: float) -> str:
    """A whole number without its decimals, as people write quotas."""
    return str(int(value)) if value.is_integer() else str(value)


def scram_value(value: str, hide: Hide = stars) -> str:
    """Return the part of a credential that is no secret: ``iterations=4096``, and its other parts where ``hide`` makes
    fingerprints.

    Raises BadValue, which names no part's content.
    """
    parts = dict(each.partition("=")[::2] for each in value.split(","))
    if set(parts) != set(_SCRAM_PARTS) or len(value.split(",")) != len(_SCRAM_PARTS):
        raise BadValue("a credential has salt, stored_key, server_key and iterations; this one has others")
    octets = dict[str, bytes]()
    try:
        for part in _SCRAM_PARTS[:-1]:
            octets[part] = base64.b64decode(parts[part], validate=True)
    except (binascii.Error, ValueError):
        raise BadValue("a part of the credential is no base64") from None
    if not re.fullmatch(r"[0-9]{1,9}", parts["iterations"]):
        raise BadValue("the credential's iterations are no number")
    hidden = {part: hide(base64.b64encode(held).decode()) for part, held in octets.items()}
    shown_parts = [f"{part}={each}" for part, each in hidden.items() if is_fingerprint(each)]
    return ",".join([*shown_parts, f"iterations={int(parts['iterations'])}"])


def acl_value(data: bytes) -> list[str]:
    """The rules of one resource, as JSON of principal, host, operation and permission; raises BadValue."""
    held = _object(data)
    if held.get("version") != 1:
        raise BadValue(f"the field version is {shown(str(held.get('version')))}, not 1")
    acls = held.get("acls", [])
    if not isinstance(acls, list):
        raise BadValue("the field acls is not a list")
    return sorted({_rule(each) for each in acls})


def _rule(entry: Any) -> str:
    names = ("principal", "host", "operation", "permissionType")
    parts = [entry[name] for name in names if is_text(entry.get(name))] if isinstance(entry, dict) else []
    if len(parts) < len(names):
        raise BadValue("an entry of the field acls lacks a principal, host, operation or permissionType")
    principal, host, operation, permission = parts
    if not _PRINCIPAL.fullmatch(principal):
        raise BadValue(f"the principal {shown(principal)} is no Type:name")
    return json_text([principal, host, upper_name(operation), upper_name(permission)])


def upper_name(name: str) -> str:
    """A name as KRaft's enumerations have it.

    >>> upper_name("DescribeConfigs")
    'DESCRIBE_CONFIGS'
    """
    return _WORD.sub("_", name).upper()


def next_producer_id(data: bytes) -> str | None:
    """The first producer id that is not given out; None before the first block is. Raises BadValue.

    A broker writes the block that it took; KRaft (broker -1) writes the block that comes next.
    """
    if not data:
        return None
    held = _object(data)
    start, end = (str(held.get(key)) for key in ("block_start", "block_end"))
    if not all(re.fullmatch(r"[0-9]{1,18}", each) for each in (start, end)):
        raise BadValue("block_start and block_end are no numbers")
    return str(int(start)) if _number(held, "broker", -1, INT32_MAX) < 0 else str(int(end) + 1)


def token_value(data: bytes) -> str:
    """A delegation token as KRaft's record has it, without its id: JSON. Its principals are URL-encoded in ZooKeeper.

    Raises BadValue.
    """
    held = _object(data)
    renewers = held.get("renewers", [])
    owner = held.get("owner")
    requester = held.get("tokenRequester", owner)
    if not isinstance(renewers, list) or not all(map(is_text, [owner, requester, *renewers])):
        raise BadValue("the fields owner, tokenRequester and renewers must be text")
    times = ("issueTimestamp", "maxTimestamp", "expiryTimestamp")
    issued, latest, expires = (_number(held, each, -1, INT64_MAX) for each in times)
    return json_text(
        {
            "owner": unquote(str(owner)),
            "requester": unquote(str(requester)),
            "renewers": [unquote(each) for each in renewers],
            "issueTimestamp": issued,
            "maxTimestamp": latest,
            "expirationTimestamp": expires,
        }
    )


def json_text(value: object) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def migration_value(data: bytes | None) -> dict[str, int | None]:
    """``/migration`` as controllers decode it (``MigrationZNode`` of 3.9.1): all four numbers, version 0.

    Raises BadValue.
    """
    held = _first_object(data)
    if _number(held, "version", -INT32_MAX - 1, INT32_MAX) != 0:
        raise BadValue(f"the field version is {shown(str(held['version']))}, not 0")
    ids = ("kraft_controller_id", "kraft_controller_epoch", "kraft_metadata_epoch")
    numbers = {key: _number(held, key, -INT32_MAX - 1, INT32_MAX) for key in ids}
    return {**numbers, "kraft_metadata_offset": _number(held, "kraft_metadata_offset", -INT64_MAX - 1, INT64_MAX)}


def controller_value(data: bytes | None) -> dict[str, int | None]:
    """``/controller`` as brokers and controllers decode it (``ControllerZNode`` of 3.9.1); any version.

    ``kraftControllerEpoch`` is None where it is missing: brokers before 3.4 write none. Raises BadValue.
    """
    held = _first_object(data)
    keys = ["brokerid", *(["kraftControllerEpoch"] if "kraftControllerEpoch" in held else [])]
    return {"kraftControllerEpoch": None} | {key: _number(held, key, -INT32_MAX - 1, INT32_MAX) for key in keys}


def _first_object(data: bytes | None) -> dict[str, Any]:
    """The object that the znode begins with: Kafka's parser reads no further."""
    text = (data or b"").decode(errors="surrogateescape").lstrip(" \t\r\n")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        end = len(text)
    return _object(text[:end].encode(errors="surrogateescape"))


def _object(data: bytes | None) -> dict[str, Any]:
    if data is None or data == b"":
        raise BadValue("the value is empty")
    held = json_in(data)
    if not isinstance(held, dict):
        raise BadValue(f"{shown(data)} is no JSON object")
    return held


def _number(held: Mapping[str, Any], key: str, least: int, most: int, default: int | None = None) -> int:
    value = held.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadValue(f"the field {key} is {shown(str(value))}")
    return value


def _replica_map(held: Any, key: str) -> dict[int, tuple[int, ...]]:
    if not isinstance(held, dict):
        raise BadValue(f"the field {key} must be a map")
    lists = list(held.values())
    if not set(map(type, lists)) <= {list} or not _are_ids(list(chain.from_iterable(lists))):
        raise BadValue(f"the field {key} is no list of broker ids")
    numbers = list(map(_partition, held))
    if None in numbers:
        raise BadValue(f"the field {key} has {shown(list(held)[numbers.index(None)])}, which is no partition number")
    return {number: tuple(ids) for number, ids in zip(numbers, lists) if number is not None}


_partition = lru_cache(maxsize=100_000)(partition_in)
"""The same few numbers are partitions of every topic."""


def _ids(held: Any, key: str) -> tuple[int, ...]:
    if not isinstance(held, list) or not _are_ids(held):
        raise BadValue(f"the field {key} is no list of broker ids")
    return tuple(held)


def _are_ids(held: list[Any]) -> bool:
    """Return whether many texts are ids, at once."""
    is_int = set(map(type, held)) <= {int}
    return is_int and min(held, default=0) >= 0 and max(held, default=0) <= INT32_MAX


def _is_uuid(value: Any) -> bool:
    """URL-safe base64 of 16 bytes without padding, as Kafka's ``Uuid`` writes it."""
    if not is_text(value) or not re.fullmatch(r"[A-Za-z0-9_-]{22}", value):
        return False
    return uuid.UUID(bytes=base64.urlsafe_b64decode(f"{value}==")).int > 1
