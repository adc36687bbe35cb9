"""Find what blocks a group's next step, or its rollback, in sentences."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.findings import unowned_partitions
from kit.groups.analyze.ownership import partition_owners
from kit.groups.analyze.parity import group_parity, store_parity
from kit.groups.analyze.stages import group_stages
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.sentences import applying, counted, sentence

BLOCKERS = (
    "unsafe_mix",
    "persistent_znodes",
    "unowned_partitions",
    "commits_to_kafka",
    "kafka_ahead",
    "not_migration_enabled",
    "inexact_mode",
    "group_not_stable",
    "unreadable_registration",
    "unreadable_mode",
    "unreadable_group",
)
"""Each kind, the worst first: records read twice, not read at all, read again after a step; then what only waits."""
_COLUMNS = ["group_id", "blocker", "sentence"]
_SETTLED = ["Stable", "Empty", "Dead"]


@nw.narwhalify
def blockers(
    groups: FrameT,
    members: FrameT,
    ownership: FrameT,
    committed_offsets: FrameT,
    migration_states: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    owners: FrameT | None = None,
    parity: FrameT | None = None,
    stages: FrameT | None = None,
) -> FrameT:
    """Return what blocks each group's next step; one row per group and blocker, per member for a registration.

    Args:
        owners, parity, stages: rows of ``kit.analyze.partition_owners``, of ``kit.analyze.group_parity`` and of
            :func:`~kit.groups.analyze.stages.group_stages`, where they are known already.

    Columns:
        group_id: the key.
        blocker: ``unsafe_mix``: plain Kafka consumers beside consumers under ZooKeeper's assignment.
            ``unreadable_group``, ``unreadable_mode``, ``unreadable_registration``: a read failed.
            ``group_not_stable``: the Kafka group is rebalancing.
            ``commits_to_kafka``: old consumers, and offsets in Kafka that aren't behind ZooKeeper's (KIP-125,
            Migration Plan, step 1: their commits are dropped in silence as soon as the Kafka group has members).
            ``kafka_ahead``: Kafka's offsets are beyond ZooKeeper's in a group with ZooKeeper members, so a rollback
            would read again.
            ``not_migration_enabled``: migration/mode is kafka, but an old member keeps the group under ZooKeeper.
            ``inexact_mode``: the znode holds neither ``kafka`` nor ``zookeeper``.
            ``unowned_partitions``: subscribed, and no member owns them.
            ``persistent_znodes``: owner znodes or registrations that no session holds.
        sentence: what was found and what to do.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> group = rows_of(schema.GROUPS, group_id="g", source="zookeeper")
    >>> old = rows_of(schema.MEMBERS, group_id="g", source="zookeeper", member_id="g_old", in_migration_ids=False)
    >>> offset = {"group_id": "g", "topic": "t", "partition": 0, "committed_offset": 5}
    >>> offsets = rows_of(schema.COMMITTED_OFFSETS, store=["zookeeper", "kafka"], **offset)
    >>> others = [rows_of(table) for table in (schema.MIGRATION_STATES, schema.SUBSCRIPTIONS, schema.TOPIC_PARTITIONS)]
    >>> rows = blockers(group, old, rows_of(schema.OWNERSHIP), offsets, *others)
    >>> [(row["blocker"], row["sentence"][:43]) for row in rows.to_dicts()]
    [('commits_to_kafka', 'Group g: Kafka holds offsets of 1 partition')]
    """
    if owners is None:
        owners = nw.from_native(partition_owners(ownership, members, subscriptions, topic_partitions))
    if parity is None:
        parity = nw.from_native(group_parity(store_parity(committed_offsets, groups)))
    if stages is None:
        stages = group_stages(groups, members, migration_states)
    unowned: FrameT = nw.from_native(unowned_partitions(groups, members, owners))
    rows = stages.join(parity.rename({"n_unknown": "n_unread"}), on="group_id", how="left")
    rows = rows.join(_counted(unowned), on="group_id", how="left")
    rows = rows.join(_persistent_counts(owners, members), on="group_id", how="left")
    blockers = [
        applying(rows, _group_rules(), ["group_id"], "blocker"),
        applying(groups, _source_rules(), ["group_id"], "blocker"),
        applying(members, {"unreadable_registration": _unreadable_registration()}, ["group_id"], "blocker"),
    ]
    return nw.concat([frame.select(*_COLUMNS) for frame in blockers])


def _group_rules() -> dict[str, nw.Expr]:
    return {
        "unsafe_mix": _unsafe_mix(),
        "unreadable_mode": _unreadable_mode(),
        "commits_to_kafka": _commits_to_kafka(),
        "kafka_ahead": _kafka_ahead(),
        "not_migration_enabled": _not_migration_enabled(),
        "inexact_mode": _inexact_mode(),
        "unowned_partitions": _unowned(),
        "persistent_znodes": _persistent(),
    }


def _source_rules() -> dict[str, nw.Expr]:
    return {"unreadable_group": _unreadable_group(), "group_not_stable": _not_stable()}


def _counted(unowned: FrameT) -> FrameT:
    partition = nw.concat_str([nw.col("topic"), nw.col("partition").cast(nw.String)], separator="-")
    named = unowned.select("group_id", first_unowned=partition)
    return named.group_by("group_id").agg(nw.len().cast(nw.Int64).alias("n_unowned"), nw.col("first_unowned").min())


def _persistent_counts(owners: FrameT, members: FrameT) -> FrameT:
    """n_persistent: znodes of owners and of members that are not ephemeral."""
    registered = members.filter((nw.col("source") == ZOOKEEPER) & (nw.col("session_id") == 0)).select("group_id")
    held = owners.filter(nw.col("is_persistent").fill_null(False)).select("group_id")
    return nw.concat([held, registered]).group_by("group_id").agg(nw.len().cast(nw.Int64).alias("n_persistent"))


def _persistent() -> nw.Expr:
    return sentence(
        nw.col("n_persistent") > 0,
        counted(nw.col("n_persistent"), "owner znode or registration is", "owner znodes and registrations are"),
        " persistent: no live member holds them and no session deletes them. A consumer that is started can't claim"
        " these partitions, and stops. `offramp ownership` names them. Check that no process of the group runs, then"
        " delete them: offramp plan delete-znodes GROUP.",
    )


def _unsafe_mix() -> nw.Expr:
    return sentence(
        nw.col("stage") == "unsafe mix",
        counted(nw.col("n_kc"), "plain Kafka consumer runs", "plain Kafka consumers run"),
        " beside ",
        nw.col("n_ozkcc"),
        " old and ",
        counted(nw.col("n_mezkcc"), "migration-enabled consumer"),
        " under ZooKeeper's assignment: partitions are read twice."
        " Stop the plain Kafka consumers before anything else.",
    )


def _unreadable_group() -> nw.Expr:
    return sentence(
        ~nw.col("error").is_null(),
        "its side in ",
        nw.col("source"),
        " could not be read (",
        nw.col("error"),
        "). Repair it, then run the command again.",
    )


def _unreadable_mode() -> nw.Expr:
    error = nw.col("mode_error")
    return sentence(
        ~error.is_null(), "migration/mode could not be read (", error, "). Repair it, then run the command again."
    )


def _unreadable_registration() -> nw.Expr:
    return sentence(
        ~nw.col("error").is_null(),
        "member ",
        nw.col("member_id"),
        " has a registration or assignment that can't be read (",
        nw.col("error"),
        "). Old consumers up to 0.11 lose all partitions over a malformed registration: stop or repair that member.",
    )


def _not_stable() -> nw.Expr:
    is_moving = (nw.col("source") == KAFKA) & ~nw.col("state").is_in(_SETTLED) & nw.col("error").is_null()
    return sentence(
        is_moving,
        "the Kafka group is in ",
        nw.col("state"),
        ". Wait until it is Stable. If the state remains, a member doesn't answer or keeps leaving.",
    )


def _commits_to_kafka() -> nw.Expr:
    """Return whether a member may commit to Kafka, as a sentence. If ZooKeeper's offset is ahead, no member does, or a
    commit to both stores was in progress.
    """
    n_hidden = nw.col("n_equal") + nw.col("n_kafka_ahead") + nw.col("n_missing_in_zookeeper")
    is_old = (nw.col("n_ozkcc") > 0) & (nw.col("n_mezkcc") == 0)
    return sentence(
        is_old & (n_hidden > 0),
        "Kafka holds offsets of ",
        counted(n_hidden, "partition"),
        " of a group of old consumers, not behind ZooKeeper's. One observation can't determine whether they are"
        " committed there or left over; `offramp plan group` observes twice and shows it by what moves. Old consumers"
        " that commit there need offsets.storage=zookeeper and dual.commit.enabled=false first.",
    )


def _kafka_ahead() -> nw.Expr:
    n_ahead = nw.col("n_kafka_ahead") + nw.col("n_missing_in_zookeeper")
    has_zookeeper_member = nw.col("n_ozkcc") + nw.col("n_mezkcc") + nw.col("n_unknown") > 0
    distance = nw.concat_str([nw.lit(", by up to "), counted(nw.col("max_kafka_ahead"), "record")])
    return sentence(
        has_zookeeper_member & (n_ahead > 0),
        "Kafka's offset is ahead of ZooKeeper's, or only Kafka has an offset, for ",
        counted(n_ahead, "partition"),
        nw.when(nw.col("max_kafka_ahead") > 0).then(distance).otherwise(nw.lit("")),
        ": an old consumer would read them again. A running group may commit between the two reads;"
        " if the same partitions stay ahead, copy Kafka's offsets to ZooKeeper before going back.",
    )


def _not_migration_enabled() -> nw.Expr:
    return sentence(
        (nw.col("mode") == KAFKA) & (nw.col("n_ozkcc") > 0),
        "migration/mode is kafka, but ",
        counted(nw.col("n_ozkcc"), "member is", "members are"),
        " not in migration/ids, so ZooKeeper's assignment stays in force."
        " Replace them by migration-enabled consumers, or set the mode to zookeeper.",
    )


def _inexact_mode() -> nw.Expr:
    return sentence(
        ~nw.col("mode").is_in([KAFKA, ZOOKEEPER]),
        "migration/mode holds '",
        nw.col("mode"),
        "', which counts as zookeeper. Set it to exactly kafka or zookeeper.",
    )


def _unowned() -> nw.Expr:
    return sentence(
        nw.col("n_unowned") > 0,
        "no member owns ",
        counted(nw.col("n_unowned"), "subscribed partition"),
        ", first ",
        nw.col("first_unowned"),
        ". See the ownership findings; restart the members that gave up.",
    )
