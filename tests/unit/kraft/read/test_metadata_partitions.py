"""Partitions by columns: each row has what its own two znodes say, whatever other rows share with it."""

from __future__ import annotations

import json

import pytest

from kit.clients import multiread
from kit.kraft.read import metadata_partitions, metadata_values
from kit.kraft.read.metadata_reader import Reader
from tests.limits import lower
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

STATE = {"controller_epoch": 3, "leader": 2, "version": 1, "leader_epoch": 7, "isr": [2, 1]}
ID = "AAAAAAAAAAAAAAAAAAAACg"


def topic(**fields: object) -> bytes:
    return json.dumps({"version": 3, "partitions": {"0": [1, 2], "10": [1, 2], "2": [2, 1]}, **fields}).encode()


def state(**fields: object) -> bytes:
    return json.dumps(STATE | fields).encode()


@pytest.fixture
def zookeeper(monkeypatch) -> ZookeeperInMemory:
    """It answers for two znodes with each request."""
    lower(monkeypatch, multiread, ITEMS_PER_REQUEST=2)
    return ZookeeperInMemory()


def test_rows_that_share_and_rows_that_do_not(zookeeper):
    zookeeper.put("/brokers/topics/b", topic(adding_replicas={"10": [2]}, topic_id=ID), mzxid=5)
    zookeeper.put("/brokers/topics/a", topic(), mzxid=50)
    for path, mzxid in (("a/partitions/0", 60), ("a/partitions/10", 40), ("b/partitions/2", 9)):
        zookeeper.put(f"/brokers/topics/{path}/state", state(), mzxid=mzxid)
    zookeeper.put("/brokers/topics/b/partitions/0/state", state(leader=-1, controller_epoch=9, isr=[]), mzxid=8)
    reader = Reader(zookeeper)
    partitions, items, highest = metadata_partitions.fetch_topics(reader)
    columns = ["topic", "partition", "replicas", "assignment_key", "isr", "isr_key", "leader", "leader_epoch", "mzxid"]
    assert list(zip(*(partitions[name].to_pylist() for name in columns))) == [
        ("a", 0, [1, 2], "1,2", [2, 1], "1,2", 2, 7, 60),
        ("a", 2, [2, 1], "2,1", [], "", None, None, 50),
        ("a", 10, [1, 2], "1,2", [2, 1], "1,2", 2, 7, 50),
        ("b", 0, [1, 2], "1,2", [], "", None, 7, 8),
        ("b", 2, [2, 1], "2,1", [2, 1], "1,2", 2, 7, 9),
        ("b", 10, [1, 2], "1,2 +2", [], "", None, None, 5),
    ]
    assert partitions["controller_epoch"].to_pylist() == [3, None, 3, 9, 3, None]
    assert partitions["topic_id"].to_pylist() == [None] * 3 + [ID] * 3
    assert partitions["error"].null_count == len(partitions)
    assert [(each.entity, each.value) for each in items] == [("a", None), ("b", ID)]
    assert (highest, reader.errors) == (9, [])


def test_an_unreadable_value_is_an_error_of_its_own_row_and_changes_nothing_else(zookeeper):
    zookeeper.put("/brokers/topics/a", topic(), mzxid=50)
    zookeeper.put("/brokers/topics/a/partitions/0/state", b"[]", mzxid=70)
    zookeeper.put("/brokers/topics/a/partitions/2/state").is_hidden = True
    zookeeper.put("/brokers/topics/a/partitions/10/state", b"[]", mzxid=80)
    partitions, _, highest = metadata_partitions.fetch_topics(Reader(zookeeper))
    path = "/brokers/topics/a/partitions"
    assert partitions["error"].to_pylist() == [
        f"{path}/0/state: b'[]' is no JSON object",
        f"{path}/2/state: it can't be read: NoAuthError (the login needs the right READ there)",
        f"{path}/10/state: b'[]' is no JSON object",
    ]
    assert partitions["mzxid"].to_pylist() == [50, 50, 50]
    assert partitions["isr"].to_pylist() == [[], [], []]
    assert highest is None


def test_no_topic_at_all(zookeeper):
    partitions, items, highest = metadata_partitions.fetch_topics(Reader(zookeeper))
    assert (len(partitions), items, highest) == (0, [], None)


def test_a_map_that_is_wrong_in_one_place_is_refused():
    for wrong in ({"0": [1], "1": 2}, {"0": [1], "1": [True]}, {"0": [1], "1": [-1]}, {"0": [1], "1": [2**31]}):
        with pytest.raises(metadata_values.BadValue, match="no list of broker ids"):
            metadata_values.topic_value(json.dumps({"version": 1, "partitions": wrong}).encode())
