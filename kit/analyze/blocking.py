"""What stands in the way of a group's next step, or of its way back, in sentences."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.findings import ownership_findings
from kit.analyze.parity import group_parity, store_parity
from kit.analyze.stages import group_stages
from kit.model import KAFKA, ZOOKEEPER


@nw.narwhalify
def blockers(
    groups: FrameT,
    members: FrameT,
    ownership: FrameT,
    committed_offsets: FrameT,
    migration_states: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
) -> FrameT:
    """Columns: group_id, blocker, sentence; one row per group and blocker, per member for a registration.

    ``unsafe_mix``: plain Kafka consumers beside consumers under ZooKeeper's assignment; ``unreadable_group``,
    ``unreadable_mode``, ``unreadable_registration``: a read failed; ``group_not_stable``: the Kafka group is
    rebalancing; ``commits_to_kafka``: old consumers, and offsets in Kafka (KIP-125, Migration Plan, step 1: their
    commits are dropped in silence as soon as the Kafka group has members); ``kafka_ahead``: Kafka's offsets are beyond
    ZooKeeper's in a group with ZooKeeper members, so a way back would read again; ``not_migration_enabled``:
    migration/mode is kafka, but an old member keeps the group under ZooKeeper; ``inexact_mode``: the znode holds
    neither ``kafka`` nor ``zookeeper``; ``unowned_partitions``.
    """
    stages = group_stages(groups, members, migration_states)
    findings: FrameT = nw.from_native(
        ownership_findings(groups, members, ownership, subscriptions, topic_partitions, committed_offsets)
    )
    parity: FrameT = nw.from_native(group_parity(store_parity(committed_offsets, groups)))
    stores = stages.join(parity.rename({"n_unknown": "n_unread"}), on="group_id", how="inner")
    found = [
        _unsafe_mix(stages),
        _unreadable_group(groups),
        _unreadable_mode(stages),
        _unreadable_registration(members),
        _not_stable(groups),
        _commits_to_kafka(stores),
        _kafka_ahead(stores),
        _not_migration_enabled(stages),
        _inexact_mode(stages),
        _unowned(findings),
    ]
    return nw.concat(found).select("group_id", "blocker", "sentence")


def _unsafe_mix(stages: FrameT) -> FrameT:
    found = [
        _group(),
        _number("n_kc"),
        nw.lit(" plain Kafka consumer(s) run beside "),
        _number("n_ozkcc"),
        nw.lit(" old and "),
        _number("n_mezkcc"),
        nw.lit(
            " migration-enabled consumer(s) under ZooKeeper's assignment: partitions are read twice."
            " Stop the plain Kafka consumers before anything else."
        ),
    ]
    return _blocker(stages.filter(nw.col("stage") == "unsafe mix"), "unsafe_mix", found)


def _unreadable_group(groups: FrameT) -> FrameT:
    found = [
        _group(),
        nw.lit("its side in "),
        nw.col("source"),
        nw.lit(" could not be read ("),
        nw.col("error"),
        nw.lit("). Mend that and look again."),
    ]
    return _blocker(groups.filter(~nw.col("error").is_null()), "unreadable_group", found)


def _unreadable_mode(stages: FrameT) -> FrameT:
    found = [_group(), nw.lit("migration/mode could not be read ("), nw.col("mode_error"), nw.lit("). Look again.")]
    return _blocker(stages.filter(~nw.col("mode_error").is_null()), "unreadable_mode", found)


def _unreadable_registration(members: FrameT) -> FrameT:
    found = [
        _group(),
        nw.lit("member "),
        nw.col("member_id"),
        nw.lit(" has a registration that can't be read ("),
        nw.col("error"),
        nw.lit("). Old consumers up to 0.11 lose all partitions over one: stop or mend that member."),
    ]
    return _blocker(members.filter(~nw.col("error").is_null()), "unreadable_registration", found)


def _not_stable(groups: FrameT) -> FrameT:
    moving = groups.filter((nw.col("source") == KAFKA) & ~nw.col("state").is_in(["Stable", "Empty", "Dead"]))
    found = [
        _group(),
        nw.lit("the Kafka group is in "),
        nw.col("state"),
        nw.lit(". Wait until it is Stable; if it stays so, a member doesn't answer or keeps leaving."),
    ]
    return _blocker(moving.filter(nw.col("error").is_null()), "group_not_stable", found)


def _commits_to_kafka(stores: FrameT) -> FrameT:
    n_in_kafka = nw.col("n_partitions") - nw.col("n_missing_in_kafka") - nw.col("n_unread")
    old = stores.filter((nw.col("n_ozkcc") > 0) & (nw.col("n_mezkcc") == 0))
    old = old.with_columns(n_in_kafka=n_in_kafka).filter(nw.col("n_in_kafka") > 0)
    found = [
        _group(),
        nw.lit("Kafka holds offsets of "),
        _number("n_in_kafka"),
        nw.lit(
            " partition(s) of a group of old consumers. If they commit there, set offsets.storage=zookeeper and"
            " dual.commit.enabled=false in all of them first; if the offsets stand still, they are left over:"
            " delete them."
        ),
    ]
    return _blocker(old, "commits_to_kafka", found)


def _kafka_ahead(stores: FrameT) -> FrameT:
    has_zookeeper_member = nw.col("n_ozkcc") + nw.col("n_mezkcc") + nw.col("n_unknown") > 0
    n_ahead = nw.col("n_kafka_ahead") + nw.col("n_missing_in_zookeeper")
    ahead = stores.with_columns(n_ahead=n_ahead).filter(has_zookeeper_member & (nw.col("n_ahead") > 0))
    found = [
        _group(),
        nw.lit("Kafka's offset is ahead of ZooKeeper's, or alone, for "),
        _number("n_ahead"),
        nw.lit(" partition(s), by up to "),
        nw.col("max_kafka_ahead").fill_null(0).cast(nw.String),
        nw.lit(
            " records: an old consumer would read them again. A running group may commit between the two reads;"
            " if the same partitions stay ahead, copy Kafka's offsets to ZooKeeper before going back."
        ),
    ]
    return _blocker(ahead, "kafka_ahead", found)


def _not_migration_enabled(stages: FrameT) -> FrameT:
    found = [
        _group(),
        nw.lit("migration/mode is kafka, but "),
        _number("n_ozkcc"),
        nw.lit(
            " member(s) are not in migration/ids, so ZooKeeper's assignment stays in force."
            " Replace them by migration-enabled consumers, or set the mode to zookeeper."
        ),
    ]
    held_back = stages.filter((nw.col("mode") == KAFKA) & (nw.col("n_ozkcc") > 0))
    return _blocker(held_back, "not_migration_enabled", found)


def _inexact_mode(stages: FrameT) -> FrameT:
    found = [
        _group(),
        nw.lit("migration/mode holds '"),
        nw.col("mode"),
        nw.lit("', which counts as zookeeper. Set it to exactly kafka or zookeeper."),
    ]
    return _blocker(stages.filter(~nw.col("mode").is_in([KAFKA, ZOOKEEPER])), "inexact_mode", found)


def _unowned(findings: FrameT) -> FrameT:
    partition = nw.concat_str([nw.col("topic"), nw.col("partition").cast(nw.String)], separator="-")
    unowned = findings.filter(nw.col("finding") == "unowned").with_columns(topic_partition=partition)
    counts = unowned.group_by("group_id").agg(
        nw.len().cast(nw.Int64).alias("n_unowned"), nw.col("topic_partition").min()
    )
    found = [
        _group(),
        _number("n_unowned"),
        nw.lit(" subscribed partition(s) are owned by no one, "),
        nw.col("topic_partition"),
        nw.lit(" among them. See the findings; restart the members that gave up."),
    ]
    return _blocker(counts, "unowned_partitions", found)


def _group() -> nw.Expr:
    return nw.concat_str([nw.lit("Group "), nw.col("group_id"), nw.lit(": ")])


def _number(name: str) -> nw.Expr:
    return nw.col(name).cast(nw.String)


def _blocker(rows: FrameT, code: str, found: list[nw.Expr]) -> FrameT:
    return rows.select("group_id", blocker=nw.lit(code), sentence=nw.concat_str(found))
