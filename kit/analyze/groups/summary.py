"""One line per group: what to look at first."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import KAFKA, ZOOKEEPER


@nw.narwhalify
def group_summary(
    groups: FrameT,
    readiness: FrameT,
    group_lag: FrameT,
    group_balance: FrameT,
    ownership_findings: FrameT,
    partition_owners: FrameT,
) -> FrameT:
    """Every group once. The stores' lags stand side by side: each member's own setting says which one it resumes from.

    Columns:
        group_id: the key.
        stage, effective_mode: see ``readiness``.
        kafka_state: the coordinator's.
        n_members, n_idle: how many, and how many own nothing.
        n_partitions, n_unowned: considered; subscribed and without an owner in either source.
        zookeeper_lag, kafka_lag: in records; null: the store holds no offset of the group.
        n_unknown: partitions whose lag could not be read, both stores.
        n_findings, n_blockers, error: see ``ownership_findings``, ``blockers``; why the group could not be read.
    """
    rows = groups.select("group_id").unique()
    rows = rows.join(_kafka_state(groups), on="group_id", how="left")
    rows = rows.join(readiness.select("group_id", "stage", "effective_mode", "n_blockers"), on="group_id", how="left")
    rows = rows.join(_members(group_balance), on="group_id", how="left")
    rows = rows.join(_partitions(group_lag), on="group_id", how="left")
    rows = rows.join(_unowned(partition_owners), on="group_id", how="left")
    for store in (ZOOKEEPER, KAFKA):
        rows = rows.join(_lag_in(store, group_lag), on="group_id", how="left")
    findings = ownership_findings.group_by("group_id").agg(n_findings=nw.len().cast(nw.Int64))
    rows = rows.join(findings, on="group_id", how="left").join(_errors(groups), on="group_id", how="left")
    return rows.select(
        "group_id",
        "stage",
        "effective_mode",
        "kafka_state",
        _counted("n_members"),
        _counted("n_idle"),
        _counted("n_partitions"),
        _counted("n_unowned"),
        "zookeeper_lag",
        "kafka_lag",
        _counted("n_unknown"),
        _counted("n_findings"),
        _counted("n_blockers"),
        "error",
    )


def _counted(name: str) -> nw.Expr:
    """Without rows a count is 0, unless the group could not be read: then it is unknown."""
    known = nw.when(nw.col("error").is_null()).then(nw.col(name).fill_null(0)).otherwise(nw.col(name))
    return known.cast(nw.Int64).alias(name)


def _kafka_state(groups: FrameT) -> FrameT:
    return groups.filter(nw.col("source") == KAFKA).select("group_id", kafka_state="state")


def _errors(groups: FrameT) -> FrameT:
    failed = groups.filter(~nw.col("error").is_null())
    return failed.group_by("group_id").agg(nw.col("error").min())


def _members(group_balance: FrameT) -> FrameT:
    return group_balance.group_by("group_id").agg(nw.col("n_members", "n_idle").sum())


def _partitions(group_lag: FrameT) -> FrameT:
    return group_lag.group_by("group_id").agg(nw.col("n_partitions").max(), nw.col("n_unknown").sum())


def _unowned(partition_owners: FrameT) -> FrameT:
    unowned = partition_owners.filter(nw.col("is_subscribed") & (nw.col("n_owners") == 0))
    return unowned.group_by("group_id").agg(n_unowned=nw.len())


def _lag_in(store: str, group_lag: FrameT) -> FrameT:
    return group_lag.filter(nw.col("store") == store).select("group_id", nw.col("lag").alias(f"{store}_lag"))


@nw.narwhalify
def finding_summary(ownership_findings: FrameT) -> FrameT:
    """``ownership_findings`` per group and kind: group_id, finding, times, example (a sentence, the first by name)."""
    return ownership_findings.group_by("group_id", "finding").agg(
        times=nw.len().cast(nw.Int64), example=nw.col("sentence").min()
    )
