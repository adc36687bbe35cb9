"""Represent ZooKeeper's files as tables, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.clients.znode_columns import column, flags, is_session, numbers, octets, times
from kit.clients.znode_secrets import shown_column, shown_data
from kit.kraft.zookeeper_files.snapshot import Snapshot, Znodes
from kit.kraft.zookeeper_files.transactions import Change
from kit.tables import schema as tables
from kit.text.fingerprints import Hide, stars

_BATCH = 50_000
_FIELDS = {"version": "i4", "czxid": "i8", "mzxid": "i8", "modified_ms": "i8", "ephemeral_owner": "i8"}


def znode_tables(snapshot: Snapshot, hide: Hide = stars) -> Iterator[pa.Table]:
    """``tables.ZNODES``, some at a time."""
    for znodes in snapshot.znodes():
        yield _znodes(znodes, hide)


def _znodes(znodes: Znodes, hide: Hide) -> pa.Table:
    paths, errors = _paths(znodes.paths)
    version, czxid, mzxid, modified_ms, owners = (znodes.fixed[name].astype(kind) for name, kind in _FIELDS.items())
    return tables.ZNODES.from_columns(
        {
            "path": paths,
            "data": shown_column(paths, znodes.data, hide),
            "version": column(pa.int32(), version),
            "czxid": column(pa.int64(), czxid),
            "mzxid": column(pa.int64(), mzxid),
            "ephemeral_owner": column(pa.int64(), owners, is_session(owners)),
            "modified_at": times(modified_ms),
            "error": errors,
        }
    )


def _paths(strings: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Texts, and what is wrong with them; the root has none."""
    try:
        paths, errors = strings.cast(pa.string()), pa.nulls(len(strings), pa.string())
    except pa.ArrowInvalid:
        texts = [each.decode(errors="replace") for each in strings.to_pylist()]
        is_wrong = [text.encode() != each for text, each in zip(texts, strings.to_pylist())]
        paths = pa.array(texts, pa.string())
        errors = pa.array(["the znode's path is no UTF-8" if wrong else None for wrong in is_wrong], pa.string())
    is_root = numbers(pc.binary_length(paths), "i4") == 0
    return pc.replace_with_mask(
        paths, flags(is_root), octets([b"/"] * int(is_root.sum()), paths.type)
    ) if is_root.any() else paths, errors


def change_tables(changes: Iterable[Change], hide: Hide = stars) -> Iterator[pa.Table]:
    """``tables.ZNODE_CHANGES``, some at a time."""
    waiting = iter(changes)
    while some := list(islice(waiting, _BATCH)):
        yield _changes(some, hide)


def _changes(some: list[Change], hide: Hide) -> pa.Table:
    columns: dict[str, Any] = dict(zip(Change._fields, zip(*some)))
    stamps = columns.pop("written_ms")
    ms = np.array([-1 if each is None else each for each in stamps], np.int64)
    data = [each.data and shown_data(each.path or "", each.data, hide) for each in some]
    return tables.ZNODE_CHANGES.from_columns(columns | {"written_at": times(ms), "data": data})
