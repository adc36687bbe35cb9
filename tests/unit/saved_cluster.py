"""A cluster as ``offramp kraft save`` saves it: a few of everything, and some that could not be read."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from kit.kraft.analyze.node_settings import NodeSettings
from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.kraft.metadata_file import SavedMetadata
from kit.tables import schema as tables
from kit.tables.kraft import MetadataControl, NodeFact
from kit.tables.metadata import MetadataItem
from kit.tables.preflight import BrokerLogDir, PreflightZnodes
from kit.tables.znodes import Znode

AT = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)


def saved_cluster(n_znodes: int = 3, name: str = "production") -> SavedMetadata:
    control = MetadataControl(
        AT, "cid", 1, False, None, 5, False, None, None, None, None, (1, 2), None, ("gone",), 0, 0, ("a problem",)
    )
    node = NodeFact("a:1", "broker", 1, "zookeeper", False, None, None, None, None, None, (), (), "a:1", AT, None)
    items = [
        MetadataItem("zookeeper", "acl", "TOPIC:LITERAL:x", "", None, False, 7, None, "/kafka-acl/Topic/x: bad"),
        MetadataItem("zookeeper", "topic", name, "id", None, False, 7, None, None),
    ]
    facts = PreflightFacts(
        facts=Facts(AT, control, [node], [], log_error="no controller answered"),
        partitions=pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        items=pl.DataFrame(tables.METADATA_ITEMS.from_rows(items)),
        znodes=PreflightZnodes(AT, 0, 2, 7.5, ("/kafka-acl/Group/a/b",), (), ()),
        settings=[NodeSettings(1, "broker", "DescribeConfigs of broker 1", {"log.dirs": "/a,/b"}, {}, {"x": ""})],
        log_dirs=[BrokerLogDir(1, "/a", None), BrokerLogDir(1, "/b", "KAFKA_STORAGE_ERROR")],
        unread={"node 2": "it did not answer"},
    )
    znodes = [Znode(f"/brokers/topics/{name}{n}", b"{}", 0, 1, 1, None, AT, None) for n in range(n_znodes)]
    return SavedMetadata(name, "cid", "/kafka", AT, "ann", "0.1", tables.ZNODES.from_rows(znodes), facts)
