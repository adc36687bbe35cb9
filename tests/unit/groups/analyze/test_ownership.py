"""Owners in both worlds and the findings about them."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.analyze import member_flavours, ownership_findings, partition_owners
from kit.tables import schema as tables
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group,
    Member,
    Ownership,
    Subscription,
    TopicPartition,
)


def member(member_id: str, source: str = ZOOKEEPER, client_id: str | None = None, enabled: bool = False) -> Member:
    in_migration_ids = enabled if source == ZOOKEEPER else None
    return Member("g", source, member_id, client_id, None, None, None, in_migration_ids, None, None)


def owned(partition: int, member_id: str | None, source: str = ZOOKEEPER, error: str | None = None) -> Ownership:
    thread = f"{member_id}-0" if source == ZOOKEEPER and member_id else None
    return Ownership("g", source, "t", partition, member_id, thread, None, None, error)


def reads(member_id: str, n_threads: int = 1, source: str = ZOOKEEPER) -> Subscription:
    return Subscription("g", source, member_id, "t", n_threads)


class Snapshot:
    def __init__(self, n_partitions: int = 1, **rows: list[Any]) -> None:
        partitions = [TopicPartition("t", each, False, 1, 1, (1,), (1,)) for each in range(n_partitions)]
        rows.setdefault("topic_partitions", partitions)
        rows.setdefault("committed_offsets", [committed(each) for each in range(n_partitions)])
        names = ("groups", "members", "ownership", "subscriptions", "topic_partitions", "committed_offsets")
        declared = {table.name: table for table in tables.ALL}
        self.frames = {name: pl.from_arrow(declared[name].from_rows(rows.get(name, []))) for name in names}

    def owners(self) -> list[dict[str, Any]]:
        names = ("ownership", "members", "subscriptions", "topic_partitions")
        return partition_owners(*(self.frames[name] for name in names)).sort("topic", "partition").to_dicts()

    def findings(self) -> list[tuple[str, int | None, str | None]]:
        found = ownership_findings(**self.frames).sort("finding", "partition")
        return list(found.select("finding", "partition", "member_id").rows())

    def sentence(self) -> str:
        return ownership_findings(**self.frames)["sentence"].item()


def committed(
    partition: int, offset: int | None = 5, error: str | None = None, store: str = ZOOKEEPER
) -> CommittedOffset:
    return CommittedOffset("g", store, "t", partition, offset, None, None, None, None, None, error)


def test_flavours_follow_migration_ids_and_client_ids() -> None:
    rows = [
        member("g_old"),
        member("g_new", enabled=True),
        member("g_new-uuid", KAFKA, "g_new"),
        member("plain-uuid", KAFKA, "plain"),
        Member("g", ZOOKEEPER, "g_hidden", None, None, None, None, None, None, None),
        Member("other", KAFKA, "g_new-uuid", "g_new", None, None, None, None, None, None),
    ]
    flavours = member_flavours(pl.from_arrow(tables.MEMBERS.from_rows(rows)))
    assert {(row["group_id"], row["member_id"]): row["flavour"] for row in flavours.to_dicts()} == {
        ("g", "g_old"): "OZKCC",
        ("g", "g_new"): "MEZKCC",
        ("g", "g_new-uuid"): "EKC",
        ("g", "plain-uuid"): "KC",
        ("g", "g_hidden"): None,
        ("other", "g_new-uuid"): "KC",
    }


def test_a_healthy_group_has_no_finding() -> None:
    snapshot = Snapshot(members=[member("g_a")], ownership=[owned(0, "g_a")], subscriptions=[reads("g_a")])
    (row,) = snapshot.owners()
    assert (row["zookeeper_owner"], row["zookeeper_thread"], row["is_registered"]) == ("g_a", "g_a-0", True)
    assert (row["kafka_owner"], row["n_kafka_owners"], row["n_owners"]) == (None, 0, 1)
    assert snapshot.findings() == []


def test_a_subscribed_partition_that_no_one_owns_is_found() -> None:
    snapshot = Snapshot(2, members=[member("g_a")], ownership=[owned(0, "g_a")], subscriptions=[reads("g_a")])
    assert snapshot.findings() == [("unowned", 1, None)]
    assert snapshot.sentence() == (
        "Group g: t-1 has no owner, although the group subscribes to it and has 1 member: its records are not"
        " read. Find the member that gave up rebalancing, and restart it."
    )


def test_a_rebalancing_group_has_to_wait() -> None:
    state = Group("g", KAFKA, "PreparingRebalance", "classic", "consumer", None, 1)
    snapshot = Snapshot(groups=[state], members=[member("m", KAFKA, "c")], subscriptions=[reads("m", source=KAFKA)])
    assert snapshot.sentence().endswith(
        "The group is in PreparingRebalance: run the command again when the group is Stable."
    )


def test_a_group_without_members_owns_nothing_and_that_is_no_finding() -> None:
    assert Snapshot(subscriptions=[reads("g_a")]).findings() == []


def test_nothing_is_claimed_where_a_read_error_hides_the_owner() -> None:
    unread = owned(0, None, error="ZooKeeper refused the read")
    snapshot = Snapshot(members=[member("g_a")], ownership=[unread], subscriptions=[reads("g_a")])
    assert snapshot.owners()[0]["n_owners"] is None
    assert snapshot.findings() == []


def test_nothing_is_claimed_about_a_group_that_could_not_be_read() -> None:
    failed = Group("g", KAFKA, None, None, None, None, 1, "timed out")
    snapshot = Snapshot(groups=[failed], members=[member("g_a")], subscriptions=[reads("g_a")])
    assert snapshot.findings() == []


def test_an_owner_that_is_not_in_ids_is_found() -> None:
    snapshot = Snapshot(members=[member("g_a")], ownership=[owned(0, "g_gone")], subscriptions=[reads("g_a")])
    assert snapshot.findings() == [("owner_not_registered", 0, "g_gone")]
    assert "g_gone, which is not registered in ids" in snapshot.sentence()


def test_zookeeper_and_a_plain_kafka_consumer_own_twice() -> None:
    snapshot = Snapshot(
        members=[member("g_a"), member("kc-1", KAFKA, "kc")],
        ownership=[owned(0, "g_a"), owned(0, "kc-1", KAFKA)],
        subscriptions=[reads("g_a")],
    )
    assert snapshot.owners()[0]["n_owners"] == 2
    assert snapshot.findings() == [("owned_twice", 0, "kc-1")]
    assert "owned twice: by g_a in ZooKeeper and kc-1 in Kafka" in snapshot.sentence()


def test_an_embedded_consumer_is_no_second_owner() -> None:
    snapshot = Snapshot(
        members=[member("g_a", enabled=True), member("g_a-uuid", KAFKA, "g_a")],
        ownership=[owned(0, "g_a"), owned(0, "g_a-uuid", KAFKA)],
        subscriptions=[reads("g_a"), reads("g_a-uuid", source=KAFKA)],
    )
    (row,) = snapshot.owners()
    assert (row["n_owners"], row["is_embedded"], row["kafka_client_id"]) == (1, True, "g_a")
    assert snapshot.findings() == []


def test_an_embedded_consumer_alone_does_not_read() -> None:
    snapshot = Snapshot(
        members=[member("g_a", enabled=True), member("g_a-uuid", KAFKA, "g_a")],
        ownership=[owned(0, "g_a-uuid", KAFKA)],
        subscriptions=[reads("g_a")],
    )
    assert snapshot.findings() == [("unowned", 0, None)]


def test_two_kafka_members_own_twice() -> None:
    snapshot = Snapshot(
        members=[member("a", KAFKA, "c"), member("b", KAFKA, "c")],
        ownership=[owned(0, "b", KAFKA), owned(0, "a", KAFKA)],
        subscriptions=[reads("a", source=KAFKA)],
        committed_offsets=[committed(0, store=KAFKA)],
    )
    (row,) = snapshot.owners()
    assert (row["kafka_owner"], row["kafka_other_owner"], row["n_kafka_owners"]) == ("a", "b", 2)
    assert snapshot.findings() == [("owned_twice", 0, "a")]
    assert "by a and b, both in Kafka" in snapshot.sentence()


def test_a_reservation_is_neither_owner_nor_unregistered() -> None:
    snapshot = Snapshot(
        members=[member("g_a", enabled=True), member("kc-1", KAFKA, "kc")],
        ownership=[owned(0, "g_a-kc"), owned(0, "kc-1", KAFKA)],
        subscriptions=[reads("g_a")],
    )
    (row,) = snapshot.owners()
    assert (row["is_reservation"], row["n_owners"]) == (True, 1)
    assert snapshot.findings() == []


def test_a_member_whose_name_ends_like_a_reservation_is_a_member() -> None:
    snapshot = Snapshot(
        members=[member("g_a"), member("g_a-kc")], ownership=[owned(0, "g_a-kc")], subscriptions=[reads("g_a")]
    )
    (row,) = snapshot.owners()
    assert (row["is_reservation"], row["is_registered"], row["n_owners"]) == (False, True, 1)


def test_owned_but_never_committed_is_found() -> None:
    rows = {"members": [member("g_a")], "ownership": [owned(0, "g_a")], "subscriptions": [reads("g_a")]}
    snapshot = Snapshot(committed_offsets=[committed(0, None)], **rows)
    assert snapshot.findings() == [("assigned_never_committed", 0, "g_a")]
    assert "t-0 belongs to g_a, but no store that the group uses holds an offset for it" in snapshot.sentence()
    assert Snapshot(committed_offsets=[committed(0, None, "broken")], **rows).findings() == []


def test_more_threads_than_partitions_is_reported_but_no_error() -> None:
    snapshot = Snapshot(
        members=[member("g_a"), member("g_b")],
        ownership=[owned(0, "g_a")],
        subscriptions=[reads("g_a", 2), reads("g_b", 1)],
    )
    assert snapshot.findings() == [("more_threads_than_partitions", None, None)]
    assert snapshot.sentence() == (
        "Group g: 3 consumer threads share the 1 partition of t: 2 get none of it."
        " This is no error: a spare thread takes over when another one stops."
    )


def test_spare_embedded_consumers_are_reported_once_by_zookeeper() -> None:
    members = [
        each for name in ("g_a", "g_b") for each in (member(name, enabled=True), member(f"{name}-u", KAFKA, name))
    ]
    subscriptions = [reads(each.member_id, source=each.source) for each in members]
    snapshot = Snapshot(members=members, ownership=[owned(0, "g_a")], subscriptions=subscriptions)
    assert "2 consumer threads share" in snapshot.sentence()


def test_spare_kafka_members_are_reported_where_a_plain_one_is_among_them() -> None:
    members = [member("a", KAFKA, "c"), member("b", KAFKA, "c")]
    subscriptions = [reads(each.member_id, source=KAFKA) for each in members]
    commits = [committed(0, store=KAFKA)]
    snapshot = Snapshot(
        members=members, ownership=[owned(0, "a", KAFKA)], subscriptions=subscriptions, committed_offsets=commits
    )
    assert "2 Kafka members share the 1 partition of t: 1 gets none of it." in snapshot.sentence()


def test_a_topic_of_which_no_partition_is_known_is_not_missed() -> None:
    placeholder = TopicPartition("t", 0, False, None, None, (), (), "being created or deleted")
    snapshot = Snapshot(members=[member("g_a")], subscriptions=[reads("g_a", 3)], topic_partitions=[placeholder])
    assert snapshot.owners() == []
    assert snapshot.findings() == []
