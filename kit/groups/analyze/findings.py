"""Find problems of a group's ownership, in sentences with the finding and the remedy."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import existing_partitions, live_members, unreadable_groups
from kit.groups.analyze.flavours import with_flavours
from kit.groups.analyze.ownership import partition_owners
from kit.groups.analyze.stale import in_use
from kit.tables.groups import GROUP_PARTITION, KAFKA, SHARE, ZOOKEEPER
from kit.text.sentences import applying, counted, sentence

FINDINGS = (
    "owned_twice",
    "unowned",
    "owner_not_registered",
    "persistent_owner",
    "persistent_member",
    "assigned_never_committed",
    "more_threads_than_partitions",
)
"""Each kind, the worst first: records read twice, not read at all, read again by the next owner; no error."""
_COLUMNS = ["group_id", "topic", "partition", "member_id", "finding", "sentence"]
_REBALANCING = ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"]


@nw.narwhalify
def ownership_findings(
    groups: FrameT,
    members: FrameT,
    ownership: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    committed_offsets: FrameT,
    stale_stores: FrameT | None = None,
    owners: FrameT | None = None,
) -> FrameT:
    """Return the problems of owners. If a read error could hide the missing piece, nothing is claimed.

    Args:
        stale_stores: rows of ``kit.analyze.stale_stores``: what lies there is no commit.
        owners: rows of ``kit.analyze.partition_owners``, where they are known already.

    Columns:
        group_id: the key.
        topic, partition: partition is null where a finding is about a whole topic.
        member_id: null where a finding is about no single member.
        finding: ``unowned``: subscribed, and no member owns it though the group has members. ``owner_not_registered``:
        the
            owner znode's consumer isn't in ``ids``. ``owned_twice``: by ZooKeeper and by a Kafka member that isn't
            embedded in a MEZKCC, or by two Kafka members. ``persistent_owner``, ``persistent_member``: the znode is not
            ephemeral, so no live member holds it; topic is null for a member. ``assigned_never_committed``: owned, and
            no store in use holds an offset. ``more_threads_than_partitions``: some stay idle, which is no error. A
            share group has only ``unowned``: its members share each partition.
        sentence: what was found and what to do.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> key = {"group_id": "g", "source": "kafka"}
    >>> group = rows_of(schema.GROUPS, **key, state="Stable")
    >>> members = rows_of(schema.MEMBERS, **key, member_id="a")
    >>> asked = rows_of(schema.SUBSCRIPTIONS, **key, member_id="a", topic="t", n_threads=1)
    >>> partitions = rows_of(schema.TOPIC_PARTITIONS, topic="t", partition=[0, 1], replicas=[[1], [1]])
    >>> owned = rows_of(schema.OWNERSHIP, **key, topic="t", partition=0, member_id="a")
    >>> rows = ownership_findings(group, members, owned, asked, partitions, rows_of(schema.COMMITTED_OFFSETS))
    >>> rows.sort("partition").select("partition", "member_id", "finding").rows()
    [(0, 'a', 'assigned_never_committed'), (1, None, 'unowned')]
    """
    commits = committed_offsets if stale_stores is None else in_use(committed_offsets, stale_stores)
    if owners is None:
        owners = nw.from_native(partition_owners(ownership, members, subscriptions, topic_partitions))
    rows = _owned_rows(owners, groups, members, commits)
    rules = {
        "unowned": _unowned(),
        "owner_not_registered": _not_registered(),
        "persistent_owner": _persistent_owner(),
        "owned_twice": _owned_twice(),
        "assigned_never_committed": _never_committed(),
    }
    keep = [*GROUP_PARTITION, "reader", "zookeeper_owner", "kafka_owner"]
    findings = applying(rows, rules, keep, "finding").with_columns(member_id=_member_id())
    idle = _idle_threads(members, _without_shared(subscriptions, groups), topic_partitions)
    return nw.concat([findings.select(*_COLUMNS), idle.select(*_COLUMNS), _persistent_members(members)])


@nw.narwhalify
def unowned_partitions(groups: FrameT, members: FrameT, owners: FrameT) -> FrameT:
    """The partitions of the finding ``unowned``, of ``partition_owners``. Columns: group_id, topic, partition."""
    rows = owners.join(unreadable_groups(groups), on="group_id", how="left")
    rows = rows.join(_member_counts(members), on="group_id", how="left")
    return rows.filter(_is_unowned()).select(*GROUP_PARTITION)


def _owned_rows(owners: FrameT, groups: FrameT, members: FrameT, committed_offsets: FrameT) -> FrameT:
    """Owners per partition with what the rules need to know about the group and its offsets."""
    states = groups.filter(nw.col("source") == KAFKA).select("group_id", "state").unique(subset=["group_id"])
    has_commit_row = ~nw.col("committed_offset").is_null() | ~nw.col("error").is_null()
    known = (
        committed_offsets.filter(has_commit_row)
        .select(*GROUP_PARTITION)
        .unique()
        .with_columns(has_commit_row=nw.lit(True))
    )
    rows = owners.join(unreadable_groups(groups), on="group_id", how="left")
    rows = rows.join(_member_counts(members), on="group_id", how="left").join(states, on="group_id", how="left")
    rows = rows.join(known, on=GROUP_PARTITION, how="left")
    held = nw.when(~nw.col("is_reservation")).then(nw.col("zookeeper_owner"))
    return rows.with_columns(reader=nw.coalesce(held, nw.col("kafka_owner")))


def _member_counts(members: FrameT) -> FrameT:
    return live_members(members).group_by("group_id").agg(nw.len().cast(nw.Int64).alias("n_members"))


def _is_unowned() -> nw.Expr:
    is_wanted = nw.col("is_subscribed") & (nw.col("n_members") > 0)
    return is_wanted & (nw.col("n_owners") == 0) & nw.col("group_error").is_null()


def _topic_partition() -> nw.Expr:
    return nw.concat_str([nw.col("topic"), nw.col("partition").cast(nw.String)], separator="-")


def _unowned() -> nw.Expr:
    waiting = nw.concat_str(
        [nw.lit(" The group is in "), nw.col("state"), nw.lit(": run the command again when the group is Stable.")]
    )
    is_rebalancing = nw.col("state").is_in(_REBALANCING).fill_null(False)
    advice = nw.lit(" Find the member that gave up rebalancing, and restart it.")
    return sentence(
        _is_unowned(),
        _topic_partition(),
        " has no owner, although the group subscribes to it and has ",
        counted(nw.col("n_members"), "member"),
        ": its records are not read.",
        nw.when(is_rebalancing).then(waiting).otherwise(advice),
    )


def _not_registered() -> nw.Expr:
    is_ephemeral = ~nw.col("is_persistent").fill_null(False)
    return sentence(
        ~nw.col("is_registered") & ~nw.col("is_reservation") & is_ephemeral & nw.col("group_error").is_null(),
        _topic_partition(),
        " is held by the owner znode of ",
        nw.col("zookeeper_owner"),
        ", which is not registered in ids, so no other member can claim it. Run the command again after the "
        "ZooKeeper session"
        " timeout; if the znode is still there, find and stop that process.",
    )


def _persistent_owner() -> nw.Expr:
    return sentence(
        nw.col("is_persistent") & nw.col("group_error").is_null(),
        _topic_partition(),
        " is held by a persistent owner znode of ",
        nw.col("zookeeper_owner"),
        ". A live member's owner znode is ephemeral, so no session deletes this one, and no member can claim the"
        " partition. Check that no process of the group runs, then delete the znode: offramp plan delete-znodes GROUP.",
    )


def _persistent_members(members: FrameT) -> FrameT:
    rows = members.filter((nw.col("source") == ZOOKEEPER) & (nw.col("session_id") == 0))
    said = sentence(
        nw.lit(True),
        "the registration of ",
        nw.col("member_id"),
        " in ids is a persistent znode. A live member's registration is ephemeral, so no session deletes this one, and"
        " the members assign partitions to it that no consumer reads. Delete the znode: offramp plan delete-znodes"
        " GROUP.",
    )
    none = {"topic": nw.lit(None, nw.String), "partition": nw.lit(None, nw.Int32)}
    return rows.with_columns(**none, finding=nw.lit("persistent_member"), sentence=said).select(*_COLUMNS)


def _owned_twice() -> nw.Expr:
    by_two_members = nw.col("n_kafka_owners") > 1
    by_kafka = [nw.col("kafka_owner"), nw.lit(" and "), nw.col("kafka_other_owner"), nw.lit(", both in Kafka")]
    by_both = [nw.col("zookeeper_owner"), nw.lit(" in ZooKeeper and "), nw.col("kafka_owner"), nw.lit(" in Kafka")]
    return sentence(
        ((nw.col("n_owners") > 1) | by_two_members) & ~nw.col("is_shared"),
        _topic_partition(),
        " is owned twice: by ",
        nw.when(by_two_members).then(nw.concat_str(by_kafka)).otherwise(nw.concat_str(by_both)),
        ". Its records are read twice: stop one of the two.",
    )


def _never_committed() -> nw.Expr:
    return sentence(
        (nw.col("n_owners") > 0)
        & ~nw.col("is_shared")
        & nw.col("has_commit_row").is_null()
        & nw.col("group_error").is_null(),
        _topic_partition(),
        " belongs to ",
        nw.col("reader"),
        ", but no store that the group uses holds an offset for it, so a new owner starts by auto.offset.reset. This "
        "is normal if the partition never had a record. Otherwise find out why the member doesn't commit.",
    )


def _member_id() -> nw.Expr:
    finding = nw.col("finding")
    return (
        nw.when(finding.is_in(["owner_not_registered", "persistent_owner"]))
        .then(nw.col("zookeeper_owner"))
        .when(finding == "owned_twice")
        .then(nw.coalesce(nw.col("kafka_owner"), nw.col("zookeeper_owner")))
        .when(finding == "assigned_never_committed")
        .then(nw.col("reader"))
    )


def _without_shared(subscriptions: FrameT, groups: FrameT) -> FrameT:
    """Members of a share group share each partition, so none of them is spare."""
    shared = groups.filter(nw.col("group_type") == SHARE).select("group_id").unique()
    return subscriptions.join(shared, on="group_id", how="anti")


def _idle_threads(members: FrameT, subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    by_topic = ["group_id", "source", "topic"]
    n_threads = subscriptions.group_by(*by_topic).agg(nw.col("n_threads").cast(nw.Int64).sum())
    existing = existing_partitions(topic_partitions)
    n_partitions = existing.group_by("topic").agg(nw.len().cast(nw.Int64).alias("n_partitions"))
    rows = n_threads.join(n_partitions, on="topic", how="inner")
    rows = rows.join(_coordinated(members), on=["group_id", "source"], how="inner")
    findings = rows.with_columns(finding=nw.lit("more_threads_than_partitions"), sentence=_spare_threads())
    findings = findings.with_columns(partition=nw.lit(None, nw.Int32), member_id=nw.lit(None, nw.String))
    return findings.filter(~nw.col("sentence").is_null())


def _spare_threads() -> nw.Expr:
    n_spare = nw.col("n_threads") - nw.col("n_partitions")
    is_zookeeper = nw.col("source") == ZOOKEEPER
    return sentence(
        n_spare > 0,
        nw.col("n_threads"),
        nw.when(is_zookeeper).then(nw.lit(" consumer threads")).otherwise(nw.lit(" Kafka members")),
        " share the ",
        counted(nw.col("n_partitions"), "partition"),
        " of ",
        nw.col("topic"),
        ": ",
        counted(n_spare, "gets", "get"),
        " none of it. This is no error: a spare thread takes over when another one stops.",
    )


def _coordinated(members: FrameT) -> FrameT:
    """Group and source whose members count: a Kafka group of embedded consumers alone only mirrors ZooKeeper's."""
    counting = with_flavours(members).filter(nw.col("flavour").is_null() | (nw.col("flavour") != "EKC"))
    return counting.select("group_id", "source").unique()
