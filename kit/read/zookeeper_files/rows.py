"""What ZooKeeper's files hold as tables, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.read.znode_columns import is_session, times
from kit.read.znode_secrets import shown_column, shown_data
from kit.read.zookeeper_files.snapshot import Snapshot, Znodes
from kit.read.zookeeper_files.transactions import Change
from kit.tables import schema as tables
from kit.text.fingerprints import Hide, stars

_BATCH = 50_000


def znode_tables(snapshot: Snapshot, hide: Hide = stars) -> Iterator[pa.Table]:
    """``tables.ZNODES``, some at a time."""
    for znodes in snapshot.znodes():
        yield _znodes(znodes, hide)


def _znodes(znodes: Znodes, hide: Hide) -> pa.Table:
    paths, errors = _paths(znodes.paths)
    fixed = znodes.fixed
    owners = fixed["ephemeral_owner"].astype(np.int64)
    return tables.ZNODES.from_columns(
        {
            "path": paths,
            "data": shown_column(paths, znodes.data, hide),
            "version": pa.array(fixed["version"].astype(np.int32)),
            "czxid": pa.array(fixed["czxid"].astype(np.int64)),
            "mzxid": pa.array(fixed["mzxid"].astype(np.int64)),
            "ephemeral_owner": pa.array(owners, mask=~is_session(owners)),
            "modified_at": times(fixed["modified_ms"].astype(np.int64)),
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
        errors = pa.array(["its path is no UTF-8" if wrong else None for wrong in is_wrong], pa.string())
    return pc.if_else(pc.equal(paths, ""), "/", paths), errors


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
