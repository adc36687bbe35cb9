"""A snapshot of a cluster: what ``kit.groups.read.whole_cluster`` read, as Spark or polars DataFrames."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from kit.clients.cluster import Cluster
from kit.errors import NotFound, PartialRead
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.read.whole_cluster import EVERY_GROUP, read_cluster
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, SnapshotInfo
from kit.tables.polars import as_polars, stamped_frame
from kit.tables.snapshot import Frame as Frame, Snapshot as Snapshot, in_polars as in_polars
from kit.tables.spark import in_spark
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.naming import listed
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED = 3
"""The most groups that one sentence names."""


def take_snapshot(spark: SparkSession, cluster: Cluster, groups: str = EVERY_GROUP) -> Snapshot[DataFrame]:
    """Observe the cluster and hold what was seen as Spark DataFrames; actions on them read nothing again.

    Args:
        groups: a regular expression; only groups whose id matches it as a whole are read. If every group is asked for,
            those that match ``leave_out_groups`` of the profile are not read.

    Raises:
        ConnectError: ZooKeeper or all brokers stopped answering. A single failure is an ``error`` in its row.
        InputError: ``groups`` is not a regular expression.
    """
    info, rows = read_cluster(cluster, groups)
    snapshot_id = _snapshot_id(info)
    stamped = {table: table.stamp(columns.arrow(), snapshot_id, info.ended_at) for table, columns in rows.items()}
    return Snapshot(snapshot_id, **{table.name: in_spark(spark, stamped[table]) for table in tables.ALL})


def observe(cluster: Cluster, groups: str | Collection[str] = EVERY_GROUP) -> Snapshot[pl.DataFrame]:
    """Observe the cluster as :func:`take_snapshot` does; the tables are polars DataFrames, and no Spark is started.

    ``groups``: as of :func:`kit.groups.read.whole_cluster.chosen_groups`.
    """
    info, rows = read_cluster(cluster, groups)
    snapshot_id = _snapshot_id(info)
    frames = {table.name: stamped_frame(columns, snapshot_id, info.ended_at) for table, columns in rows.items()}
    return Snapshot(snapshot_id, **frames)


def of_group(snapshot: Snapshot[Frame], group_id: str) -> Snapshot[Frame]:
    """The rows of one group; tables of the whole cluster stay whole, read errors are those that touch the group.

    Raises:
        NotFound: neither ZooKeeper nor Kafka has that group.
        PartialRead: the group was not read, and not every group could be listed.
    """
    frames = {table.name: nw.from_native(getattr(snapshot, table.name)) for table in tables.ALL}
    for name, frame in frames.items():
        if "group_id" in frame.collect_schema().names() and name != tables.READ_ERRORS.name:
            frames[name] = frame.filter(nw.col("group_id") == group_id)
    if collect(nw.to_native(frames["groups"])).is_empty():
        if unlisted := _unlisted(snapshot):
            raise PartialRead(f"group {group_id!r} is not among the groups that could be read: {unlisted[0]}")
        raise NotFound(
            f"there is no group {group_id!r}, neither in ZooKeeper nor in Kafka: see offramp groups{IF_HIDDEN}"
        )
    referring = [frames[name].select("topic") for name in ("subscriptions", "ownership", "committed_offsets")]
    errors = frames["read_errors"]
    of_all, is_whole = errors.filter(nw.col("group_id").is_null()), nw.col("topic").is_null()
    of_topics = of_all.filter(~is_whole).join(nw.concat(referring).unique(), on="topic", how="semi")
    frames["read_errors"] = nw.concat(
        [errors.filter(nw.col("group_id") == group_id), of_all.filter(is_whole), of_topics]
    )
    return Snapshot(snapshot.snapshot_id, **{name: nw.to_native(frame) for name, frame in frames.items()})


def _unlisted(snapshot: Snapshot[Frame]) -> list[str]:
    """Return why not every group of Kafka could be listed."""
    rows = failed_reads(snapshot).filter(pl.col("source") == KAFKA, pl.col("group_id").is_null())
    rows = rows.filter(pl.col("topic").is_null() | (pl.col("topic") == OFFSETS_TOPIC))
    return [f"{subject}: {error}" for subject, error in rows.select("subject", "error").rows()]


def verify_read(snapshot: Snapshot[Frame]) -> str:
    """A sentence when everything could be read; it names the risk if the login can't see every group.

    Raises:
        PartialRead: naming what could not be read (the first 20) and why.
    """
    lines = unread(snapshot)
    if lines:
        shown = "\n".join([*lines[:20], *["…"] * (len(lines) > 20)])
        raise PartialRead(
            f"{quantity(len(lines), 'thing')} could not be read, so the values are unknown, not zero:\n{shown}"
        )
    may_miss = unseen_groups(snapshot)
    if may_miss is not None:
        return f"Snapshot {snapshot.snapshot_id}: everything that the login can see was read. {may_miss}."
    return f"Snapshot {snapshot.snapshot_id}: everything was read."


def unseen_groups(snapshot: Snapshot[Frame]) -> str | None:
    """Return why groups or figures of groups may be missing from the snapshot, as a sentence; None: it has every group,
    no tree of another system was left out, and every group is of a type that is supported.
    """
    rows = collect(snapshot.snapshots)
    found: str | None = rows["unseen_groups"][0] if "unseen_groups" in rows.columns and len(rows) else None
    return ". ".join(filter(None, [found, unsupported_groups(snapshot)])) or None


def unsupported_groups(snapshot: Snapshot[Frame]) -> str | None:
    """Return which groups are of a type that the brokers or offramp can't describe, as a sentence; None: there is
    none.
    """
    rows = collect(snapshot.read_errors).filter(pl.col("is_unsupported").fill_null(False))
    names = rows["group_id"].drop_nulls().unique().sort().to_list()
    if not names:
        return None
    shown = listed([visible(name) for name in names[:_NAMED]])
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"The type of these groups is not supported, so their members, offsets and lag are unknown: {shown}{more}"


def failed_reads(snapshot: Snapshot[Frame]) -> pl.DataFrame:
    """``tables.READ_ERRORS`` without what is not supported: what failed, and may succeed another time."""
    return collect(snapshot.read_errors).filter(~pl.col("is_unsupported").fill_null(False))


def unread(snapshot: Snapshot[Frame]) -> list[str]:
    """Return what could not be read, and why: one printable line each, by name. Unsupported groups are not among
    them.
    """
    rows = failed_reads(snapshot)
    return [visible(f"{row['source']}: {row['subject']}: {row['error']}") for row in rows.sort("subject").to_dicts()]


def verify_each(*checks: Callable[[], str | None]) -> list[str]:
    """Make all checks, and name what each of them found in one error; → their sentences.

    Args:
        checks: ``verify_read``, ``kit.health.sources.verify_time_lag``, and others that raise ``PartialRead``.

    Raises:
        PartialRead: at least one check raised it.
    """
    sentences, found = list[str](), list[str]()
    for check in checks:
        try:
            sentences += filter(None, [check()])
        except PartialRead as error:
            found.append(str(error))
    if found:
        raise PartialRead("\n".join(found))
    return sentences


def collect(frame: Any) -> pl.DataFrame:
    """A small frame of either engine, without the stamp, as polars: for tables and charts. Spark works now."""
    return as_polars(frame).drop("snapshot_id", "observed_at", strict=False)


def _snapshot_id(info: SnapshotInfo) -> str:
    return f"{info.started_at:%Y%m%dT%H%M%S}Z-{secrets.token_hex(4)}"
