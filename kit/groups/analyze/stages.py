"""KIP-125's path as a table: from a group's kinds of members to its stage and the next step."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import live_members, unreadable_groups
from kit.groups.analyze.flavours import with_flavours
from kit.tables.groups import KAFKA, ZOOKEEPER

NEXT_STEPS = {
    "OZKCC": "Replace one old consumer by a migration-enabled one (offsets.storage=kafka, dual.commit.enabled=true).",
    "canary MEZKCC": "Compare the canary's share and lag with the rest, then replace the remaining old consumers.",
    "all MEZKCC": "Set migration/mode to kafka: Kafka's assignment then is in force.",
    "Kafka coordination": "Replace one migration-enabled consumer by a plain Kafka consumer.",
    "canary KC": "Compare the plain Kafka consumers' share and lag with the rest, then replace the remaining ones.",
    "all KC": "Nothing is left to do. Offsets in ZooKeeper are kept for a possible rollback.",
    "empty": "Start a consumer, or check whether the group is still needed.",
    "unsafe mix": "Stop the plain Kafka consumers (KC) or the ZooKeeper consumers: both read the same partitions now.",
    "unknown": "Repair what could not be read, then run the command again.",
}
"""Stage → what to do next when nothing blocks it (KIP-125, Migration Plan)."""

STAGES = tuple(NEXT_STEPS)

_FLAVOURS = {"n_ozkcc": "OZKCC", "n_mezkcc": "MEZKCC", "n_ekc": "EKC", "n_kc": "KC"}
_COUNTS = [*_FLAVOURS, "n_unknown"]


def group_stages(groups: FrameT, members: FrameT, migration_states: FrameT) -> FrameT:
    """Per group any of the three tables knows.

    A persistent registration is no member.

    Columns: group_id, n_ozkcc, n_mezkcc, n_ekc, n_kc, n_unknown (members of unknown flavour), mode, mode_error,
    group_error, effective_mode, stage.
    """
    tables = [frame.select("group_id") for frame in (groups, members, migration_states)]
    rows = nw.concat(tables).unique()
    rows = rows.join(_counts(live_members(members)), on="group_id", how="left").with_columns(
        nw.col(*_COUNTS).fill_null(0)
    )
    modes = migration_states.select("group_id", "mode", mode_error=nw.col("error"))
    rows = rows.join(modes, on="group_id", how="left").join(unreadable_groups(groups), on="group_id", how="left")
    rows = rows.with_columns(effective_mode=_effective_mode())
    return rows.with_columns(stage=_stage())


def _counts(members: FrameT) -> FrameT:
    flags = {name: (nw.col("flavour") == word).fill_null(False) for name, word in _FLAVOURS.items()}
    flags["n_unknown"] = nw.col("flavour").is_null()
    counted = with_flavours(members).with_columns(**{name: flag.cast(nw.Int64) for name, flag in flags.items()})
    return counted.group_by("group_id").agg(*[nw.col(name).sum() for name in flags])


def _effective_mode() -> nw.Expr:
    """Kafka's only if the znode holds exactly ``kafka`` and no member is an old one; null where that can't be reported.

    KIP-125, Coordination Mode Toggle. Without a ZooKeeper member plain Kafka consumers have but one mode.
    """
    has_zookeeper_member = nw.col("n_ozkcc") + nw.col("n_mezkcc") + nw.col("n_unknown") > 0
    is_mode_known = nw.col("mode_error").is_null()
    is_toggled = (nw.col("mode") == KAFKA).fill_null(False)
    is_surely_zookeeper = (nw.col("n_ozkcc") > 0) | (is_mode_known & ~is_toggled)
    return (
        nw.when(has_zookeeper_member & is_surely_zookeeper)
        .then(nw.lit(ZOOKEEPER))
        .when(~nw.col("group_error").is_null())
        .then(nw.lit(None, nw.String))
        .when(has_zookeeper_member & is_mode_known & (nw.col("n_unknown") == 0))
        .then(nw.lit(KAFKA))
        .when(~has_zookeeper_member & (nw.col("n_kc") > 0))
        .then(nw.lit(KAFKA))
        .otherwise(nw.lit(None, nw.String))
    )


def _stage() -> nw.Expr:
    has_old, has_enabled, has_plain = (nw.col(name) > 0 for name in ("n_ozkcc", "n_mezkcc", "n_kc"))
    is_kafka = (nw.col("effective_mode") == KAFKA).fill_null(False)
    is_zookeeper = (nw.col("effective_mode") == ZOOKEEPER).fill_null(False)
    is_unknown = ~nw.col("group_error").is_null() | (nw.col("n_unknown") > 0)
    return (
        nw.when(has_plain & (has_old | (has_enabled & is_zookeeper)))
        .then(nw.lit("unsafe mix"))
        .when(is_unknown | (has_enabled & ~is_kafka & ~is_zookeeper))
        .then(nw.lit("unknown"))
        .when(has_plain & has_enabled)
        .then(nw.lit("canary KC"))
        .when(has_plain)
        .then(nw.lit("all KC"))
        .when(has_old & has_enabled)
        .then(nw.lit("canary MEZKCC"))
        .when(has_old)
        .then(nw.lit("OZKCC"))
        .when(has_enabled & is_kafka)
        .then(nw.lit("Kafka coordination"))
        .when(has_enabled)
        .then(nw.lit("all MEZKCC"))
        .otherwise(nw.lit("empty"))
    )
