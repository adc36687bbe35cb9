"""Both stores side by side: each verdict, rule and cause, worked manually."""

from __future__ import annotations

import polars as pl
import pytest

from kit.kraft.analyze.diff import diff_summary, metadata_diff
from kit.tables import schema as tables
from kit.tables.metadata import MetadataItem, MetadataPartition, MetadataRemoval

CHECKPOINT = 100


def item(side: str, kind: str, entity: str, name: str, value=None, offset=50, is_secret=False, error=None):
    at = (7, None) if side == "zookeeper" else (None, offset)
    return MetadataItem(side, kind, entity, name, value, is_secret, *at, error)


def partition(side: str, topic="t", number=0, replicas="1,2", isr="1,2", leader=1, epoch=3, offset=50, error=None):
    at = (7, None) if side == "zookeeper" else (None, offset)
    return MetadataPartition(
        side, topic, "id", number, (1, 2), (), (), (1, 2), replicas, isr, leader, epoch, 0, None, 1, *at, error
    )


def compared(zookeeper=(), kraft=(), removed=(), pending=(), is_syncing=False, sync_cause=None) -> dict[tuple, tuple]:
    """Key → verdict, rule, cause."""
    rows = metadata_diff(
        *(frame(each) for side in (zookeeper, kraft) for each in split(side)),
        pl.DataFrame(tables.METADATA_REMOVALS.from_rows(removed)),
        pl.DataFrame({"topic": list(pending)}, schema={"topic": pl.String}),
        CHECKPOINT,
        is_syncing,
        sync_cause,
    )
    assert rows.columns == tables.METADATA_DIFFERENCES.schema.names
    return {tuple(row[:3]): tuple(row[3:]) for row in rows.select(
        "kind", "entity", "item", "verdict", "rule", "cause").rows()}  # fmt: skip


def split(rows):
    return (
        (tables.METADATA_PARTITIONS, [each for each in rows if isinstance(each, MetadataPartition)]),
        (tables.METADATA_ITEMS, [each for each in rows if isinstance(each, MetadataItem)]),
    )


def frame(table_and_rows) -> pl.DataFrame:
    table, rows = table_and_rows
    return pl.DataFrame(table.from_rows(rows))


QUOTA = ("quota", "users/a", "producer_byte_rate")


@pytest.mark.parametrize(
    ("zookeeper", "kraft", "expected"),
    [
        ("1", "1", ("equal", None, None)),
        ("1", "2", ("diverged", None, None)),
        ("1", None, ("diverged", None, "last_quota")),
        (None, "1", ("diverged", None, None)),
    ],
)
def test_a_value_on_one_side_or_both(zookeeper, kraft, expected):
    sides = [item("zookeeper", *QUOTA, zookeeper)] if zookeeper else [], [item("kraft", *QUOTA, kraft)] if kraft else []
    assert compared(*sides) == {QUOTA: expected}


@pytest.mark.parametrize("removed_at", [CHECKPOINT, CHECKPOINT + 1])
def test_a_removal_counts_only_behind_the_checkpoint(removed_at):
    found = compared([item("zookeeper", *QUOTA, "1")], removed=[MetadataRemoval(*QUOTA, removed_at)])
    assert found[QUOTA][0] == ("in_flight" if removed_at > CHECKPOINT else "diverged")


def test_a_change_behind_the_checkpoint_is_in_flight():
    found = compared([item("zookeeper", *QUOTA, "1")], [item("kraft", *QUOTA, "2", offset=CHECKPOINT + 1)])
    assert found[QUOTA] == ("in_flight", None, None)


def test_a_removed_topic_takes_its_partitions_along():
    removed = [MetadataRemoval(kind, "t", None, 101) for kind in ("topic", "partition")]
    found = compared([item("zookeeper", "topic", "t", "id", "x"), partition("zookeeper")], removed=removed)
    assert {verdict for verdict, _, _ in found.values()} == {"in_flight"}


def test_while_another_leader_writes_everything_is_in_flight():
    found = compared([item("zookeeper", *QUOTA, "1")], [item("kraft", *QUOTA, "2")], is_syncing=True)
    assert found[QUOTA] == ("in_flight", None, None)


def test_a_topic_that_zookeeper_has_under_another_id_is_named_while_it_is_in_flight():
    new, behind = item("kraft", "topic", "t", "id", "new", offset=CHECKPOINT + 1), CHECKPOINT + 1
    zookeeper = [item("zookeeper", "topic", "t", "id", "old"), partition("zookeeper"), item("zookeeper", *QUOTA, "1")]
    kraft = [new, partition("kraft", epoch=4, offset=behind), partition("kraft", number=1, offset=behind)]
    found = compared(zookeeper, [*kraft, item("kraft", *QUOTA, "2", offset=behind)])
    keys = [("topic", "t", "id"), ("partition", "t", "0"), ("partition", "t", "1")]
    assert {found[key] for key in keys} == {("in_flight", None, "made_again")}
    assert found[QUOTA] == ("in_flight", None, None)
    same_id = compared([item("zookeeper", "topic", "t", "id", "new"), *zookeeper[1:]], kraft)
    assert {same_id[key][2] for key in keys} == {None}
    earlier = compared(zookeeper, [item("kraft", "topic", "t", "id", "new")])
    assert earlier["topic", "t", "id"] == ("diverged", None, None)


def test_a_wait_for_a_sync_that_cannot_end_has_a_reason():
    sides = [item("zookeeper", *QUOTA, "1")], [item("kraft", *QUOTA, "2")]
    assert compared(*sides, is_syncing=True, sync_cause="client_metrics")[QUOTA] == (
        "in_flight",
        None,
        "client_metrics",
    )


@pytest.mark.parametrize(
    "changed", [{"replicas": "2,1"}, {"isr": "1"}, {"leader": None}, {"epoch": 4}, {"epoch": None}]
)
def test_a_partition_differs_by_any_part(changed):
    assert compared([partition("zookeeper")], [partition("kraft")])["partition", "t", "0"][0] == "equal"
    found = compared([partition("zookeeper", **changed)], [partition("kraft")])
    assert found["partition", "t", "0"][0] == "diverged"


@pytest.mark.parametrize("offset", [50, CHECKPOINT + 1])
def test_a_partition_without_a_state_znode_is_named(offset):
    """In flight or not: a controller that is elected now fails on it for ever."""
    stateless = partition("zookeeper", isr="", leader=None, epoch=None)
    found = compared([stateless], [partition("kraft", offset=offset)], is_syncing=True, sync_cause="client_metrics")
    assert found["partition", "t", "0"][2] == "no_state"
    leaderless = partition("zookeeper", leader=None)
    found = compared([leaderless], [partition("kraft", offset=offset)])
    assert found["partition", "t", "0"][2] is None


def test_values_that_zookeeper_never_has_are_expected():
    rows = [
        item("kraft", "feature", "metadata.version", "level", "21"),
        item("kraft", "config", "client-metrics/x", "interval.ms", "1"),
    ]
    assert set(compared(kraft=rows).values()) == {
        ("expected", "kraft_only", None),
        ("expected", "kraft_only", "client_metrics"),
    }


def test_a_topic_that_shall_be_deleted_is_expected():
    rows = [
        item("zookeeper", "topic", "t", "id", "x"),
        partition("zookeeper"),
        item("zookeeper", "config", "topics/t", "a", "1"),
    ]
    assert {each[:2] for each in compared(rows, pending=["t"]).values()} == {("expected", "pending_deletion")}


def test_settings_of_no_topic_were_not_copied():
    found = compared([item("zookeeper", "config", "topics/gone", "retention.ms", "1")])
    assert found["config", "topics/gone", "retention.ms"] == ("diverged", None, "not_copied")


def test_secrets_are_compared_by_what_is_known_of_them():
    config, scram = ("config", "brokers/1", "ssl.key.password"), ("scram", "alice", "SCRAM-SHA-512")
    sides = [
        [item(side, *config, None, is_secret=True), item(side, *scram, "iterations=4096", is_secret=True)]
        for side in ("zookeeper", "kraft")
    ]
    found = compared(*sides)
    assert found[config] == ("equal", "presence_only", None)
    assert found[scram] == ("equal", "iterations_only", None)


@pytest.mark.parametrize(
    ("zookeeper", "kraft", "expected"),
    [
        ("hmac:1", "hmac:1", ("equal", None, None)),
        ("hmac:1", "hmac:2", ("diverged", None, None)),
        (None, "hmac:1", ("equal", "presence_only", None)),
    ],
)
def test_a_password_is_compared_by_its_fingerprint_unless_zookeeper_has_it_enciphered(zookeeper, kraft, expected):
    key = ("config", "brokers/1", "ssl.key.password")
    found = compared([item("zookeeper", *key, zookeeper, is_secret=True)], [item("kraft", *key, kraft, is_secret=True)])
    assert found[key] == expected


@pytest.mark.parametrize(("kraft", "expected"), [("a", ("equal", None, None)), ("b", ("diverged", None, None))])
def test_a_credential_is_compared_by_its_fingerprints(kraft, expected):
    key, told = ("scram", "alice", "SCRAM-SHA-512"), "salt=hmac:{},stored_key=hmac:s,server_key=hmac:k,iterations=4096"
    sides = [
        item("zookeeper", *key, told.format("a"), is_secret=True),
        item("kraft", *key, told.format(kraft), is_secret=True),
    ]
    assert compared(sides[:1], sides[1:])[key] == expected


def test_an_unreadable_value_is_unknown_with_all_that_belongs_to_it():
    bad = item("zookeeper", "acl", "TOPIC:LITERAL:t", "", error="/kafka-acl/Topic/t: it is empty")
    found = compared(
        [bad], [item("kraft", "acl", "TOPIC:LITERAL:t", "rule"), item("kraft", "acl", "TOPIC:LITERAL:u", "rule")]
    )
    assert found["acl", "TOPIC:LITERAL:t", "rule"][0] == "unknown"
    assert found["acl", "TOPIC:LITERAL:u", "rule"][0] == "diverged"
    of_kind = item("zookeeper", "acl", "", "", error="/kafka-acl can't be listed: NoAuthError")
    found = compared([of_kind], [item("kraft", "acl", "TOPIC:LITERAL:u", "rule")])
    assert found["acl", "TOPIC:LITERAL:u", "rule"][0] == "unknown"


def test_a_partition_of_an_unreadable_topic_is_unknown():
    rows = [item("zookeeper", kind, "t", "", error="/brokers/topics/t: it is empty") for kind in ("topic", "partition")]
    assert compared(rows, [partition("kraft")])["partition", "t", "0"][0] == "unknown"


def test_the_summary_counts_every_value():
    rows = pl.DataFrame({"kind": ["a", "a", "b"], "verdict": ["equal", "diverged", "unknown"]})
    found = diff_summary(rows).sort("kind").select("kind", "n_values", "n_equal", "n_diverged", "n_unknown").rows()
    assert found == [("a", 2, 1, 1, 0), ("b", 1, 0, 0, 1)]
