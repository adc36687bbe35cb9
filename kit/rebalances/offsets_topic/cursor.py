"""One value, read field by field from its front: for records that are rare enough to be decoded one by one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DecodeError(Exception):
    """The value can't be decoded; why, for the row."""


@dataclass
class Cursor:
    """Reads a value from its front; every step raises ``DecodeError`` where it is cut or odd."""

    octets: bytes
    is_flexible: bool = False
    at: int = 0

    def number(self, kind: str) -> int:
        try:
            (number,) = struct.unpack_from(kind, self.octets, self.at)
        except struct.error:
            raise DecodeError("the value ends too early") from None
        self.at += struct.calcsize(kind)
        return int(number)

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            octet = self.number(">B")
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
        raise DecodeError("the value has a number that never ends")

    def length(self, kind: str) -> int:
        return self.uvarint() - 1 if self.is_flexible else self.number(kind)

    def octet_string(self, kind: str = ">i") -> bytes | None:
        length = self.length(kind)
        return None if length < 0 else self.take(length)

    def take(self, length: int) -> bytes:
        octets = self.octets[self.at : self.at + length]
        if len(octets) < length:
            raise DecodeError("the value ends too early")
        self.at += length
        return octets

    def text(self) -> str | None:
        text = self.octet_string(">h")
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError:
            raise DecodeError("the value has a text that is no UTF-8") from None

    def skip_tags(self) -> None:
        for _ in range(self.uvarint() if self.is_flexible else 0):
            self.uvarint()
            self.take(self.uvarint())


def time_of(ms: int) -> datetime | None:
    """Epoch milliseconds → UTC; None where negative, and where no calendar has it."""
    try:
        return None if ms < 0 else _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
