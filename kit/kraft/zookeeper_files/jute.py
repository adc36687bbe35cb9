"""Jute, ZooKeeper's encoding: big-endian numbers, lengths before what they count, -1 for null."""

from __future__ import annotations

import struct
from typing import Any

from kit.text.quantity import quantity

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


class Damaged(Exception):
    """The bytes are none of ZooKeeper's; why, for the account."""


class Cursor:
    """Reads on from ``at``; whatever a wrong length reports, nothing is read beyond the end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def int32(self) -> int:
        return int(self._number(_INT))

    def int64(self) -> int:
        return int(self._number(_LONG))

    def boolean(self) -> bool:
        return self.octets(1) != b"\0"

    def _number(self, form: struct.Struct) -> Any:
        try:
            (value,) = form.unpack_from(self.data, self.at)
        except struct.error:
            raise Damaged(f"the data end too early, at byte {self.at:,}") from None
        self.at += form.size
        return value

    def octets(self, size: int) -> bytes:
        if size > self.left:
            wanted = quantity(size, "byte")
            raise Damaged(f"the data end too early: {wanted} should be at byte {self.at:,}, {self.left:,} left")
        self.at += size
        return self.data[self.at - size : self.at]

    def buffer(self) -> bytes | None:
        """None for null, as an empty one is in some releases."""
        size = self.int32()
        if size < -1:
            raise Damaged(f"a length of {size} is at byte {self.at - 4:,}")
        return None if size < 0 else self.octets(size)

    def text(self) -> str:
        """Characters that are none become U+FFFD."""
        return (self.buffer() or b"").decode(errors="replace")

    def count(self, size: int) -> range:
        """Return how many follow, each of at least ``size`` bytes."""
        count = self.int32()
        if count < -1 or max(count, 0) * size > self.left:
            raise Damaged(f"{quantity(count, 'entry', 'entries')} can't follow at byte {self.at:,}")
        return range(max(count, 0))
