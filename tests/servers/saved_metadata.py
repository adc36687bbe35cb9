"""A saved cluster that was never there, as big as wished: topics, partitions, settings, quotas, ACLs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.kraft.metadata_file import SavedMetadata
from kit.tables import schema as tables
from kit.tables.kraft import MetadataControl
from kit.tables.preflight import PreflightZnodes
from kit.tables.znodes import Znode

CLUSTER_ID = "9v3mBqqKT6W1yJbTnPzPCw"


def big_metadata(n_topics: int, n_partitions: int, n_brokers: int = 6) -> SavedMetadata:
    """``n_partitions`` per topic, three replicas each; every tenth topic with a setting and an ACL."""
    at = datetime.now(UTC)
    brokers = tuple(range(1, n_brokers + 1))
    control = MetadataControl(
        at, CLUSTER_ID, 1, False, None, 1, False, None, None, None, None, brokers, 1, (), 0, 0, ()
    )
    facts = PreflightFacts(
        facts=Facts(at, control, []),
        partitions=pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        items=pl.DataFrame(tables.METADATA_ITEMS.from_rows(())),
        znodes=PreflightZnodes(at, 0, 0, None, (), (), ()),
    )
    rows = [Znode(path, data, 0, 1, 1, None, at, None) for path, data in _znodes(n_topics, n_partitions, n_brokers)]
    return SavedMetadata("big", CLUSTER_ID, "/kafka", at, "test", "0", tables.ZNODES.from_rows(rows), facts)


def _znodes(n_topics: int, n_partitions: int, n_brokers: int) -> Iterator[tuple[str, bytes]]:
    yield from ((path, b"") for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/cluster", "/config"))
    yield from ((path, b"") for path in ("/config/topics", "/kafka-acl", "/kafka-acl/Topic"))
    yield "/cluster/id", _json({"version": "1", "id": CLUSTER_ID})
    yield "/controller_epoch", b"1"
    for topic in range(n_topics):
        name = f"topic-{topic:06}"
        replicas = {str(n): [(topic + n + at) % n_brokers + 1 for at in range(3)] for n in range(n_partitions)}
        topic_id = base64.urlsafe_b64encode((2**64 + topic).to_bytes(16)).decode().rstrip("=")
        held = {"version": 3, "topic_id": topic_id, "partitions": replicas, "adding_replicas": {}}
        yield f"/brokers/topics/{name}", _json(held | {"removing_replicas": {}})
        yield f"/brokers/topics/{name}/partitions", b""
        for number, ids in replicas.items():
            state = {"version": 1, "leader": ids[0], "leader_epoch": 0, "controller_epoch": 1, "isr": ids}
            yield f"/brokers/topics/{name}/partitions/{number}", b""
            yield f"/brokers/topics/{name}/partitions/{number}/state", _json(state)
        if topic % 10 == 0:
            yield f"/config/topics/{name}", _json({"version": 1, "config": {"retention.ms": "86400000"}})
            rule = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}
            yield f"/kafka-acl/Topic/{name}", _json({"version": 1, "acls": [rule]})


def _json(held: object) -> bytes:
    return json.dumps(held, separators=(",", ":")).encode()
