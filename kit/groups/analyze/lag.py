"""Measure the lag of a group, per partition, with every part kept and nothing guessed."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.beyond_end import beyond_end_of
from kit.groups.analyze.coverage import subscribed_partitions
from kit.groups.analyze.stale import in_use
from kit.tables.groups import GROUP_PARTITION, KAFKA, SHARE, ZOOKEEPER

_KEY = ["group_id", "store", "topic", "partition"]
_PARTITION = ["topic", "partition"]
_STORES = [ZOOKEEPER, KAFKA]
_PARTS: dict[str, type[nw.Int64 | nw.String]] = {
    "offset": nw.Int64,
    "unfinished": nw.Int64,
    "commit_error": nw.String,
    "member": nw.String,
    "owner_error": nw.String,
}
_NAMES = {
    "offset": "committed_offset",
    "unfinished": "unfinished",
    "commit_error": "committed_error",
    "member": "member_id",
    "owner_error": "owner_error",
}


@nw.narwhalify
def partition_lag(
    committed_offsets: FrameT,
    log_offsets: FrameT,
    ownership: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    groups: FrameT | None = None,
    stale_stores: FrameT | None = None,
) -> FrameT:
    """Lag per group, store and partition, in records; the end of a log is its high watermark.

    A partition has a row when it is assigned, committed, or of a subscribed topic. It has one row per store of the
    group: the stores that hold an offset of the group; if none does, the sources that know its members. Offsets left
    in a store that is no longer in use have rows of their own, marked ``is_stale``. Committed
    offsets are read before log offsets, so ``lag_raw`` is negative only where the log shrank (a recreated topic) or
    where an operator set the offset. A lag is null when one of its parts is unknown.

    Args:
        groups: ``tables.GROUPS``. With it, a group that could not be read in a source has unknown partitions there,
            not partitions without a commit.
        stale_stores: rows of ``kit.analyze.stale_stores``. Without them no store counts as stale.

    Columns:
        group_id, store, topic, partition: the key.
        member_id: the owner by the store's own source, else by the other one; the first by name where there are
            several.
        committed_offset, log_start_offset, log_end_offset: the parts. The committed offset of a share group is its
            start offset (SPSO).
        lag_raw: end − committed.
        lag: ``lag_raw``, at least 0. Of a share group it is the broker's count of the records that no member has
            finished (KIP-1226), where the broker has one.
        lag_retained: end − max(start, committed), at least 0 and at most ``lag``.
        is_upper_bound: ``lag`` is of a share group, and the broker counts nothing: members may have finished some of
            the records behind the start offset.
        expired_unread: start − committed, at least 0: records deleted before the group read them.
        beyond_end: committed − end, at least 0: by so much the commit is beyond the end of the log. Its lag is 0, but
            the group's position is lost: its consumers move by ``auto.offset.reset`` at their next fetch.
        has_no_commit: the store was read and holds no offset.
        is_stale: the group left this store (``kit.analyze.stale_stores``): its lag has no effect and is in no total.
        error: why a value is missing.

    The log begins at 70, so the records from 40 to 69 are gone:

    >>> import polars as pl
    >>> from kit.tables import schema as tables
    >>> from kit.tables.groups import CommittedOffset, LogOffset
    >>> commit = CommittedOffset("g", "kafka", "t", 0, 40, *[None] * 5)
    >>> commits = pl.DataFrame(tables.COMMITTED_OFFSETS.from_rows([commit]))
    >>> logs = pl.DataFrame(tables.LOG_OFFSETS.from_rows([LogOffset("t", 0, 70, 100)]))
    >>> others = (tables.OWNERSHIP, tables.SUBSCRIPTIONS, tables.TOPIC_PARTITIONS)
    >>> rows = partition_lag(commits, logs, *(pl.DataFrame(table.from_rows([])) for table in others))
    >>> rows.select("lag", "lag_retained", "expired_unread", "has_no_commit").rows()
    [(60, 30, 30, False)]
    """
    parts = [_commits(committed_offsets), _owners(ownership), _subscribed(subscriptions, topic_partitions)]
    sides = nw.concat(parts).group_by(*GROUP_PARTITION).agg(*_first_by_name())
    stores = _with_stale(committed_offsets, ownership, subscriptions, stale_stores)
    rows = _per_store(sides.join(stores, on="group_id", how="inner"))
    rows = rows.filter(~nw.col("is_stale") | ~nw.col("committed_offset").is_null())
    rows = rows.join(_log(log_offsets), on=_PARTITION, how="left")
    rows = rows.join(_metadata(topic_partitions), on=_PARTITION, how="left")
    return _measured(_with_group_facts(rows, groups))


def _measured(rows: FrameT) -> FrameT:
    is_unread = ~nw.col("committed_error").is_null() | ~nw.col("group_error").is_null()
    lag_raw = nw.col("log_end_offset") - nw.col("committed_offset")
    retained, unfinished = _at_least_zero(nw.col("log_end_offset") - _first_readable()), nw.col("unfinished")
    is_share = (nw.col("group_type") == SHARE).fill_null(False)
    return rows.select(
        *_KEY,
        "member_id",
        "committed_offset",
        "log_start_offset",
        "log_end_offset",
        lag_raw=lag_raw,
        lag=nw.when(~lag_raw.is_null()).then(nw.coalesce(unfinished, _at_least_zero(lag_raw))),
        lag_retained=nw.when(unfinished < retained).then(unfinished).otherwise(retained),
        expired_unread=_at_least_zero(nw.col("log_start_offset") - nw.col("committed_offset")),
        beyond_end=beyond_end_of(nw.col("committed_offset"), nw.col("log_end_offset")),
        has_no_commit=nw.col("committed_offset").is_null() & ~is_unread,
        is_stale=nw.col("is_stale"),
        is_upper_bound=is_share & unfinished.is_null() & ~lag_raw.is_null(),
        error=_error(),
    )


def _first_by_name() -> list[nw.Expr]:
    """Each part has one value, except the owner where two Kafka members are assigned."""
    return [nw.col(f"{store}_{part}").min() for store in _STORES for part in _PARTS]


def _commits(committed_offsets: FrameT) -> FrameT:
    return _sides(
        committed_offsets, "store", {"offset": "committed_offset", "unfinished": "unfinished", "commit_error": "error"}
    )


def _owners(ownership: FrameT) -> FrameT:
    return _sides(ownership, "source", {"member": "member_id", "owner_error": "error"})


def _subscribed(subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    rows = subscribed_partitions(subscriptions, topic_partitions)
    return _sides(rows.with_columns(source=nw.lit(None, nw.String)), "source", {})


def _sides(rows: FrameT, source: str, columns: Mapping[str, str]) -> FrameT:
    """One column per store and part: a single aggregation then puts offsets, owners and both stores together."""
    values = {
        f"{store}_{part}": nw.when(nw.col(source) == store).then(nw.col(columns[part]))
        if part in columns
        else nw.lit(None, dtype)
        for store in _STORES
        for part, dtype in _PARTS.items()
    }
    return rows.select(*GROUP_PARTITION, **values)


def _stores(held: FrameT, ownership: FrameT, subscriptions: FrameT) -> FrameT:
    """A store that holds an offset of the group counts 2, one whose source knows members 1: the highest are its own."""
    seen = [
        held.select("group_id", *_weights("store", 2)),
        ownership.select("group_id", *_weights("source", 1)),
        subscriptions.select("group_id", *_weights("source", 1)),
    ]
    weights = nw.concat(seen).group_by("group_id").agg(*[nw.col(store).max() for store in _STORES])
    highest = weights.with_columns(highest=nw.max_horizontal(*_STORES))
    rows = highest.unpivot(_STORES, index=["group_id", "highest"], variable_name="store", value_name="weight")
    return rows.filter(nw.col("weight") == nw.col("highest")).select("group_id", "store")


def _with_stale(
    committed_offsets: FrameT,
    ownership: FrameT,
    subscriptions: FrameT,
    stale: FrameT | None,
) -> FrameT:
    """The stores that a group may use, and those that it left. Columns: group_id, store, is_stale."""
    used = nw.lit(False)
    is_known = ~nw.col("committed_offset").is_null() | ~nw.col("error").is_null()
    held = committed_offsets.filter(is_known).select("group_id", "store")
    if stale is None:
        return _stores(held, ownership, subscriptions).with_columns(is_stale=used)
    stores = _stores(in_use(held, stale), ownership, subscriptions).join(stale, on=["group_id", "store"], how="anti")
    return nw.concat([stores.with_columns(is_stale=used), stale.with_columns(is_stale=nw.lit(True))])


def _weights(source: str, weight: int) -> list[nw.Expr]:
    return [
        nw.when(nw.col(source) == store).then(nw.lit(weight)).otherwise(nw.lit(0)).alias(store) for store in _STORES
    ]


def _per_store(sides: FrameT) -> FrameT:
    own = {name: _by_store(part, own_side=True) for part, name in _NAMES.items()}
    # An old consumer that commits to Kafka owns by ZooKeeper alone.
    own["member_id"] = nw.coalesce(own["member_id"], _by_store("member", own_side=False))
    return sides.select(*_KEY, "is_stale", **own)


def _by_store(part: str, own_side: bool) -> nw.Expr:
    zookeeper, kafka = nw.col(f"{ZOOKEEPER}_{part}"), nw.col(f"{KAFKA}_{part}")
    return nw.when((nw.col("store") == ZOOKEEPER) == nw.lit(own_side)).then(zookeeper).otherwise(kafka)


def _log(log_offsets: FrameT) -> FrameT:
    return log_offsets.select(*_PARTITION, "log_start_offset", "log_end_offset", log_error=nw.col("error"))


def _metadata(topic_partitions: FrameT) -> FrameT:
    return topic_partitions.select(
        *_PARTITION, is_known=nw.lit(True), has_leader=~nw.col("leader").is_null(), partition_error=nw.col("error")
    )


def _with_group_facts(rows: FrameT, groups: FrameT | None) -> FrameT:
    if groups is None:
        return rows.with_columns(group_error=nw.lit(None, nw.String), group_type=nw.lit(None, nw.String))
    types = groups.filter(nw.col("source") == KAFKA).select("group_id", "group_type", store=nw.col("source"))
    rows = rows.join(types.unique(subset=["group_id"]), on=["group_id", "store"], how="left")
    failed = groups.filter(~nw.col("error").is_null())
    errors = failed.select("group_id", store=nw.col("source"), group_error=nw.col("error"))
    return rows.join(errors, on=["group_id", "store"], how="left")


def _first_readable() -> nw.Expr:
    """max(log start, committed); null unless both are known, where a horizontal maximum would take either."""
    start, committed = nw.col("log_start_offset"), nw.col("committed_offset")
    return nw.when(committed < start).then(start).when(committed >= start).then(committed)


def _at_least_zero(records: nw.Expr) -> nw.Expr:
    return nw.when(records < 0).then(nw.lit(0, nw.Int64)).otherwise(records)


def _error() -> nw.Expr:
    reasons = [
        _reason("group", nw.col("group_error")),
        _reason("committed offset", nw.col("committed_error")),
        _reason("log offsets", _log_reason()),
        _reason("owner", nw.col("owner_error")),
    ]
    joined = nw.concat_str(reasons, separator="; ", ignore_nulls=True)
    return nw.when(joined != "").then(joined)


def _reason(label: str, reason: nw.Expr) -> nw.Expr:
    return nw.concat_str([nw.lit(f"{label}: "), reason])


def _log_reason() -> nw.Expr:
    is_missing = nw.col("log_start_offset").is_null() | nw.col("log_end_offset").is_null()
    unexplained = (
        nw.when(nw.col("is_known").is_null())
        .then(nw.lit("no such topic-partition (deleted, or the topic was recreated smaller)"))
        .when(~nw.col("has_leader"))
        .then(nw.lit("no leader"))
        .otherwise(nw.lit("not read"))
    )
    reason = nw.coalesce(nw.col("log_error"), nw.col("partition_error"), unexplained)
    return nw.when(is_missing).then(reason)
