"""The cause of a difference: KRaft's earlier value decides between a write that failed and a manual edit."""

from __future__ import annotations

import polars as pl
import pytest

from kit.kraft.analyze.diff_causes import with_causes
from kit.tables import schema as tables
from kit.tables.kraft import MetadataDifference
from kit.tables.metadata import MetadataItem, MetadataPartition

COPIED = 40
KEY = ("quota", "users/a", "producer_byte_rate")


def earlier(value: str, offset: int = 50) -> MetadataItem:
    return MetadataItem("kraft", *KEY, value, False, None, offset, None)


def cause(zookeeper, kraft, offset=60, was=None, copied_until=COPIED, held=("1", "2"), verdict="diverged"):
    row = MetadataDifference(*KEY, zookeeper, kraft, verdict, None, was, 7, offset, None)
    found = with_causes(
        pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows([row])),
        pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows([earlier(each) for each in held] * 2)),
        copied_until,
    )
    assert found.columns == tables.METADATA_DIFFERENCES.schema.names
    return found["cause"].to_list()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"zookeeper": "1", "kraft": "2"}, "failed_write"),
        ({"zookeeper": "7", "kraft": "2"}, "hand_edit"),
        ({"zookeeper": "1", "kraft": "2", "offset": COPIED}, "hand_edit"),
        ({"zookeeper": None, "kraft": "2", "offset": COPIED}, "hand_edit"),
        ({"zookeeper": None, "kraft": "2"}, None),
        ({"zookeeper": "1", "kraft": None, "offset": None}, "failed_write"),
        ({"zookeeper": "1", "kraft": None, "offset": None, "was": "last_quota"}, "last_quota"),
        ({"zookeeper": "7", "kraft": None, "offset": None, "was": "last_quota"}, "hand_edit"),
        ({"zookeeper": "7", "kraft": None, "offset": None, "was": "not_copied"}, "not_copied"),
        ({"zookeeper": "1", "kraft": None, "offset": None, "was": "not_copied"}, "deleted_topic"),
        ({"zookeeper": "7", "kraft": "2", "copied_until": None}, None),
        ({"zookeeper": "1", "kraft": "2", "copied_until": None}, "failed_write"),
        ({"zookeeper": "7", "kraft": "2", "was": "no_state"}, "no_state"),
        ({"zookeeper": "1", "kraft": "2", "verdict": "in_flight"}, None),
    ],
)
def test_the_cause(given, expected):
    assert cause(**given) == [expected]


@pytest.mark.parametrize(("held_at", "expected"), [(50, "deleted_topic"), (60, "failed_write")])
def test_a_setting_of_the_topic_that_had_the_name_before(held_at, expected):
    key = ("config", "topics/t", "retention.ms")
    rows = [
        MetadataDifference("topic", "t", "id", "x", "x", "equal", None, None, 7, 55, None),
        MetadataDifference(*key, "7", None, "diverged", None, None, 7, None, None),
    ]
    found = with_causes(
        pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows(rows)),
        pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows([MetadataItem("kraft", *key, "7", False, None, held_at, None)])),
        COPIED,
    )
    assert found["cause"].to_list() == [None, expected]


@pytest.mark.parametrize(
    ("ids", "zookeeper", "expected"),
    [(("old", "new"), None, "made_again"), (("new", "new"), None, None), (("old", "new"), "old", "failed_write")],
)
def test_a_topic_whose_name_another_one_had(ids, zookeeper, expected):
    key = ("topic", "t", "id")
    difference = MetadataDifference(*key, zookeeper, "new", "diverged", None, None, 7, 60, None)
    items = [MetadataItem("kraft", *key, each, False, None, 50 + at, None) for at, each in enumerate(ids)]
    found = with_causes(
        pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows([difference])),
        pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows(items)),
        COPIED,
    )
    assert found["cause"].to_list() == [expected]


@pytest.mark.parametrize(
    ("zookeeper", "kraft", "removed", "expected"),
    [
        (None, "iterations=4096", {"SCRAM-SHA-256"}, "deleted_user"),
        (None, "iterations=4096", {"SCRAM-SHA-512"}, "hand_edit"),
        (None, "iterations=4096", set(), "hand_edit"),
        ("iterations=9", "iterations=4096", {"SCRAM-SHA-256"}, "hand_edit"),
        ("iterations=9", None, {"SCRAM-SHA-256"}, "hand_edit"),
    ],
)
def test_a_credential_that_a_restarted_controller_forgot(zookeeper, kraft, removed, expected):
    key = ("scram", "bob", "SCRAM-SHA-256")
    row = MetadataDifference(*key, zookeeper, kraft, "diverged", None, None, 7, COPIED, None)
    found = with_causes(
        pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows([row])),
        pl.DataFrame(tables.METADATA_PARTITIONS.from_rows(())),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows(())),
        COPIED,
        removed,
    )
    assert found["cause"].to_list() == [expected]


def test_a_partition_is_compared_as_a_whole():
    def state(leader: int) -> MetadataPartition:
        return MetadataPartition(
            "kraft", "t", "id", 0, (1, 2), (), (), (1, 2), "1,2", "1,2", leader, 3, 0, 3, None, None, 50, None
        )

    told = "1,2 isr 1,2 leader {} epoch 3 recovery 0 id id"
    rows = [
        MetadataDifference(
            "partition", "t", "0", told.format(leader), told.format(2), "diverged", None, None, 7, 60, None
        )
        for leader in (1, 3)
    ]
    found = with_causes(
        pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows(rows)),
        pl.DataFrame(tables.METADATA_PARTITIONS.from_rows([state(1), state(2)])),
        pl.DataFrame(tables.METADATA_ITEMS.from_rows(())),
        COPIED,
    )
    assert found["cause"].to_list() == ["failed_write", "hand_edit"]
