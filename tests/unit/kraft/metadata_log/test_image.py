"""Replay: transactions, epochs, removals; what fits nothing is reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kit.kraft.metadata_log.continuity import with_gaps
from kit.kraft.metadata_log.image import Image
from kit.kraft.metadata_log.records import read_records
from kit.kraft.metadata_log.rows import item_rows, node_rows, partition_table
from kit.kraft.metadata_log.transactions import with_transactions
from tests import metadata_records as written

BEGIN = written.value("BeginTransaction", {"name": "ZK Migration"})
END, ABORT = written.value("EndTransaction"), written.value("AbortTransaction", {"reason": "over"})
NO_OP = written.value("NoOp")


def replayed(*values: bytes) -> Image:
    image = Image()
    image.replay(with_transactions(with_gaps(read_records(written.segment(*values)), 0)))
    return image


def fates(*values: bytes) -> list[str]:
    return [fate for _, fate in with_transactions(read_records(written.segment(*values)))]


def items(image: Image, kind: str) -> dict[tuple[str, str], str | None]:
    return {(each.entity, each.item): each.value for each in item_rows(image) if each.kind == kind}


def topics(image: Image) -> list[str]:
    return sorted(each.name for each in image.topics.values())


def test_a_partition_change_raises_the_partition_epoch_and_a_named_leader_the_leader_epoch():
    image = replayed(
        written.topic("orders", 1),
        written.partition(1, 0, leaderEpoch=4, partitionEpoch=9),
        written.change(1, 0, isr=[1, 2]),
        written.change(1, 0, leader=-1),
        written.change(1, 0, leader=1),
        written.change(1, 0, leader=1),
        written.change(1, 0, replicas=[1, 2, 4], addingReplicas=[4], removingReplicas=[3], leaderRecoveryState=1),
    )
    (row,) = partition_table(image).to_pylist()
    assert row == {
        "side": "kraft",
        "topic": "orders",
        "topic_id": written.uuid(1),
        "partition": 0,
        "replicas": [1, 2, 4],
        "adding": [4],
        "removing": [3],
        "isr": [1, 2],
        "assignment_key": "1,2,4 +4 -3",
        "isr_key": "1,2",
        "leader": 1,
        "leader_epoch": 7,
        "recovery": 1,
        "partition_epoch": 14,
        "controller_epoch": None,
        "mzxid": None,
        "offset": 6,
        "error": None,
        "is_refused": None,
    }
    assert image.problems == []


def test_no_leader_is_null():
    image = replayed(written.topic("orders", 1), written.partition(1, 0), written.change(1, 0, leader=-1))
    (row,) = partition_table(image).to_pylist()
    assert (row["leader"], row["leader_epoch"]) == (None, 1)


def test_a_removed_topic_takes_its_configs_along():
    image = replayed(
        written.topic("orders", 1),
        written.partition(1, 0),
        written.config(2, "orders", "retention.ms", "1"),
        written.config(2, "other", "retention.ms", "2"),
        written.value("RemoveTopic", {"topicId": written.uuid(1)}),
        written.topic("orders", 2),
    )
    assert topics(image) == ["orders"]
    assert image.topic("orders").partitions == {}
    assert items(image, "config") == {("topics/other", "retention.ms"): "2"}
    assert items(image, "topic") == {("orders", "id"): written.uuid(2)}


def test_the_first_of_a_transaction_counts_at_its_end():
    image = replayed(BEGIN, written.topic("aborted", 1), ABORT, BEGIN, written.topic("kept", 2), END)
    assert topics(image) == ["kept"]
    assert topics(replayed(written.topic("before", 1), BEGIN, written.topic("open", 2))) == ["before"]


def test_every_record_reports_how_its_transaction_ended():
    one = written.topic("t", 1)
    assert fates(NO_OP, BEGIN, one, END, one, BEGIN, one, ABORT, BEGIN, one) == [
        "none",
        *["committed"] * 3,
        "none",
        *["aborted"] * 3,
        *["open"] * 2,
    ]
    assert fates(BEGIN, one, BEGIN, one, END) == ["open", "open", "committed", "committed", "committed"]


def test_an_end_without_a_beginning_is_reported():
    image = replayed(END, written.topic("t", 1))
    assert image.problems == ["offset 0: EndTransaction without a BeginTransaction"]
    assert topics(image) == ["t"]
    assert image.stopped is None


def test_configs_and_quotas_are_set_and_removed_key_by_key():
    image = replayed(
        written.config(4, "", "log.cleaner.threads", "2"),
        written.config(4, "1", "ssl.keystore.password", "hush"),
        written.config(2, "orders", "a", "1"),
        written.config(2, "orders", "b", "2"),
        written.config(2, "orders", "a", None),
        written.quota({"client-id": "c/1", "user": "al*ce"}, "producer_byte_rate", 1000.0),
        written.quota({"user": None}, "request_percentage", 12.5),
        written.quota({"ip": "::1"}, "connection_creation_rate", 3.0),
        written.quota({"ip": "::1"}, "connection_creation_rate", 0.0, remove=True),
    )
    assert items(image, "config") == {
        ("brokers/<default>", "log.cleaner.threads"): "2",
        ("brokers/1", "ssl.keystore.password"): None,
        ("topics/orders", "b"): "2",
    }
    assert [each.item for each in item_rows(image) if each.is_secret] == ["ssl.keystore.password"]
    assert items(image, "quota") == {
        ("users/al%2Ace/clients/c%2F1", "producer_byte_rate"): "1000",
        ("users/<default>", "request_percentage"): "12.5",
    }


def test_a_name_that_reads_default_is_not_the_default():
    image = replayed(written.quota({"user": "<default>"}, "k", 1.0), written.quota({"user": None}, "k", 2.0))
    assert items(image, "quota") == {("users/%3Cdefault%3E", "k"): "1", ("users/<default>", "k"): "2"}


def test_credentials_acls_and_tokens():
    image = replayed(
        written.credential("alice"),
        written.credential("alice", mechanism=2, iterations=8192),
        written.credential("bob"),
        written.value("RemoveUserScramCredential", {"name": "bob", "mechanism": 1}),
        written.acl(1),
        written.acl(2, patternType=4, operation=99),
        written.acl(3),
        written.value("RemoveAccessControlEntry", {"id": written.uuid(3)}),
        written.value("DelegationToken", {"tokenId": "t1", "owner": "User:a", "renewers": ["User:b"]}),
        written.value("DelegationToken", {"tokenId": "t2"}),
        written.value("RemoveDelegationToken", {"tokenId": "t2"}),
    )
    assert items(image, "scram") == {
        ("alice", "SCRAM-SHA-256"): "iterations=4096",
        ("alice", "SCRAM-SHA-512"): "iterations=8192",
    }
    assert set(items(image, "acl")) == {
        ("TOPIC:LITERAL:orders", '["User:a","*","READ","ALLOW"]'),
        ("TOPIC:PREFIXED:orders", '["User:a","*","99","ALLOW"]'),
    }
    assert items(image, "token") == {
        ("t1", "token"): '{"owner":"User:a","requester":"","renewers":["User:b"],"issueTimestamp":0,'
        '"maxTimestamp":0,"expirationTimestamp":0}'
    }


def test_features_producer_ids_and_the_migration_s_state():
    image = replayed(
        written.value("FeatureLevel", {"name": "metadata.version", "featureLevel": 21}),
        written.value("FeatureLevel", {"name": "group.version", "featureLevel": 1}),
        written.value("FeatureLevel", {"name": "group.version", "featureLevel": 0}),
        written.value("ProducerIds", {"brokerId": 1, "brokerEpoch": 5, "nextProducerId": 3000}),
        written.value("ZkMigrationState", {"zkMigrationState": 2}),
        written.value("ZkMigrationState", {"zkMigrationState": 1}),
    )
    assert items(image, "feature") == {("metadata.version", "level"): "21"}
    assert items(image, "producer_ids") == {("", "next"): "3000"}
    assert items(image, "migration") == {("", "state"): "MIGRATION"}


def changed(**fields: int) -> bytes:
    return written.value("BrokerRegistrationChange", {"brokerId": 1, "brokerEpoch": 5, **fields})


def test_registrations():
    image = replayed(
        written.broker(1, isMigratingZkBroker=True, rack="r1"),
        changed(fenced=-1),
        written.broker(2),
        written.value("UnregisterBroker", {"brokerId": 2, "brokerEpoch": 5}),
        written.value("RegisterController", {"controllerId": 3000, "zkMigrationReady": True}),
    )
    node, controller = node_rows(image)
    assert (node.node_id, node.role, node.epoch, node.rack) == (1, "broker", 5, "r1")
    assert (node.is_fenced, node.is_migrating, node.is_shutting_down) == (False, True, False)
    assert (node.listeners, node.features) == (("PLAINTEXT://h:9092",), ("metadata.version=1..25",))
    assert (controller.node_id, controller.role, controller.is_migration_ready) == (3000, "controller", True)
    assert (controller.is_fenced, controller.log_dirs) == (None, None)


@pytest.mark.parametrize(
    ("values", "is_fenced", "is_shutting_down"),
    [
        ([changed(fenced=-1)], False, False),
        ([changed(fenced=-1), changed(fenced=1)], True, False),
        ([changed(inControlledShutdown=1)], True, True),
        ([written.value("UnfenceBroker", {"id": 1, "epoch": 5})], False, False),
        ([changed(fenced=-1), written.value("FenceBroker", {"id": 1, "epoch": 5})], True, False),
    ],
)
def test_changes_of_a_registration(values, is_fenced, is_shutting_down):
    (node,) = node_rows(replayed(written.broker(1), *values))
    assert (node.is_fenced, node.is_shutting_down) == (is_fenced, is_shutting_down)


def test_elr_is_cleared_of_one_topic_or_of_all():
    base = [
        written.topic("a", 1),
        written.topic("b", 2),
        written.partition(1, 0, eligibleLeaderReplicas=[2]),
        written.partition(1, 1),
        written.partition(2, 0, lastKnownElr=[3]),
    ]

    def epochs(name: str) -> list[int]:
        found = partition_table(replayed(*base, written.value("ClearElr", {"topicName": name})))
        return found["partition_epoch"].to_pylist()

    assert (epochs("a"), epochs("")) == ([1, 0, 0], [1, 0, 1])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([written.partition(7, 0)], f"there is no topic of id {written.uuid(7)}"),
        ([written.change(7, 0)], f"there is no topic of id {written.uuid(7)}"),
        ([written.topic("t", 1), written.change(1, 3)], "topic 't' has no partition 3"),
        ([written.value("RemoveTopic", {"topicId": written.uuid(7)})], f"there is no topic of id {written.uuid(7)}"),
        ([changed(fenced=1)], "broker 1 is not registered"),
        ([written.broker(1, epoch=6), changed(fenced=1)], "broker 1 is registered with epoch 6, not 5"),
        (
            [written.value("RemoveAccessControlEntry", {"id": written.uuid(7)})],
            f"there is no ACL of id {written.uuid(7)}",
        ),
        ([written.value("ClearElr", {"topicName": "gone"})], "there is no topic 'gone'"),
        ([written.framed(29, 0, b"")], "type 29 of a record is not known"),
    ],
)
def test_a_record_that_fits_nothing_is_reported_and_the_rest_is_replayed(values: Sequence[bytes], told: str):
    image = replayed(*values, written.topic("after", 9))
    assert image.problems == [f"offset {len(values) - 1}: {told}"]
    assert "after" in topics(image)
    assert image.stopped is None


def test_the_image_stops_at_damage():
    image = replayed(written.topic("before", 1), written.framed(2, 0, b""), written.topic("after", 2))
    assert topics(image) == ["before"]
    assert (image.offset, image.stopped) == (0, "after offset 0: the value ends too early")
