"""A snapshot of ZooKeeper 3.4 to 3.9 → sessions, access lists, znodes; its checksums.

Layout (``FileSnap``, ``DataTree``): header, sessions, access lists, znodes each behind its parent, the path ``/`` as
end; then up to three Adler-32 checksums of all that is before them: since 3.6 a digest of the tree follows the
first, since 3.9 the last zxid follows the second. Jute's numbers are big-endian. A snapshot is written while the server
continues: it may have some transactions later than its name reports.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kit.clients.znode_columns import LAST_MS, bits, column
from kit.clients.znode_secrets import acl_text
from kit.kraft.zookeeper_files.index import Ints, indexed
from kit.kraft.zookeeper_files.jute import Cursor, Damaged
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
"""The fields behind a znode's data: its access list's number and ZooKeeper's StatPersisted."""


_FIXED_BYTES = FIXED.itemsize
_AT_ONCE = 16 * 2**20
"""With the data of one more znode, which is 1 GiB at most, its places are numbers of 32 bits."""
_NEGATIVE = 0xFF
"""A length's first byte: none but -1, which is null, gets here."""


class Znodes(NamedTuple):
    """Some znodes: path and data are binary columns, ``fixed`` has the fields of ``FIXED``."""

    paths: pa.Array
    data: pa.Array
    fixed: npt.NDArray[np.void]


@dataclass
class Snapshot:
    """``problems`` and what follows them are there once all of ``znodes`` was taken.

    ``acls``: number → entries as text, without secrets; -1, open to anyone, is in no snapshot's list. ``last_zxid``: of
    the last change that is in its znodes, ``last_ms`` when the last of them was written; -1: no calendar reports.
    """

    data: bytes
    sessions: list[tuple[int, int]] = field(default_factory=list)
    acls: dict[int, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    last_zxid: int = 0
    last_ms: int = -1
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
        """Every znode whose bytes are there, some at a time; the next ones are cut meanwhile."""
        with ThreadPoolExecutor(1, "cut") as pool:
            cuts = (pool.submit(_columns, self.data, *each) for each in self._places())
            waiting = deque(islice(cuts, 2))
            while waiting:
                columns = waiting.popleft().result()
                waiting.extend(islice(cuts, 1))
                self._count(columns.fixed)
                yield columns
        if self.data.startswith(END, self._at):
            self._seals(self._at + len(END))
        elif not self.problems:
            place = f"byte {self._at:,} of {len(self.data):,}"
            self.problems.append(f"no complete znode is at {place}: the file was cut off, or its bytes were changed")

    def _places(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield where some znodes begin, where the length of the data of each is, and where each ends."""
        while not self.problems:
            middles, ends = indexed(self.data, self._at, _AT_ONCE)
            if not len(ends):
                break
            yield self._at, middles, ends
            self._at = int(ends[-1])

    def _count(self, fixed: npt.NDArray[np.void]) -> None:
        self.last_zxid = max(self.last_zxid, *(int(fixed[name].max()) for name in ("czxid", "mzxid", "pzxid")))
        known_ms = fixed["modified_ms"][fixed["modified_ms"] <= LAST_MS]
        self.last_ms = max(self.last_ms, int(known_ms.max(initial=-1)))
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
                f"the file's checksum is {checksum:08x}, and should be {wanted & 2**64 - 1:08x}: its bytes were changed"
            )
        return cursor


def acls(cursor: Cursor) -> tuple[str, ...]:
    """An access list."""
    return tuple(acl_text(cursor.int32(), cursor.text(), cursor.text()) for _ in cursor.count(12))


def _columns(data: bytes, start: int, middle: Ints, end: Ints) -> Znodes:
    """Paths, data and fixed fields of znodes that lie end to end, each cut out once."""
    n, stop = len(middle), int(end[-1])
    # All that lies between these bounds is one column. Of each four parts the first and third are wanted; the last one
    # continues to the next path, behind its length.
    bounds = np.empty((n + 1, 4), np.int32)
    bounds[0, 0], bounds[1:, 0] = 4, end + (4 - start)
    bounds[:-1, 1], bounds[:-1, 2], bounds[:-1, 3] = middle - start, middle + (4 - start), end - (_FIXED_BYTES + start)
    bounds[-1, 0] = stop - start
    octets = pa.py_buffer(data).slice(start, stop - start)
    parts = pa.Array.from_buffers(pa.binary(), 4 * n, [None, pa.py_buffer(bounds), octets])
    at = np.arange(0, 4 * n, 4, dtype=np.int32)
    paths, values = (parts.take(column(pa.int32(), each)) for each in (at, at + 2))
    is_null = np.frombuffer(data, np.uint8)[middle] == _NEGATIVE
    if is_null.any():
        values = pa.Array.from_buffers(pa.binary(), n, [bits(~is_null), *values.buffers()[1:]])
    # Cut as bytes: of a type with fields NumPy copies each field by itself, ten times as slowly.
    fixed = np.ndarray(len(data) - _FIXED_BYTES + 1, f"V{_FIXED_BYTES}", data, strides=(1,))[end - _FIXED_BYTES]
    return Znodes(paths, values, fixed.view(FIXED))
