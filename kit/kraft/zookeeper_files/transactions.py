"""A transaction log of ZooKeeper 3.4 to 3.9 → changes.

Layout (``FileTxnLog``, ``SerializeUtils``): a header, then entries of Adler-32, length, bytes and ``B``, then zeros
that were not written to yet. The bytes are a header of the transaction, what it does, and since 3.6 a digest of the
tree. A log is a history: what was done when, and by which session.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kazoo.exceptions import EXCEPTIONS

from kit.kraft.zookeeper_files.jute import Cursor, Damaged
from kit.text.quantity import quantity

CREATE, DELETE, SET_DATA, SET_ACL, CLOSE_SESSION = "create", "delete", "set_data", "set_acl", "close_session"
FAILED, CHECK, MULTI = "failed", "check", "multi"
CREATES = (CREATE, "create_container", "create_ttl")
DELETES = (DELETE, "delete_container")
WRITES = (SET_DATA, "reconfig")
_OPERATIONS = {
    -11: CLOSE_SESSION,
    -10: "create_session",
    -1: FAILED,
    1: CREATE,
    2: DELETE,
    5: SET_DATA,
    7: SET_ACL,
    13: CHECK,
    14: MULTI,
    15: CREATE,
    16: "reconfig",
    19: "create_container",
    20: "delete_container",
    21: "create_ttl",
}
"""ZooKeeper's ``ZooDefs.OpCode``, of what a log has."""
_HEADER, _ENTRY, _TXN = struct.Struct(">4siq"), struct.Struct(">qi"), struct.Struct(">qiqqi")
_CLOSE_SESSION, _ROLLED_BACK = -11, "RolledBack"
_CODES = frozenset(EXCEPTIONS)
_DIGEST, _END_OF_ENTRY, MAGIC = b"\0\0\0\x02", b"B", b"ZKLG"


class Change(NamedTuple):
    """One operation of a transaction, or one place that can't be read; as ``tables.ZNODE_CHANGES``."""

    zxid: int | None = None
    written_ms: int | None = None
    session_id: int | None = None
    cxid: int | None = None
    operation: str | None = None
    part: int | None = None
    path: str | None = None
    version: int | None = None
    data: bytes | None = None
    ephemeral_owner: int | None = None
    refusal: str | None = None
    error: str | None = None
    file: str = ""


@dataclass
class Log:
    data: bytes
    file: str = ""

    def changes(self) -> Iterator[Change]:
        """Everything that was done, in order; a place that can't be read, and where some is missing, is a row."""
        return (each._replace(file=self.file) for each in self._changes())

    def _changes(self) -> Iterator[Change]:
        try:
            at, last = self._start(), None
            while at < len(self.data) and not self._is_unwritten(at):
                at, payload, error = self._entry(at)
                changes = [Change(error=error)] if error else _changes(payload, at)
                if missing := gap(last, changes[0].zxid):
                    yield Change(error=missing)
                last = changes[0].zxid or last
                yield from changes
        except Damaged as problem:
            yield Change(error=str(problem))

    def _start(self) -> int:
        if self._is_unwritten(0):
            return 0
        magic, version, _ = _HEADER.unpack(Cursor(self.data).octets(_HEADER.size))
        if magic != MAGIC or version != 2:
            raise Damaged(f"a log that begins with {magic!r} and version {version} is not known")
        return _HEADER.size

    def _is_unwritten(self, at: int) -> bool:
        return not any(self.data[at : at + _ENTRY.size]) and not self.data[at:].strip(b"\0")

    def _entry(self, at: int) -> tuple[int, bytes, str | None]:
        """Return where the next one begins, and the bytes of this one or what is wrong with them."""
        cursor = Cursor(self.data, at)
        checksum, length = _ENTRY.unpack(cursor.octets(_ENTRY.size))
        if length < _TXN.size:
            long = quantity(length, "byte")
            raise Damaged(f"at byte {at:,} no transaction can be {long} long: nothing behind it can be read")
        payload = cursor.octets(length)
        is_ended, actual = cursor.octets(1) == _END_OF_ENTRY, zlib.adler32(payload)
        wrong = f"the checksum of the transaction at byte {at:,} is {actual:08x}, and should be {checksum:08x}"
        if not is_ended:
            raise Damaged(f"{wrong}: nothing behind it can be read")
        return cursor.at, payload, None if actual == checksum else wrong


def gap(last: int | None, zxid: int | None) -> str | None:
    """Transactions count on by one, and from again with each leader: its epoch is the upper half."""
    if last is None or zxid is None or zxid >> 32 > last >> 32 or zxid == last + 1:
        return None
    if zxid <= last:
        return f"transaction {zxid:#x} comes after {last:#x}: this transaction belongs to another log"
    return f"transactions {last + 1:#x} to {zxid - 1:#x} are missing"


def _changes(payload: bytes, at: int) -> list[Change]:
    cursor = Cursor(payload)
    session, cxid, zxid, written_ms, kind = _TXN.unpack(cursor.octets(_TXN.size))
    change = Change(zxid, written_ms, session, cxid)
    try:
        return list(_operations(change, kind, cursor))
    except Damaged as problem:
        return [change._replace(operation=_OPERATIONS.get(kind), error=f"before byte {at:,} {problem}")]


def _operations(change: Change, kind: int, cursor: Cursor) -> Iterator[Change]:
    if _OPERATIONS.get(kind) == MULTI:
        yield from _multi(change, cursor)
    elif kind == _CLOSE_SESSION:
        change = change._replace(operation=CLOSE_SESSION)
        yield from [change._replace(path=path) for path in _closed(cursor)] or [change]
    else:
        yield _operation(change._replace(operation=_OPERATIONS.get(kind)), kind, cursor)


def _multi(change: Change, cursor: Cursor) -> Iterator[Change]:
    """All of them or none: those before the one that failed are there as if they had been done."""
    changes = list[Change]()
    for part in cursor.count(8):
        kind = cursor.int32()
        changes += _operations(change._replace(part=part), kind, Cursor(cursor.buffer() or b""))
    is_refused = any(each.operation == FAILED for each in changes)
    yield from (each._replace(refusal=each.refusal or _ROLLED_BACK) if is_refused else each for each in changes)


def _closed(cursor: Cursor) -> list[str]:
    """Return the znodes that are deleted with the session: since 3.6 the log lists them. A digest alone, which
    begins with its version 2, is no list.
    """
    if not cursor.left or (cursor.left == 12 and cursor.data.startswith(_DIGEST, cursor.at)):
        return []
    return [cursor.text() for _ in cursor.count(4)]


def _operation(change: Change, kind: int, cursor: Cursor) -> Change:
    name = change.operation
    if name is None:
        return change._replace(error=f"operation {kind} is not known")
    if name == FAILED:
        return change._replace(refusal=_refusal(cursor.int32()))
    if name == "create_session":
        return change
    change = change._replace(path=cursor.text())
    if name in CREATES:
        change = change._replace(data=cursor.buffer(), version=0)
        skip_acls(cursor)
        is_ephemeral = name == CREATE and cursor.boolean()
        return change._replace(ephemeral_owner=change.session_id if is_ephemeral else None)
    if name in WRITES:
        return change._replace(data=cursor.buffer(), version=cursor.int32())
    if name == SET_ACL:
        skip_acls(cursor)
    return change if name in DELETES else change._replace(version=cursor.int32())


def skip_acls(cursor: Cursor) -> None:
    """Access lists are not shown: a digest is nearly a password."""
    for _ in cursor.count(12):
        cursor.int32()
        cursor.buffer()
        cursor.buffer()


def _refusal(code: int) -> str:
    """ZooKeeper's name of an error."""
    return EXCEPTIONS[code].__name__.removesuffix("Error") if code in _CODES else f"error {code}"
