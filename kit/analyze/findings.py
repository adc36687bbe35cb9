"""What is wrong with a group's ownership, in sentences that say what was found and what to do."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.coverage import GROUP_PARTITION, unreadable_groups
from kit.analyze.flavours import member_flavours
from kit.analyze.ownership import partition_owners
from kit.model import KAFKA, ZOOKEEPER

_COLUMNS = ["group_id", "topic", "partition", "member_id", "finding", "sentence"]


@nw.narwhalify
def ownership_findings(
    groups: FrameT,
    members: FrameT,
    ownership: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    committed_offsets: FrameT,
) -> FrameT:
    """Findings about who owns what.

    Columns: group_id, topic, partition (null: about a whole topic), member_id (null: about no single member),
    finding, sentence. ``unowned``: subscribed, and no one owns it though the group has members;
    ``owner_not_registered``: the owner znode's consumer isn't in ``ids``; ``owned_twice``: by ZooKeeper and by a Kafka
    member that isn't embedded in a MEZKCC, or by two Kafka members; ``assigned_never_committed``: owned, and no store
    holds an offset; ``more_threads_than_partitions``: some stay idle, no error. Where a read error could hide the
    missing piece nothing is claimed.
    """
    owners: FrameT = nw.from_native(partition_owners(ownership, members, subscriptions, topic_partitions))
    unreadable = unreadable_groups(groups)
    sure = owners.join(unreadable, on="group_id", how="anti")
    found = [
        _unowned(sure, members, groups),
        _not_registered(sure),
        _owned_twice(owners),
        _never_committed(sure, committed_offsets),
        _idle_threads(members, subscriptions, topic_partitions),
    ]
    return nw.concat(found).select(*_COLUMNS)


def _unowned(owners: FrameT, members: FrameT, groups: FrameT) -> FrameT:
    n_members = members.group_by("group_id").agg(nw.len().cast(nw.Int64).alias("n_members"))
    states = groups.filter(nw.col("source") == KAFKA).select("group_id", "state").unique(subset=["group_id"])
    rows = owners.filter(nw.col("is_subscribed") & (nw.col("n_owners") == 0))
    rows = rows.join(n_members, on="group_id", how="inner").join(states, on="group_id", how="left")
    is_rebalancing = nw.col("state").is_in(["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
    advice = (
        nw.when(is_rebalancing.fill_null(False))
        .then(nw.concat_str([nw.lit(" The group is in "), nw.col("state"), nw.lit(": look again when it is Stable.")]))
        .otherwise(nw.lit(" Look for a member that gave up rebalancing and restart it."))
    )
    sentence = [
        *_partition_of_group(),
        nw.lit(" is owned by no one, though the group subscribes to it and has "),
        nw.col("n_members").cast(nw.String),
        nw.lit(" member(s): its records are not read."),
        advice,
    ]
    return _finding(rows, "unowned", nw.lit(None, nw.String), sentence)


def _not_registered(owners: FrameT) -> FrameT:
    rows = owners.filter(~nw.col("is_registered") & ~nw.col("is_fence"))
    sentence = [
        *_partition_of_group(),
        nw.lit(" is held by the owner znode of "),
        nw.col("zookeeper_owner"),
        nw.lit(
            ", which is not registered in ids: no one else can claim it. Look again after the ZooKeeper session"
            " timeout; if the znode is still there, find and stop that process."
        ),
    ]
    return _finding(rows, "owner_not_registered", nw.col("zookeeper_owner"), sentence)


def _owned_twice(owners: FrameT) -> FrameT:
    by_two_members = nw.col("n_kafka_owners") > 1
    rows = owners.filter((nw.col("n_owners") > 1) | by_two_members)
    by_kafka = [nw.col("kafka_owner"), nw.lit(" and "), nw.col("kafka_other_owner"), nw.lit(", both in Kafka")]
    by_both = [nw.col("zookeeper_owner"), nw.lit(" in ZooKeeper and "), nw.col("kafka_owner"), nw.lit(" in Kafka")]
    sentence = [
        *_partition_of_group(),
        nw.lit(" is owned twice: by "),
        nw.when(by_two_members).then(nw.concat_str(by_kafka)).otherwise(nw.concat_str(by_both)),
        nw.lit(". Its records are read twice: stop one of the two."),
    ]
    member_id = nw.when(by_two_members).then(nw.col("kafka_owner")).otherwise(nw.col("zookeeper_owner"))
    return _finding(rows, "owned_twice", member_id, sentence)


def _never_committed(owners: FrameT, committed_offsets: FrameT) -> FrameT:
    is_told = ~nw.col("committed_offset").is_null() | ~nw.col("error").is_null()
    told = committed_offsets.filter(is_told).select(*GROUP_PARTITION).unique()
    rows = owners.filter(nw.col("n_owners") > 0).join(told, on=GROUP_PARTITION, how="anti")
    member_id = nw.coalesce(_zookeeper_reader(), nw.col("kafka_owner"))
    sentence = [
        *_partition_of_group(),
        nw.lit(" belongs to "),
        member_id,
        nw.lit(
            ", but neither store holds an offset for it: a new owner starts by auto.offset.reset."
            " Fine if it never had a record; else see why the member doesn't commit."
        ),
    ]
    return _finding(rows, "assigned_never_committed", member_id, sentence)


def _zookeeper_reader() -> nw.Expr:
    return nw.when(~nw.col("is_fence")).then(nw.col("zookeeper_owner"))


def _idle_threads(members: FrameT, subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    by_topic = ["group_id", "source", "topic"]
    n_threads = subscriptions.group_by(*by_topic).agg(nw.col("n_threads").cast(nw.Int64).sum())
    n_partitions = topic_partitions.group_by("topic").agg(nw.len().cast(nw.Int64).alias("n_partitions"))
    rows = n_threads.join(n_partitions, on="topic", how="inner")
    rows = rows.filter(nw.col("n_threads") > nw.col("n_partitions"))
    rows = rows.join(_coordinated(members), on=["group_id", "source"], how="inner")
    rows = rows.with_columns(partition=nw.lit(None, nw.Int32))
    is_zookeeper = nw.col("source") == ZOOKEEPER
    sentence = [
        nw.lit("Group "),
        nw.col("group_id"),
        nw.lit(": "),
        nw.col("n_threads").cast(nw.String),
        nw.when(is_zookeeper).then(nw.lit(" consumer threads")).otherwise(nw.lit(" Kafka members")),
        nw.lit(" share the "),
        nw.col("n_partitions").cast(nw.String),
        nw.lit(" partition(s) of "),
        nw.col("topic"),
        nw.lit(": "),
        (nw.col("n_threads") - nw.col("n_partitions")).cast(nw.String),
        nw.lit(" get none of it. Not an error: spare ones take over when another stops."),
    ]
    return _finding(rows, "more_threads_than_partitions", nw.lit(None, nw.String), sentence)


def _coordinated(members: FrameT) -> FrameT:
    """Group and source whose members count: a Kafka group of embedded consumers alone only mirrors ZooKeeper's."""
    kinds: FrameT = nw.from_native(member_flavours(members))
    counting = kinds.filter(nw.col("flavour").is_null() | (nw.col("flavour") != "EKC"))
    return counting.select("group_id", "source").unique()


def _partition_of_group() -> list[nw.Expr]:
    partition = nw.col("partition").cast(nw.String)
    return [nw.lit("Group "), nw.col("group_id"), nw.lit(": "), nw.col("topic"), nw.lit("-"), partition]


def _finding(rows: FrameT, finding: str, member_id: nw.Expr, sentence: list[nw.Expr]) -> FrameT:
    return rows.select(
        *GROUP_PARTITION,
        member_id.alias("member_id"),
        nw.lit(finding).alias("finding"),
        nw.concat_str(sentence).alias("sentence"),
    )
