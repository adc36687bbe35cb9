"""One line per group: what to examine first."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.beyond_end import BEYOND_END
from kit.groups.analyze.coverage import live_members
from kit.groups.analyze.protocol_stages import protocol_stages
from kit.tables.groups import CONSUMER, KAFKA, SHARE, ZOOKEEPER

ATTENTION = BEYOND, NOT_READ, OWNED_TWICE, COMMITS_NOTHING, WITHOUT_OWNER, EXPIRING, UNREADABLE = (
    f"commit {BEYOND_END}",
    "no active members",
    "read twice",
    "commits nothing",
    "partitions without an owner",
    "offsets may expire",
    "could not be read",
)
"""The conditions that need attention, the worst first. A growing lag takes two observations: ``lag_change``."""


@nw.narwhalify
def group_summary(
    groups: FrameT,
    readiness: FrameT,
    group_lag: FrameT,
    group_balance: FrameT,
    ownership_findings: FrameT,
    partition_owners: FrameT,
    stale_stores: FrameT | None = None,
    members: FrameT | None = None,
    read_errors: FrameT | None = None,
) -> FrameT:
    """Every group once, with its lag in the store in use; beside it both stores' lags.

    Args:
        members: ``tables.MEMBERS``. Without them a registration that could not be read is not seen, and owners that
            are not registered count as members.
        read_errors: ``tables.READ_ERRORS``. Without them a znode whose name is not understood is not seen.

    Columns:
        group_id: the key.
        attention: the worst finding, one of ``ATTENTION``; null: nothing does, or it can't be reported.
        stage, effective_mode: see ``readiness``.
        kafka_state, group_type, protocol_type, protocol: the coordinator's; ``group_type`` is ``classic``,
            ``consumer`` (KIP-848), ``share`` or ``streams``, and null before Kafka 3.8; ``protocol`` is the assignor.
        protocol_stage: see ``protocol_stages``; null without ``members``.
        n_members, n_idle: how many are registered, and how many own nothing. An owner znode alone is no member, and
            a persistent znode is none either.
        n_partitions, n_unowned: as in ``group_lag``, of the store with more of them.
        lag: in records, of ``store_in_use``: the store of the mode in effect. Without a mode, it is the store that
            lacks fewer partitions, then the one that is further ahead: what lies behind it was left over.
        lag_retained: the same of the records that retention has not deleted yet. If it is 0, none waits to be read.
        zookeeper_lag, kafka_lag: in records; null: the store holds no offset that the group uses.
        stale_store: where offsets lie that the group doesn't use any more, see ``stale_stores``.
        n_beyond_end: partitions whose commit is beyond the end of the log, in the store with more of them.
        n_upper_bounds: partitions of a share group whose lag is an upper bound, see ``partition_lag``.
        n_unknown: partitions whose lag is unknown, of both stores, see ``member_lag``.
        is_unreadable: the group, a registration, an offset or a log of it could not be read, or its stage is unknown.
        n_findings, n_blockers, error: see ``ownership_findings``, ``blockers``; why the group could not be read.

    >>> import polars as pl
    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> text = {"group_id": pl.String}
    >>> groups = rows_of(schema.GROUPS, group_id="g", source="kafka", state="Empty")
    >>> stage = pl.DataFrame({"group_id": "g", "stage": "empty", "effective_mode": [None], "n_blockers": 0})
    >>> lags = {"group_id": "g", "store": "kafka", "n_partitions": 2, "n_unknown": 0, "n_without_commit": 0}
    >>> lags |= {"n_beyond_end": 0, "n_upper_bounds": 0, "n_unowned": 2, "lag": [7], "lag_retained": [7]}
    >>> balance = pl.DataFrame(schema=text | {"n_members": pl.Int64, "n_idle": pl.Int64})
    >>> findings = pl.DataFrame(schema=text | {"finding": pl.String})
    >>> owners = pl.DataFrame(schema=text | {"is_subscribed": pl.Boolean, "n_owners": pl.Int64})
    >>> rows = group_summary(groups, stage, pl.DataFrame(lags), balance, findings, owners)
    >>> rows.select("group_id", "attention", "stage", "n_members", "lag", "store_in_use", "zookeeper_lag").rows()
    [('g', 'no active members', 'empty', 0, 7, 'kafka', None)]
    """
    rows = groups.select("group_id").unique()
    rows = rows.join(_kafka_state(groups), on="group_id", how="left")
    rows = rows.join(readiness.select("group_id", "stage", "effective_mode", "n_blockers"), on="group_id", how="left")
    rows = rows.join(_members(group_balance, members), on="group_id", how="left")
    rows = rows.join(_partitions(group_lag), on="group_id", how="left")
    rows = rows.join(_unserved(partition_owners), on="group_id", how="left")
    for store in (ZOOKEEPER, KAFKA):
        rows = rows.join(_lag_in(store, group_lag), on="group_id", how="left")
    rows = rows.join(_findings(ownership_findings), on="group_id", how="left").join(
        _errors(groups), on="group_id", how="left"
    )
    rows = rows.join(_stages(groups, members), on="group_id", how="left")
    rows = rows.join(_left(stale_stores, groups), on="group_id", how="left")
    rows = rows.join(_unread_members(members, groups), on="group_id", how="left")
    rows = rows.join(_with_read_errors(read_errors, groups), on="group_id", how="left")
    rows = rows.with_columns(store_in_use=_store_in_use())
    is_zookeeper = nw.col("store_in_use") == ZOOKEEPER
    for name in ("lag", "lag_retained"):
        rows = rows.with_columns(nw.when(is_zookeeper).then(f"zookeeper_{name}").otherwise(f"kafka_{name}").alias(name))
    rows = rows.with_columns(is_unreadable=_is_unreadable())
    return rows.select(
        "group_id",
        _attention(),
        "stage",
        "effective_mode",
        "kafka_state",
        "group_type",
        "protocol_type",
        "protocol",
        "protocol_stage",
        _counted("n_members"),
        _counted("n_idle"),
        _counted("n_partitions"),
        _counted("n_unowned"),
        "lag",
        "lag_retained",
        "store_in_use",
        "zookeeper_lag",
        "kafka_lag",
        "stale_store",
        _counted("n_beyond_end"),
        _counted("n_upper_bounds"),
        _counted("n_unknown"),
        "is_unreadable",
        _counted("n_findings"),
        _counted("n_blockers"),
        "error",
    )


def _stages(groups: FrameT, members: FrameT | None) -> FrameT:
    if members is None:
        return groups.select("group_id").unique().with_columns(protocol_stage=nw.lit(None, nw.String))
    stages: FrameT = nw.from_native(protocol_stages(groups, members))
    return stages


def _left(stale_stores: FrameT | None, groups: FrameT) -> FrameT:
    if stale_stores is None:
        return groups.select("group_id").unique().with_columns(stale_store=nw.lit(None, nw.String))
    return stale_stores.select("group_id", stale_store="store")


def _unread_members(members: FrameT | None, groups: FrameT) -> FrameT:
    """n_unread_members: members whose registration could not be read."""
    if members is None:
        return groups.select("group_id").unique().with_columns(n_unread_members=nw.lit(0, nw.Int64))
    unread = members.filter(~nw.col("error").is_null())
    return unread.group_by("group_id").agg(n_unread_members=nw.len().cast(nw.Int64))


def _with_read_errors(read_errors: FrameT | None, groups: FrameT) -> FrameT:
    """has_read_error: something of the group could not be read, whatever it was."""
    if read_errors is None:
        return groups.select("group_id").unique().with_columns(has_read_error=nw.lit(False))
    named = read_errors.filter(~nw.col("group_id").is_null()).select("group_id").unique()
    return named.with_columns(has_read_error=nw.lit(True))


def _is_unreadable() -> nw.Expr:
    is_partly = (nw.col("n_unread").fill_null(0) > 0) | (nw.col("n_unread_members").fill_null(0) > 0)
    is_partly = is_partly | nw.col("has_read_error").fill_null(False)
    return ~nw.col("error").is_null() | is_partly | (nw.col("stage") == "unknown").fill_null(False)


def _attention() -> nw.Expr:
    has_members, is_read = nw.col("n_members") > 0, nw.col("error").is_null()
    waiting, commits = nw.coalesce("lag_retained", "lag"), nw.col("group_type").fill_null("") != SHARE
    rules = {
        BEYOND: nw.col("n_beyond_end") > 0,
        NOT_READ: is_read & (nw.col("n_members").is_null() | ~has_members) & (waiting > 0),
        OWNED_TWICE: nw.col("n_owned_twice") > 0,
        COMMITS_NOTHING: has_members & commits & (nw.col("n_without_commit") == nw.col("n_partitions")),
        WITHOUT_OWNER: has_members & (nw.col("n_unserved") > 0),
        EXPIRING: _is_expiring(),
        UNREADABLE: nw.col("is_unreadable"),
    }
    attention = nw.lit(None, nw.String)
    for name in reversed(ATTENTION):
        attention = nw.when(rules[name].fill_null(False)).then(nw.lit(name)).otherwise(attention)
    return attention.alias("attention")


def _is_expiring() -> nw.Expr:
    """Under the consumer protocol the brokers delete each offset by the age of its commit once no member is left. In a
    classic group this time begins when the last member leaves (``offsets.retention.minutes``)."""
    is_empty = (nw.col("group_type") == CONSUMER) & (nw.col("kafka_state") == "Empty")
    return is_empty & (nw.col("store_in_use") == KAFKA) & (nw.col("n_partitions") > 0)


def _counted(name: str) -> nw.Expr:
    """Without rows a count is 0, unless the group could not be read: then it is unknown."""
    known = nw.when(nw.col("error").is_null()).then(nw.col(name).fill_null(0)).otherwise(nw.col(name))
    return known.cast(nw.Int64).alias(name)


def _kafka_state(groups: FrameT) -> FrameT:
    kafka = groups.filter(nw.col("source") == KAFKA)
    return kafka.select("group_id", "group_type", "protocol_type", "protocol", kafka_state="state")


def _errors(groups: FrameT) -> FrameT:
    failed = groups.filter(~nw.col("error").is_null())
    return failed.group_by("group_id").agg(nw.col("error").min())


def _members(group_balance: FrameT, members: FrameT | None) -> FrameT:
    """An owner znode without a registration is no member: the member that made it may have died. A persistent
    registration is none either."""
    counts = group_balance.group_by("group_id").agg(nw.col("n_members", "n_idle").sum())
    if members is None:
        return counts
    registered = live_members(members).group_by("group_id").agg(n_members=nw.len().cast(nw.Int64))
    return counts.select("group_id", "n_idle").join(registered, on="group_id", how="left")


def _partitions(group_lag: FrameT) -> FrameT:
    rows = group_lag.with_columns(n_unread=nw.col("n_unknown") - nw.col("n_without_commit"))
    return rows.group_by("group_id").agg(
        nw.col("n_partitions", "n_unowned", "n_beyond_end", "n_upper_bounds").max(),
        nw.col("n_unknown", "n_unread").sum(),
        nw.col("n_without_commit").min(),
    )


def _findings(ownership_findings: FrameT) -> FrameT:
    is_twice = (nw.col("finding") == "owned_twice").cast(nw.Int64)
    flagged = ownership_findings.select("group_id", n_owned_twice=is_twice)
    return flagged.group_by("group_id").agg(
        n_findings=nw.len().cast(nw.Int64), n_owned_twice=nw.col("n_owned_twice").sum()
    )


def _unserved(partition_owners: FrameT) -> FrameT:
    """n_unserved: subscribed partitions without an owner. A partition that is not subscribed needs none."""
    unowned = partition_owners.filter(nw.col("is_subscribed") & (nw.col("n_owners") == 0))
    return unowned.group_by("group_id").agg(n_unserved=nw.len())


def _lag_in(store: str, group_lag: FrameT) -> FrameT:
    names = {"lag": "lag", "lag_retained": "lag_retained", "missing": "n_without_commit"}
    renamed = {f"{store}_{name}": nw.col(column) for name, column in names.items()}
    return group_lag.filter(nw.col("store") == store).select("group_id", **renamed)


def _store_in_use() -> nw.Expr:
    in_zookeeper, in_kafka = nw.col("zookeeper_lag"), nw.col("kafka_lag")
    missing, missing_in_kafka = nw.col("zookeeper_missing"), nw.col("kafka_missing")
    is_ahead = (missing < missing_in_kafka) | ((missing == missing_in_kafka) & (in_zookeeper < in_kafka))
    by_mode = (
        nw.when(nw.col("effective_mode").is_null()).then(is_ahead).otherwise(nw.col("effective_mode") == ZOOKEEPER)
    )
    return (
        nw.when(in_kafka.is_null() & ~in_zookeeper.is_null())
        .then(nw.lit(ZOOKEEPER))
        .when(in_zookeeper.is_null() & ~in_kafka.is_null())
        .then(nw.lit(KAFKA))
        .when(~in_kafka.is_null() & by_mode)
        .then(nw.lit(ZOOKEEPER))
        .when(~in_kafka.is_null())
        .then(nw.lit(KAFKA))
    )


@nw.narwhalify
def finding_summary(ownership_findings: FrameT) -> FrameT:
    """``ownership_findings`` per group and kind.

    Columns:
        group_id, finding: the key; the kinds: see ``ownership_findings``.
        times: how many findings of that kind.
        example: one of their sentences, the first by name.

    >>> import polars as pl
    >>> rows = {"group_id": "g", "finding": ["unowned", "unowned"], "sentence": ["t-1 is …", "t-0 is …"]}
    >>> finding_summary(pl.DataFrame(rows)).rows()
    [('g', 'unowned', 2, 't-0 is …')]
    """
    return ownership_findings.group_by("group_id", "finding").agg(
        times=nw.len().cast(nw.Int64), example=nw.col("sentence").min()
    )
