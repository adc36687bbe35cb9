"""The members of each group, and the time since which it has none: by a snapshot, a history, or the coordinators' "
"topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import polars as pl

from kit.groups import analyses as groups_analyses
from kit.groups.analyze.idle import DAY_MS, DEAD_AFTER_DAYS
from kit.groups.snapshot import Frame, Snapshot, collect, in_polars, verify_read
from kit.health.sources import commits_of_history, commits_of_topic, in_ms, seen_at_ms
from kit.tables.polars import as_polars
from kit.tables.spark import in_spark


def idle_groups(
    snapshot: Snapshot[Frame],
    partition_lag: Frame,
    activity: pl.DataFrame | None = None,
    dead_after_days: float = DEAD_AFTER_DAYS,
) -> Frame:
    """The members of each group, and since when it has none; columns as ``analyze.idle_groups`` has them.

    Args:
        partition_lag: ``kit.views.lag`` of the same snapshot.
        activity: :func:`activity_of_history` or :func:`activity_of_topic`; without it, when a group committed to Kafka
            is unknown, for a coordinator does not report it.
    """
    last: Any = None
    if activity is not None:
        last = activity if isinstance(snapshot.groups, pl.DataFrame) else _on_spark(snapshot.groups, activity)
    result: Frame = groups_analyses.idle_groups(
        groups=snapshot.groups,
        members=snapshot.members,
        committed_offsets=in_ms(snapshot.committed_offsets, written_ms="committed_at"),
        topic_partitions=snapshot.topic_partitions,
        group_lag=groups_analyses.group_lag(partition_lag),
        at_ms=seen_at_ms(in_polars(snapshot)),
        activity=last,
        dead_after_ms=round(dead_after_days * DAY_MS),
    )
    return result


def verify_idle(snapshot: Snapshot[Frame]) -> str:
    """Verify like ``verify_read``, except for topics that don't exist: their groups' ``n_gone`` counts them.

    Raises:
        PartialRead: naming what could not be read.
    """
    errors, known = collect(snapshot.read_errors), collect(snapshot.topic_partitions)["topic"].unique()
    of_topic = pl.col("group_id").is_null() & pl.col("topic").is_not_null() & ~pl.col("topic").str.contains("/")
    is_gone = of_topic & ~pl.col("topic").is_in(known.implode())
    return verify_read(replace(in_polars(snapshot), read_errors=errors.filter(~is_gone.fill_null(False))))


def activity_of_history(committed_offsets: Any, members: Any) -> pl.DataFrame:
    """Return when each group last committed and last had a member, by a history's ``COMMITTED_OFFSETS`` and
    ``MEMBERS``.

    A commit of the same offset shows in no snapshot, a member does: so the later of the two counts.

    Columns: group_id, store, committed_ms, present_ms (epoch; null: never seen).
    """
    commits = _last_commits(commits_of_history(committed_offsets))
    present = _latest(_renamed(in_ms(members, present_ms="observed_at"), source="store"), present_ms="present_ms")
    return _joined(commits, present)


def activity_of_topic(offset_commits: Any, group_generations: Any, group_epochs: Any) -> pl.DataFrame:
    """The same by the tables of ``read_offsets_topic``: the coordinators write down when a group's members changed.

    Columns: as :func:`activity_of_history`.
    """
    commits = _last_commits(commits_of_topic(offset_commits))
    generations = in_ms(group_generations, state_ms="state_at", written_ms="written_at")
    epochs = in_ms(group_epochs, written_ms="written_at")
    changes = [_latest_change(generations, "state_ms", "written_ms"), _latest_change(epochs, "written_ms")]
    return _joined(commits, pl.concat(changes).group_by("group_id", "store").agg(pl.col("present_ms").max()))


def _last_commits(commits: Any) -> pl.DataFrame:
    """An offset that was forgotten, by a tombstone or since the snapshot before, is no commit."""
    made: Any = nw.from_native(commits).filter(~nw.col("committed_offset").is_null())
    return _latest(made.to_native(), committed_ms="committed_ms")


def _latest(rows: Any, **columns: str) -> pl.DataFrame:
    found: Any = (
        nw.from_native(rows)
        .group_by("group_id", "store")
        .agg(**{name: nw.col(of).max() for name, of in columns.items()})
    )
    return as_polars(found.to_native())


def _latest_change(rows: Any, *times: str) -> pl.DataFrame:
    """present_ms of groups of Kafka; a tombstone of a group is not a member."""
    found: Any = nw.from_native(rows).filter(~nw.col("is_tombstone"))
    found = found.with_columns(store=nw.lit("kafka"), at_ms=nw.coalesce(*map(nw.col, times)))
    return _latest(found.to_native(), present_ms="at_ms")


def _renamed(rows: Any, **names: str) -> Any:
    return nw.from_native(rows).rename(names).to_native()


def _joined(commits: pl.DataFrame, present: pl.DataFrame) -> pl.DataFrame:
    return commits.join(present, on=["group_id", "store"], how="full", coalesce=True)


def _on_spark(beside: Any, activity: pl.DataFrame) -> Any:
    import pyarrow as pa

    columns = {"group_id": pa.string(), "store": pa.string(), "committed_ms": pa.int64(), "present_ms": pa.int64()}
    return in_spark(beside.sparkSession, activity.select(*columns).to_arrow().cast(pa.schema(columns)))
