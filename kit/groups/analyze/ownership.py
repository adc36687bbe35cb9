"""Find the owner of each partition, by ZooKeeper's owner znodes and by the coordinator's assignment."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import existing_partitions, subscribed_partitions
from kit.groups.analyze.flavours import with_flavours
from kit.tables.groups import GROUP_PARTITION, KAFKA, ZOOKEEPER

_RESERVATION_SUFFIX = "-kc"


@nw.narwhalify
def partition_owners(ownership: FrameT, members: FrameT, subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    """Per group and partition that is subscribed or owned: its owners in both worlds.

    A MEZKCC owns by its owner znode. The assignment of the consumer embedded in it (client id = consumer id, KIP-125)
    is neither a second owner nor an owner without the znode. Nor is a reservation a second owner: a MEZKCC holds an
    owner znode ``<consumer id>-kc-<n>`` so that no old consumer takes what a plain Kafka consumer reads.

    Columns:
        group_id, topic, partition, is_subscribed: the key, and whether a member subscribes to the topic.
        zookeeper_owner, zookeeper_thread: by the owner znode.
        is_registered: the owner is in ``ids``; null without an owner.
        is_reservation: the znode is a reservation.
        is_persistent: the owner znode is not ephemeral, so no live member holds it; null without an owner.
        kafka_owner: member id; of several the first by name.
        kafka_other_owner: the last by name; null if there is one only.
        kafka_client_id, is_embedded: of ``kafka_owner``.
        n_kafka_owners: members assigned, embedded ones included.
        n_owners: consumers that read the partition; null if an owner could not be read.
        is_shared: a share group reads it, so several owners are right: each gets other records.
        error: why an owner is unknown.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> who = {"source": ["zookeeper", "kafka"], "member_id": ["g_new", "app-1"], "client_id": [None, "app"]}
    >>> members = rows_of(schema.MEMBERS, group_id="g", in_migration_ids=[True, None], **who)
    >>> held = {"source": ["zookeeper", "kafka"], "member_id": ["g_new-kc", "app-1"], "thread_id": ["g_new-kc-0", None]}
    >>> owned = rows_of(schema.OWNERSHIP, group_id="g", topic="t", partition=0, **held)
    >>> rows = partition_owners(owned, members, rows_of(schema.SUBSCRIPTIONS), rows_of(schema.TOPIC_PARTITIONS))
    >>> rows.select("zookeeper_owner", "is_reservation", "kafka_owner", "n_owners", "is_subscribed").rows()
    [('g_new-kc', True, 'app-1', 1, False)]
    """
    owned = ownership.select(*GROUP_PARTITION)
    subscribed = subscribed_partitions(subscriptions, existing_partitions(topic_partitions))
    rows = nw.concat([owned, subscribed]).unique()
    rows = rows.join(subscribed.with_columns(is_subscribed=nw.lit(True)), on=GROUP_PARTITION, how="left")
    rows = rows.join(_zookeeper_owners(ownership, members), on=GROUP_PARTITION, how="left")
    rows = rows.join(_kafka_owners(ownership, members), on=GROUP_PARTITION, how="left")
    return _counted(rows.join(_errors(ownership), on=GROUP_PARTITION, how="left"))


def _counted(rows: FrameT) -> FrameT:
    is_held = ~nw.col("zookeeper_owner").is_null() & ~nw.col("is_reservation").fill_null(False)
    n_owners = is_held.cast(nw.Int64) + nw.col("n_plain").fill_null(0)
    return rows.select(
        *GROUP_PARTITION,
        nw.col("is_subscribed").fill_null(False),
        "zookeeper_owner",
        "zookeeper_thread",
        "is_registered",
        nw.col("is_reservation").fill_null(False),
        "is_persistent",
        "kafka_owner",
        nw.when(nw.col("n_kafka_owners") > 1).then(nw.col("kafka_other_owner")).alias("kafka_other_owner"),
        "kafka_client_id",
        "is_embedded",
        nw.col("n_kafka_owners").fill_null(0).cast(nw.Int64),
        nw.when(nw.col("error").is_null()).then(n_owners).cast(nw.Int64).alias("n_owners"),
        (nw.col("n_shared") > 0).fill_null(False).alias("is_shared"),
        "error",
    )


def _zookeeper_owners(ownership: FrameT, members: FrameT) -> FrameT:
    znodes = ownership.filter((nw.col("source") == ZOOKEEPER) & ~nw.col("member_id").is_null())
    owners = znodes.group_by(*GROUP_PARTITION).agg(
        nw.col("member_id").min().alias("zookeeper_owner"),
        nw.col("thread_id").min().alias("zookeeper_thread"),
        nw.col("session_id").max(),
    )
    owners = owners.with_columns(
        reserved_by=nw.col("zookeeper_owner").str.replace_all(f"{_RESERVATION_SUFFIX}$", "", literal=False)
    )
    for name in ("zookeeper_owner", "reserved_by"):
        owners = owners.join(_consumer_ids(members, name), on=["group_id", name], how="left")
    is_reservation = nw.col("zookeeper_owner_known").is_null() & ~nw.col("reserved_by_known").is_null()
    return owners.select(
        *GROUP_PARTITION,
        "zookeeper_owner",
        "zookeeper_thread",
        is_registered=~nw.col("zookeeper_owner_known").is_null(),
        is_reservation=is_reservation,
        is_persistent=nw.col("session_id") == 0,
    )


def _consumer_ids(members: FrameT, name: str) -> FrameT:
    registered = members.filter(nw.col("source") == ZOOKEEPER)
    return registered.select("group_id", nw.col("member_id").alias(name), nw.lit(True).alias(f"{name}_known")).unique()


def _kafka_owners(ownership: FrameT, members: FrameT) -> FrameT:
    assigned = ownership.filter((nw.col("source") == KAFKA) & ~nw.col("member_id").is_null())
    is_shared = nw.col("is_shared").fill_null(False).cast(nw.Int64)
    assigned = assigned.select(*GROUP_PARTITION, "member_id", n_shared=is_shared).unique()
    kinds = (
        with_flavours(members)
        .filter(nw.col("source") == KAFKA)
        .select("group_id", "member_id", kafka_client_id=nw.col("client_id"), is_embedded=nw.col("flavour") == "EKC")
    )
    flagged = assigned.join(kinds, on=["group_id", "member_id"], how="left")
    counts = flagged.with_columns(
        n_plain=(~nw.col("is_embedded").fill_null(False)).cast(nw.Int64),
    ).group_by(*GROUP_PARTITION)
    owners = counts.agg(
        nw.col("member_id").min().alias("kafka_owner"),
        nw.col("member_id").max().alias("kafka_other_owner"),
        nw.len().alias("n_kafka_owners"),
        nw.col("n_plain", "n_shared").sum(),
    )
    named = kinds.select("group_id", "kafka_client_id", "is_embedded", kafka_owner=nw.col("member_id"))
    return owners.join(named, on=["group_id", "kafka_owner"], how="left")


def _errors(ownership: FrameT) -> FrameT:
    failed = ownership.filter(~nw.col("error").is_null())
    return failed.group_by(*GROUP_PARTITION).agg(nw.col("error").min())
