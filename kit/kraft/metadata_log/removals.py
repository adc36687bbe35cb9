"""Find what a metadata log removed behind an offset: the image has no trace of it, and ZooKeeper may still hold it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kit.kraft.metadata_log.files import CHECKPOINT
from kit.kraft.metadata_log.log import MetadataLog
from kit.kraft.metadata_log.replay import stream
from kit.kraft.metadata_log.rows import _CONFIG_TYPES, acl_key, entity_name, mechanism_name, quota_entity
from kit.tables.metadata import MetadataRemoval


def removals(log: MetadataLog, after: int) -> Iterator[MetadataRemoval]:
    """``tables.METADATA_REMOVALS``: each removal in a record with an offset above ``after``, in their order.

    A removed topic removes its id, its partitions and its settings: three rows without ``item``.
    """
    topics, acls = dict[str, str](), dict[str, tuple[str, str]]()
    checkpoints = (stream([file]) for file in log.sources if file.kind == CHECKPOINT)
    segments = stream([file for file in log.sources if file.kind != CHECKPOINT], log.until)
    of_checkpoints = ((record, False) for record in chain.from_iterable(checkpoints))
    for record, is_log in chain(of_checkpoints, ((record, True) for record in segments)):
        body = record.body
        if body is None or record.offset is None:
            continue
        if record.name == "Topic":
            topics[body["topicId"]] = body["name"]
        elif record.name == "AccessControlEntry":
            acls[body["id"]] = acl_key(body)
        elif is_log and record.offset > after and record.name in _REMOVALS:
            for kind, entity, item in _removed(record.name, body, topics, acls):
                yield MetadataRemoval(kind, entity, item, record.offset)


_REMOVALS = (
    "RemoveTopic",
    "RemoveAccessControlEntry",
    "RemoveUserScramCredential",
    "RemoveDelegationToken",
    "Config",
    "ClientQuota",
)


def _removed(
    name: str, body: Mapping[str, Any], topics: Mapping[str, str], acls: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str | None]]:
    """Kind, entity, item; a record that only sets a value removes nothing."""
    if name == "RemoveTopic" and body["topicId"] in topics:
        topic = topics[body["topicId"]]
        yield from (("topic", topic, None), ("partition", topic, None), ("config", f"topics/{topic}", None))
    elif name == "RemoveAccessControlEntry" and body["id"] in acls:
        yield ("acl", *acls[body["id"]])
    elif name == "RemoveUserScramCredential":
        yield "scram", body["name"], mechanism_name(body["mechanism"])
    elif name == "RemoveDelegationToken":
        yield "token", body["tokenId"], None
    elif name == "Config" and body["value"] is None:
        kind = body["resourceType"]
        entity = f"{_CONFIG_TYPES.get(kind, f'type-{kind}')}/{entity_name(body['resourceName'] or None)}"
        yield "config", entity, body["name"]
    elif name == "ClientQuota" and body["remove"]:
        owner = tuple((each["entityType"], each["entityName"]) for each in body["entity"])
        yield "quota", quota_entity(owner), body["key"]
