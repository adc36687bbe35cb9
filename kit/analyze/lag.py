"""How far behind a group is, per partition, with every part kept and nothing guessed."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.coverage import GROUP_PARTITION, subscribed_partitions

_KEY = ["group_id", "store", "topic", "partition"]
_PARTITION = ["topic", "partition"]


@nw.narwhalify
def partition_lag(
    committed_offsets: FrameT,
    log_offsets: FrameT,
    ownership: FrameT,
    subscriptions: FrameT,
    topic_partitions: FrameT,
    groups: FrameT | None = None,
) -> FrameT:
    """Lag per group, store and partition, in records; the end is the high watermark.

    Considered are the partitions assigned, committed, or of a subscribed topic, in every store of the group: those
    that hold an offset of it, else the sources that know its members. The parts are read commits first, so
    ``lag_raw`` is negative only where the log shrank (a recreated topic) or the offset was set by hand.

    Columns: group_id, store, topic, partition; member_id (the owner by that store's source, else by the
    other; null if none; of several the first by name); committed_offset, log_start_offset, log_end_offset;
    lag_raw = end − committed; lag = lag_raw, at least 0; lag_retained = end − max(start, committed), at least 0;
    lost = start − committed, at least 0 (committed, unread and already deleted). Each is null when one of its parts is.
    uncommitted: this store is known to hold no offset. error: why a value is missing. With ``groups``, a group that
    could not be read in that source has unknown, not uncommitted, partitions.
    """
    committed = _committed(committed_offsets)
    stores = _stores(committed, ownership, subscriptions)
    places = [ownership.select(*GROUP_PARTITION), subscribed_partitions(subscriptions, topic_partitions)]
    elsewhere = nw.concat(places).join(stores, on="group_id", how="inner").select(*_KEY)
    missing = nw.concat([elsewhere, _other_stores(committed_offsets, stores)])
    rows = nw.concat([committed, _without_offset(missing, committed)])
    rows = rows.join(_owners(ownership), on=_KEY, how="left")
    rows = rows.join(_any_owner(ownership), on=GROUP_PARTITION, how="left")
    rows = rows.join(_log(log_offsets), on=_PARTITION, how="left")
    rows = rows.join(_metadata(topic_partitions), on=_PARTITION, how="left")
    return _measured(_with_group_error(rows, groups))


def _measured(rows: FrameT) -> FrameT:
    is_unread = ~nw.col("committed_error").is_null() | ~nw.col("group_error").is_null()
    lag_raw = nw.col("log_end_offset") - nw.col("committed_offset")
    return rows.select(
        *_KEY,
        nw.coalesce(nw.col("member_id"), nw.col("other_owner")).alias("member_id"),
        "committed_offset",
        "log_start_offset",
        "log_end_offset",
        lag_raw=lag_raw,
        lag=_at_least_zero(lag_raw),
        lag_retained=_at_least_zero(nw.col("log_end_offset") - _first_readable()),
        lost=_at_least_zero(nw.col("log_start_offset") - nw.col("committed_offset")),
        uncommitted=nw.col("committed_offset").is_null() & ~is_unread,
        error=_error(),
    )


def _committed(committed_offsets: FrameT) -> FrameT:
    return committed_offsets.filter(_is_told()).select(*_KEY, "committed_offset", committed_error=nw.col("error"))


def _is_told() -> nw.Expr:
    """A row without offset and without error says that this store holds none."""
    return ~nw.col("committed_offset").is_null() | ~nw.col("error").is_null()


def _stores(committed: FrameT, ownership: FrameT, subscriptions: FrameT) -> FrameT:
    known = committed.select("group_id", "store").unique()
    sources = [frame.select("group_id", store=nw.col("source")).unique() for frame in (ownership, subscriptions)]
    others = nw.concat(sources).unique().join(known, on="group_id", how="anti")
    return nw.concat([known, others])


def _other_stores(committed_offsets: FrameT, stores: FrameT) -> FrameT:
    """Keys of committed partitions in the group's stores that do not tell an offset of them."""
    told = committed_offsets.select(*GROUP_PARTITION, teller=nw.col("store"), is_told=_is_told())
    rows = told.join(stores, on="group_id", how="inner")
    return rows.filter((nw.col("teller") != nw.col("store")) | ~nw.col("is_told")).select(*_KEY)


def _without_offset(keys: FrameT, committed: FrameT) -> FrameT:
    """Sorted out before they are made unique: few remain, and most of the work is over."""
    rest = keys.join(committed, on=_KEY, how="anti").unique()
    return rest.with_columns(committed_offset=nw.lit(None, nw.Int64), committed_error=nw.lit(None, nw.String))


def _owners(ownership: FrameT) -> FrameT:
    owners = ownership.select(*GROUP_PARTITION, "member_id", store=nw.col("source"), owner_error=nw.col("error"))
    return owners.group_by(*_KEY).agg(nw.col("member_id").min(), nw.col("owner_error").min())


def _any_owner(ownership: FrameT) -> FrameT:
    """An old consumer that commits to Kafka owns by ZooKeeper alone."""
    return ownership.group_by(*GROUP_PARTITION).agg(other_owner=nw.col("member_id").min())


def _log(log_offsets: FrameT) -> FrameT:
    return log_offsets.select(*_PARTITION, "log_start_offset", "log_end_offset", log_error=nw.col("error"))


def _metadata(topic_partitions: FrameT) -> FrameT:
    return topic_partitions.select(
        *_PARTITION, is_known=nw.lit(True), has_leader=~nw.col("leader").is_null(), partition_error=nw.col("error")
    )


def _with_group_error(rows: FrameT, groups: FrameT | None) -> FrameT:
    if groups is None:
        return rows.with_columns(group_error=nw.lit(None, nw.String))
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
        _told("group", nw.col("group_error")),
        _told("committed offset", nw.col("committed_error")),
        _told("log offsets", _log_reason()),
        _told("owner", nw.col("owner_error")),
    ]
    joined = nw.concat_str(reasons, separator="; ", ignore_nulls=True)
    return nw.when(joined != "").then(joined)


def _told(what: str, reason: nw.Expr) -> nw.Expr:
    return nw.concat_str([nw.lit(f"{what}: "), reason])


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
