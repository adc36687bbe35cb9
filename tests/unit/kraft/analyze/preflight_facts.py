"""The facts that the preflight reads of a cluster: ``SOUND`` meets every check, and a test changes one fact of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from kit.kraft.analyze.node_settings import NodeSettings
from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.tables import schema as tables
from kit.tables.kraft import MetadataControl, NodeFact
from kit.tables.metadata import MetadataItem, MetadataPartition
from kit.tables.preflight import BrokerLogDir, NodeMeta, PreflightZnodes

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)
CONTROL = MetadataControl(
    read_at=AT,
    cluster_id="abc",
    controller_id=1,
    is_controller_persistent=False,
    kraft_controller_epoch=None,
    controller_epoch=20,
    has_migration=True,
    migrating_controller_id=None,
    checkpoint=None,
    checkpoint_epoch=None,
    checkpoint_at=AT,
    brokers=(1, 2),
    max_state_epoch=20,
    pending_deletions=(),
    n_reassignments=0,
    n_notifications=0,
    problems=(),
)
ZNODES = PreflightZnodes(AT, 0, 0, None, (), (), ())
PARTITION = MetadataPartition(
    side="zookeeper",
    topic="orders",
    topic_id="id-of-orders",
    partition=0,
    replicas=(1, 2),
    adding=(),
    removing=(),
    isr=(2, 1),
    assignment_key="1,2",
    isr_key="1,2",
    leader=1,
    leader_epoch=0,
    recovery=0,
    partition_epoch=None,
    controller_epoch=1,
    mzxid=1,
    offset=None,
    error=None,
)
BROKER = {
    "broker.id": "1",
    "inter.broker.protocol.version": "3.9",
    "log.dirs": "/data",
    "zookeeper.connect": "zk:2181/kafka",
    "num.partitions": "3",
}
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "3000",
    "controller.quorum.voters": "3000@host:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "zookeeper.connect": "zk:2181/kafka",
    "zookeeper.metadata.migration.enable": "true",
    "num.partitions": "3",
}


def node(role: str, node_id: int, **changed: Any) -> NodeFact:
    row = NodeFact(
        address=f"host:{node_id}",
        role=role,
        node_id=node_id,
        mode="zookeeper" if role == "broker" else "kraft",
        has_flag=role == "controller",
        metadata_version=21 if role == "controller" else None,
        is_leader=role == "controller",
        leader_id=None,
        leader_epoch=1 if role == "controller" else None,
        high_watermark=9 if role == "controller" else None,
        voters=(3000,) if role == "controller" else (),
        observers=(1, 2) if role == "controller" else (),
        source="ApiVersions",
        read_at=AT,
        error=None,
    )
    return replace(row, **changed)


def item(kind: str, entity: str, key: str = "", value: str | None = None, error: str | None = None) -> MetadataItem:
    return MetadataItem("zookeeper", kind, entity, key, value, kind == "scram", 1, None, error)


ITEMS = (
    item("topic", "orders", "id", "id-of-orders"),
    item("config", "topics/orders", "retention.ms", "-1"),
    item("config", "brokers/1", "log.cleaner.threads", "2"),
    item("quota", "users/a", "producer_byte_rate", "1000"),
    item("scram", "a", "SCRAM-SHA-256", "iterations=4096"),
    item("acl", "TOPIC:LITERAL:orders", '["User:a","*","READ","ALLOW"]'),
)


def partitions(*rows: MetadataPartition) -> pl.DataFrame:
    return pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(rows))


def items(*rows: MetadataItem) -> pl.DataFrame:
    return pl.DataFrame(tables.METADATA_ITEMS.from_rows(rows))


def settings(node_id: int, role: str = "broker", secrets: dict[str, str] | None = None, **changed: str | None):
    given = (BROKER if role == "broker" else CONTROLLER) | {key.replace("__", "."): changed[key] for key in changed}
    return NodeSettings(
        node_id, role, "file", {name: value for name, value in given.items() if value is not None}, {}, secrets or {}
    )


NODES = (node("broker", 1), node("broker", 2), node("controller", 3000))
SETTINGS = (settings(1), settings(2, broker__id="2"), settings(3000, "controller"))
METAS = (NodeMeta("1", 1, 0, "abc"), NodeMeta("2", 2, 0, "abc"), NodeMeta("3000", 3000, 1, "abc"))
LOG_DIRS = (BrokerLogDir(1, "/data", None), BrokerLogDir(2, "/data", None))
NO_DIFFERENCE = pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows([]))
SOUND = PreflightFacts(
    facts=Facts(AT, CONTROL, NODES, zk_state="PRE_MIGRATION", log_read_at=AT),
    partitions=partitions(PARTITION),
    items=items(*ITEMS),
    znodes=ZNODES,
    kraft_items=items(),
    differences=NO_DIFFERENCE,
    settings=SETTINGS,
    log_dirs=LOG_DIRS,
    metas=METAS,
)
