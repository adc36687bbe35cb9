"""A snapshot of ZooKeeper 3.4 to 3.9 → sessions, access lists, znodes; its checksums.

Layout (``FileSnap``, ``DataTree``): header, sessions, access lists, znodes each behind its parent, the path ``/`` as
end; then up to three Adler-32 checksums of all that stands before them: since 3.6 a digest of the tree follows the
first, since 3.9 the last zxid follows the second. Jute's numbers are big-endian. A snapshot is written while the server
goes on: it may have some transactions later than its name says.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.read.znode_secrets import acl_text
from kit.read.zookeeper_files.index import Ints, index
from kit.read.zookeeper_files.jute import Cursor, Damaged
from kit.text.quantity import quantity

END = b"\0\0\0\x01/"
_HEADER = struct.Struct(">4siq")
FIXED = np.dtype(
    [
        ("acl", ">i8"),
        ("czxid", ">i8"),
        ("mzxid", ">i8"),
        ("created_ms", ">i8"),
        ("modified_ms", ">i8"),
        ("version", ">i4"),
        ("cversion", ">i4"),
        ("aversion", ">i4"),
        ("ephemeral_owner", ">i8"),
        ("pzxid", ">i8"),
    ]
)
"""What follows a znode's data: its access list's number and ZooKeeper's StatPersisted."""


class Znodes(NamedTuple):
    """Some znodes: path and data are binary columns, ``fixed`` has the fields of ``FIXED``."""

    paths: pa.Array
    data: pa.Array
    fixed: np.ndarray[Any, np.dtype[np.void]]


@dataclass
class Snapshot:
    """``problems`` and what follows them are there once all of ``znodes`` was taken.

    ``acls``: number → entries as text, without secrets; -1, open to anyone, is in no snapshot's list. ``last_zxid``: of
    the last change that is in its znodes.
    """

    data: bytes
    sessions: list[tuple[int, int]] = field(default_factory=list)
    acls: dict[int, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    last_zxid: int = 0
    n_by_acl: Counter[int] = field(default_factory=Counter)
    _at: int = 0
    _checksum: int = 1
    _summed: int = 0

    def __post_init__(self) -> None:
        try:
            self._head(Cursor(self.data))
        except Damaged as problem:
            self.problems.append(str(problem))

    def _head(self, cursor: Cursor) -> None:
        _, version, _ = _HEADER.unpack(cursor.octets(_HEADER.size))
        if version != 2:
            raise Damaged(f"snapshots of version {version} are not known")
        self.sessions += [(cursor.int64(), cursor.int32()) for _ in cursor.count(12)]
        for _ in cursor.count(12):
            number = cursor.int64()
            self.acls[number] = acls(cursor)
        self._at = cursor.at

    def znodes(self) -> Iterator[Znodes]:
        """Every znode whose bytes are there, some at a time."""
        while not self.problems:
            middles, ends = index(self.data, self._at)
            if not len(ends):
                break
            columns = _columns(self.data, self._at, middles, ends)
            self._count(columns.fixed)
            yield columns
            self._at = int(ends[-1])
        if self.data.startswith(END, self._at):
            self._seals(self._at + len(END))
        elif not self.problems:
            place = f"byte {self._at:,} of {len(self.data):,}"
            self.problems.append(f"no whole znode stands at {place}: the file was cut or its bytes were changed")

    def _count(self, fixed: np.ndarray[Any, np.dtype[np.void]]) -> None:
        self.last_zxid = max(self.last_zxid, *(int(fixed[name].max()) for name in ("czxid", "mzxid", "pzxid")))
        numbers, counts = np.unique(fixed["acl"], return_counts=True)
        self.n_by_acl.update(dict(zip(numbers.tolist(), counts.tolist())))

    def _seals(self, at: int) -> None:
        """Checksums; the parts between them are there or not."""
        try:
            cursor = self._seal(at)
            if cursor.left:
                cursor.int64()
                if cursor.int32() < 2:
                    cursor.text()
                else:
                    cursor.int64()
                cursor = self._seal(cursor.at)
            if cursor.left:
                cursor.int64()
                cursor = self._seal(cursor.at)
            if cursor.left:
                raise Damaged(f"{quantity(cursor.left, 'byte follows', 'bytes follow')} its last checksum")
        except Damaged as problem:
            self.problems.append(str(problem))

    def _seal(self, at: int) -> Cursor:
        cursor = Cursor(self.data, at)
        self._checksum = checksum = zlib.adler32(memoryview(self.data)[self._summed : at], self._checksum)
        self._summed, wanted = at, cursor.int64()
        if checksum != wanted or cursor.octets(len(END)) != END:
            raise Damaged(
                f"its checksum is {checksum:08x}, and should be {wanted & 2**64 - 1:08x}: its bytes were changed"
            )
        return cursor


def acls(cursor: Cursor) -> tuple[str, ...]:
    """An access list."""
    return tuple(acl_text(cursor.int32(), cursor.text(), cursor.text()) for _ in cursor.count(12))


def _columns(data: bytes, start: int, middle: Ints, end: Ints) -> Znodes:
    """Paths, data and fixed fields of znodes that lie end to end, each cut out once."""
    begin = np.concatenate([[start], end[:-1]])
    fixed = end - FIXED.itemsize
    # All that lies between these bounds is one column, of which the path and the data are each fourth.
    bounds = np.column_stack([begin + 4, middle, middle + 4, fixed]).ravel() - start
    octets = pa.py_buffer(data).slice(start, int(end[-1]) - start)
    bounds = np.append(bounds, end[-1] - start)
    column = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), octets])
    at = np.arange(0, 4 * len(middle), 4)
    sizes = np.ndarray(len(data) - 3, ">i4", data, strides=(1,))[middle]
    stats = np.ndarray(len(data) - FIXED.itemsize + 1, FIXED, data, strides=(1,))[fixed]
    values = column.take(pa.array(at + 2)).cast(pa.binary())
    nulls = pa.array(sizes < 0)
    return Znodes(column.take(pa.array(at)).cast(pa.binary()), pc.if_else(nulls, None, values), stats)
