"""Offset commits: values of versions 0 to 4, decoded a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.rebalances.offsets_topic.binary_column import BinaryColumn, Ints, Mask, integers, times
from kit.rebalances.offsets_topic.fetching import Records
from kit.rebalances.offsets_topic.keys import Keys
from kit.tables import schema as tables

_NEWEST = 4
_EPOCH_SINCE = 3
_EXPIRY = 1
_MOST_TAGS = 100
"""Kafka writes at most one; a corrupt number of tags must not make a long loop."""
_CUT = "the value ends too early"
_NO_UTF8 = "the commit's metadata is no UTF-8"


def commit_rows(records: Records, keys: Keys) -> pa.RecordBatch:
    """``tables.OFFSET_COMMITS``: one row per record whose key is a commit's."""
    at = keys.commits
    values = records.values.take(pa.array(at)) if len(at) < len(records) else records.values
    is_tombstone = values.is_null().to_numpy(zero_copy_only=False)
    octets = BinaryColumn(values)
    version = np.where(octets.end - octets.start >= 2, octets.integer(octets.start, ">i2"), -1)
    is_known = (version >= 0) & (version <= _NEWEST)
    has_epoch, is_flexible = version >= _EPOCH_SINCE, version == _NEWEST
    metadata_at, length = _metadata(octets, octets.start + np.where(has_epoch, 14, 10), is_flexible)
    time_at = metadata_at + np.maximum(length, 0)
    rest = time_at + 8 + np.where(version == _EXPIRY, 8, 0)
    is_whole = is_known & (length >= -1) & (rest <= octets.end)
    is_whole &= ~is_flexible | _has_tags(octets, rest, is_flexible & is_whole)
    unread = ~is_whole
    text_length = np.where(is_whole, np.maximum(length, 0), 0)
    metadata, no_text = octets.texts(np.where(is_whole, metadata_at, 0), text_length)
    epoch = octets.integer(octets.start + 10, ">i4")
    return pa.RecordBatch.from_arrays(
        [
            integers(records.partition[at], pa.int32()),
            integers(records.offset[at], pa.int64()),
            times(records.written_ms[at]),
            keys.commit_groups,
            keys.commit_topics,
            integers(keys.commit_partitions, pa.int32()),
            integers(octets.integer(octets.start + 2, ">i8"), pa.int64(), unread),
            integers(epoch, pa.int32(), unread | ~has_epoch | (epoch < 0)),
            _or_null(metadata, text_length == 0),
            times(octets.integer(time_at, ">i8"), unread),
            times(octets.integer(time_at + 8, ">i8"), unread | (version != _EXPIRY)),
            integers(version, pa.int32(), version < 0),
            pa.array(is_tombstone),
            _errors(version, is_known, unread & ~is_tombstone, no_text),
        ],
        schema=tables.OFFSET_COMMITS.schema,
    )


def _metadata(octets: BinaryColumn, at: Ints, is_flexible: Mask) -> tuple[Ints, Ints]:
    """Return where the metadata begins and how long it is; -1 is null."""
    text_at, length = at + 2, octets.integer(at, ">i2")
    rows = np.flatnonzero(is_flexible)
    if len(rows):
        counted, after = octets.uvarint(at[rows])
        text_at[rows], length[rows] = after, counted - 1
    return text_at, length


def _has_tags(octets: BinaryColumn, at: Ints, is_flexible: Mask) -> Mask:
    """Return whether the tagged fields that end a flexible value are all there; nearly all values have none or one."""
    are_whole = np.zeros(len(at), np.bool_)
    rows = np.flatnonzero(is_flexible)
    if not len(rows):
        return are_whole
    count, after = octets.uvarint(at[rows])
    for _ in range(min(int(count.max()), _MOST_TAGS)):
        _, size_at = octets.uvarint(after)
        size, data_at = octets.uvarint(size_at)
        after, count = np.where(count > 0, data_at + size, after), count - (count > 0)
    are_whole[rows] = (count == 0) & (after <= octets.end[rows])
    return are_whole


def _or_null(column: pa.Array, is_null: Mask) -> pa.Array:
    if not is_null.any():
        return column
    if is_null.all():
        return pa.nulls(len(column), column.type)
    return pc.if_else(pa.array(is_null), pa.scalar(None, column.type), column)


def _errors(version: Ints, is_known: Mask, unread: Mask, no_text: Mask) -> pa.Array:
    if not (unread | no_text).any():
        return pa.nulls(len(version), pa.string())
    return pa.array(list(_told(version, is_known, unread, no_text)), pa.string())


def _told(version: Ints, is_known: Mask, unread: Mask, no_text: Mask) -> Iterator[str | None]:
    for number, known, missing, odd in zip(version.tolist(), is_known, unread, no_text):
        if missing and number <= _NEWEST and (known or number == -1):
            yield _CUT
        elif missing:
            yield f"the record of a commit has a value of version {number}, which this offramp can't read"
        else:
            yield _NO_UTF8 if odd else None
