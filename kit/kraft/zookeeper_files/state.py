"""A snapshot and the changes after it → the znodes as of a later transaction.

A snapshot may have some changes later than its name reports. That does no harm as long as all of these are replayed,
too: each is done over, in order, and ends as it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kit.clients.znode_columns import LAST_MS
from kit.clients.znode_secrets import shown_data
from kit.kraft.zookeeper_files.transactions import CLOSE_SESSION, CREATES, DELETES, WRITES, Change
from kit.tables import schema as tables
from kit.tables.znodes import Znode
from kit.text.fingerprints import Hide, stars

Owners: TypeAlias = dict[int, set[str]]
"""The znodes of each session, which are deleted with it."""


def is_below(path: str | None, top: str) -> bool:
    """Return whether a path is ``top`` or below it; everything is below ``/``."""
    return top == "/" or path == top or (path or "").startswith(f"{top}/")


def owners_in(znodes: pa.Table) -> Owners:
    """Return the owned znodes of the sessions in a table of znodes."""
    owners: Owners = {}
    some = znodes.filter(pc.is_valid(znodes["ephemeral_owner"]))
    for path, owner in zip(some["path"].to_pylist(), some["ephemeral_owner"].to_pylist()):
        owners.setdefault(owner, set()).add(path)
    return owners


def with_closed(changes: Iterable[Change], owners: Owners) -> Iterator[Change]:
    """The changes; an end of a session that doesn't report what went with it, as before 3.6, is a row for each
    znode."""
    for change in changes:
        if change.refusal is not None or change.error is not None:
            yield change
            continue
        if change.ephemeral_owner is not None and change.path is not None:
            owners.setdefault(change.ephemeral_owner, set()).add(change.path)
        elif change.operation in DELETES and change.session_id is not None:
            for paths in owners.values():
                paths.discard(change.path or "")
        if change.operation == CLOSE_SESSION and change.path is None and change.session_id in owners:
            gone = sorted(owners.pop(change.session_id))
            yield from (change._replace(path=path) for path in gone)
            if gone:
                continue
        yield change


def replayed(znodes: pa.Table, changes: Iterable[Change], hide: Hide = stars) -> pa.Table:
    """``tables.ZNODES`` after the changes (of :func:`with_closed`), in no special order."""
    done = [each for each in changes if each.path is not None and each.refusal is None and each.error is None]
    if not done:
        return znodes
    touched = pa.array(list({each.path for each in done}), pa.string())
    is_touched = pc.is_in(znodes["path"], touched)
    rows = {row["path"]: Znode(**row) for row in znodes.filter(is_touched).to_pylist()}
    for change in done:
        _apply(rows, change, hide)
    return pa.concat_tables([znodes.filter(pc.invert(is_touched)), tables.ZNODES.from_rows(rows.values())])


def _apply(rows: dict[str, Znode], change: Change, hide: Hide) -> None:
    path = change.path or ""
    before = rows.get(path)
    if change.operation in DELETES or change.operation == CLOSE_SESSION:
        rows.pop(path, None)
    elif change.operation in CREATES or change.operation in WRITES:
        czxid, owner = change.zxid, change.ephemeral_owner
        if change.operation in WRITES:  # A znode whose beginning is in no file here has unknown values.
            czxid, owner = (before.czxid, before.ephemeral_owner) if before else (None, None)
        data, written_at = shown_data(path, change.data, hide), moment(change.written_ms)
        rows[path] = Znode(path, data, change.version, czxid, change.zxid, owner, written_at, None)


def moment(ms: int | None) -> datetime | None:
    """Epoch milliseconds → UTC; None where no calendar has it."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms is not None and 0 <= ms <= LAST_MS else None
