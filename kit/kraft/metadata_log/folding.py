"""Partitions and their changes, by columns → each partition as it is at the end: ``image`` by columns.

The same rules as ``Image``'s, for logs in which every record fits what is before it; another log is NeedsRecordReader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from kit.kraft.metadata_log.bulk import SCHEMA, Bulk
from kit.kraft.metadata_log.record_shapes import CHANGE, PARTITION
from kit.kraft.metadata_log.records import ABORT, BEGIN, END, Record
from kit.kraft.metadata_log.runs import NeedsRecordReader

_KEY = ("topic", "partition")
_CHANGED = ("replicas", "isr", "removing", "adding", "leader", "recovery")
_UNCHANGED_LEADER, _UNCHANGED_RECOVERY = -2, -1
_NEVER = 2**63 - 1
_MOST_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Folded:
    """Ids of all topics; the partitions (``bulk.SCHEMA``) of those that are left, ``topic`` is the place of its id."""

    topic_ids: tuple[str, ...]
    rows: pl.DataFrame


@dataclass
class _Lives:
    """The place of each topic, and the offsets between which its partitions' records are; id → place."""

    places: dict[str, int]
    created: list[int]
    removed: list[int]

    def follow(self, record: Record) -> None:
        topic_id = (record.body or {}).get("topicId")
        if record.name == "ClearElr" or (record.name == "Topic" and topic_id in self.places):
            raise NeedsRecordReader
        if record.name == "Topic" and topic_id is not None:
            self.places[topic_id] = len(self.places)
            self.created.append(record.offset or 0)
            self.removed.append(_NEVER)
        elif record.name == "RemoveTopic" and topic_id in self.places:
            place = self.places[topic_id]
            self.removed[place] = min(self.removed[place], record.offset or 0)


def folded(before: Folded | None, bulks: Sequence[Bulk]) -> Folded:
    """The partitions after the records of files that follow on ``before``.

    Raises:
        NeedsRecordReader: a record does not fit, or an open or aborted transaction is among them.
    """
    rest = [each for bulk in bulks for each in bulk.rest]
    _refuse_transactions(rest)
    ids = before.topic_ids if before else ()
    lives = _Lives({each: place for place, each in enumerate(ids)}, [-1] * len(ids), [_NEVER] * len(ids))
    for record in rest:
        lives.follow(record)
    partitions, changes = (_rows(bulks, kind, lives) for kind in (PARTITION, CHANGE))
    if before is not None:
        partitions = _together([before.rows, partitions])
    rows = _changed(partitions, _named(changes)) if len(changes) else partitions
    _refuse_twice(partitions)
    gone = [place for place, each in enumerate(lives.removed) if each != _NEVER]
    return Folded(tuple(lives.places), rows.filter(~pl.col("topic").is_in(gone)) if gone else rows)


def _rows(bulks: Sequence[Bulk], kind: int, lives: _Lives) -> pl.DataFrame:
    """Rows of all files, topics by their places here; each within its topic's life."""
    frames = list[pl.DataFrame]()
    for bulk in bulks:
        places = np.array([lives.places.get(each, -1) for each in bulk.topic_ids], np.int32)
        frames += (_placed(frame, places) for frame in bulk.rows[kind])
    rows = _together(frames)
    offsets, topics = rows["offset"].to_numpy(), rows["topic"].to_numpy()
    created, removed = np.array(lives.created, np.int64), np.array(lives.removed, np.int64)
    if len(rows) and not ((created[topics] < offsets) & (offsets < removed[topics])).all():
        raise NeedsRecordReader
    return rows


def _together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames below one another; lists of different lengths are no Array."""
    some = [each for each in frames if len(each)]
    if not some:
        return pl.DataFrame(schema=SCHEMA)
    return pl.concat(some if len({tuple(each.dtypes) for each in some}) == 1 else map(with_lists, some), rechunk=True)


def with_lists(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the types of ``bulk.SCHEMA``."""
    return rows.cast(SCHEMA)  # type: ignore[arg-type]


def _placed(frame: pl.DataFrame, places: npt.NDArray[np.int32]) -> pl.DataFrame:
    topics = places[frame["topic"].to_numpy()]
    if (topics < 0).any():
        raise NeedsRecordReader
    return frame.with_columns(pl.Series("topic", topics))


def _refuse_twice(partitions: pl.DataFrame) -> None:
    """A partition that is created twice."""
    keys = (partitions["topic"].to_numpy().astype(np.int64) << 32) + partitions["partition"].to_numpy()
    if (np.diff(np.sort(keys, kind="stable")) == 0).any():
        raise NeedsRecordReader


def _named(changes: pl.DataFrame) -> pl.DataFrame:
    """Set to null what a change writes out and leaves as it is, like what it doesn't name."""
    changes = with_lists(changes)
    unchanged = {"leader": _UNCHANGED_LEADER, "recovery": _UNCHANGED_RECOVERY}
    return changes.with_columns(
        pl.when(pl.col(name) != each).then(pl.col(name)).alias(name) for name, each in unchanged.items()
    )


def _changed(partitions: pl.DataFrame, changes: pl.DataFrame) -> pl.DataFrame:
    """Return the last named value of each field; every change counts for the epoch, a named leader for the leader
    epoch.
    """
    last = (
        changes.sort("offset")
        .group_by(_KEY)
        .agg(
            *(pl.col(name).drop_nulls().last().alias(f"{name}_new") for name in _CHANGED),
            first_change=pl.col("offset").first(),
            last_change=pl.col("offset").last(),
            n_changes=pl.len().cast(pl.Int64),
            n_leaders=pl.col("leader").count().cast(pl.Int64),
        )
    )
    joined = with_lists(partitions).join(last, on=_KEY, how="left")
    if joined["last_change"].count() != len(last) or (joined["first_change"] <= joined["offset"]).any():
        raise NeedsRecordReader
    rows = joined.select(
        *(pl.coalesce(f"{name}_new", name).alias(name) if name in _CHANGED else name for name in _KEY + _CHANGED),
        offset=pl.coalesce("last_change", "offset"),
        epoch=pl.col("epoch") + pl.col("n_changes").fill_null(0),
        leader_epoch=pl.col("leader_epoch") + pl.col("n_leaders").fill_null(0),
    ).select(list(SCHEMA))
    if rows.select(pl.any_horizontal(pl.col("epoch", "leader_epoch").max() > _MOST_INT32)).item():
        raise NeedsRecordReader
    return with_lists(rows)


def _refuse_transactions(rest: Iterable[Record]) -> None:
    """None begins within another, none is aborted or open, none ends that was not begun."""
    is_open = False
    for record in rest:
        if record.api_key in (BEGIN, END, ABORT):
            if record.api_key == ABORT or (record.api_key == END) != is_open:
                raise NeedsRecordReader
            is_open = not is_open
    if is_open:
        raise NeedsRecordReader
