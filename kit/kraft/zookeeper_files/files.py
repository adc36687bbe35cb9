"""Files of a ZooKeeper server: which ones they are, and their bytes, uncompressed.

A server keeps ``version-2/snapshot.<zxid>`` (since 3.6 maybe ``.gz`` or ``.snappy``) and ``version-2/log.<zxid>``, in
its dataDir or dataLogDir. The content of a file shows what it is, not its name: the admin server streams one without a
name.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kit.errors import InputError, NotFound, ReadError
from kit.text.regular_file import is_special, open_regular

FOLDER = "version-2"
SNAPSHOT, LOG = "snapshot", "log"
MAGICS = {b"ZKSN": SNAPSHOT, b"ZKLG": LOG}
_NAME = re.compile(r"(snapshot|log)\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
_GZIP, _SNAPPY = b"\x1f\x8b", b"\x82SNAPPY\0"
MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3
"""A file is read whole, and its tables are kept beside it: a larger one, or one that unpacks to more, has no room here.
"""


@dataclass(frozen=True, slots=True)
class ZooKeeperFile:
    """One file; ``zxid`` is its name's: None where the name has none."""

    path: str
    kind: str
    zxid: int | None

    @property
    def n_bytes(self) -> int | None:
        """None when the file is gone."""
        try:
            return Path(self.path).stat().st_size
        except OSError:
            return None

    def read(self) -> tuple[bytes, str, str | None]:
        """The uncompressed bytes, how they were compressed, and why they end early (None: they don't).

        Raises:
            ReadError: it can't be read, or is neither a snapshot nor a log.
        """
        try:
            with open_regular(Path(self.path), buffering=0) as file:  # Buffered data is copied once more.
                head = file.read(len(_SNAPPY))
                self._refuse_strangers(head, _GZIP, _SNAPPY)
                file.seek(0)
                data = file.read()
        except OSError as error:
            raise ReadError(f"{self.path} can't be read: {error.strerror}") from None
        compression, problem = "none", None
        if data.startswith(_GZIP):
            compression, (data, problem) = "gzip", _gunzipped(data)
        elif data.startswith(_SNAPPY):
            compression, (data, problem) = "snappy", _unsnapped(data)
        if not problem:
            self._refuse_strangers(data)
        return data, compression, problem

    def _refuse_strangers(self, data: bytes, *compressed: bytes) -> None:
        """By its size and how it begins, before all of it is read; a log may be nothing but zeros."""
        if (self.n_bytes or 0) > MOST_BYTES:
            raise ReadError(f"{self.path} is larger than a third of this machine's memory ({MOST_BYTES:,} bytes)")
        if not data.startswith((*MAGICS, *compressed)) and not (self.kind == LOG and not data.strip(b"\0")):
            raise ReadError(
                f"{self.path} is neither a snapshot nor a transaction log of ZooKeeper: it begins with "
                f"{data[:4]!r}, and these begin with b'ZKSN' or b'ZKLG'"
            )


def find_files(paths: Iterable[str | Path]) -> list[ZooKeeperFile]:
    """Files by name, all of a ``version-2`` folder, or of a data folder around it; logs first, each by its zxid.

    Raises:
        InputError: there is no such path, or one file is given twice.
        NotFound: a folder holds neither snapshot nor log.
        ReadError: a folder can't be opened.
    """
    try:
        files = [each for path in paths for each in _at(Path(path))]
    except OSError as error:
        raise ReadError(f"{error.filename} can't be read: {error.strerror}") from None
    if len({Path(each.path).resolve() for each in files}) < len(files):
        raise InputError("a file of ZooKeeper is given twice")
    return sorted(files, key=lambda each: (each.kind, each.zxid or 0, each.path))


def _at(path: Path) -> list[ZooKeeperFile]:
    if path.is_file() or is_special(path):  # The reader that opens it reports what is wrong.
        return [_named(path)]
    if not path.is_dir():
        raise InputError(f"there is no file or folder {path}")
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    files = [_named(each) for each in folder.iterdir() if _NAME.fullmatch(each.name) and each.is_file()]
    if not files:
        raise NotFound(f"{folder} holds no snapshot.<zxid> and no log.<zxid> of ZooKeeper: give the folder that does")
    return files


def _named(path: Path) -> ZooKeeperFile:
    match = _NAME.fullmatch(path.name)
    if match is None or int(match[2], 16) >= 2**63:
        data, _, _ = ZooKeeperFile(str(path), SNAPSHOT, None).read()
        return ZooKeeperFile(str(path), MAGICS.get(data[:4], SNAPSHOT), None)
    return ZooKeeperFile(str(path), match[1], int(match[2], 16))


def _gunzipped(data: bytes) -> tuple[bytes, str | None]:
    """Return what can be unpacked, also of a file that was cut."""
    parts, size, unpacker = list[bytes](), 0, zlib.decompressobj(wbits=31)
    try:
        while not unpacker.eof:
            part = unpacker.decompress(data, 16 * 2**20)
            data = unpacker.unconsumed_tail
            if not part and not data:
                return b"".join(parts), "the file's gzip data end too early"
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                return b"", _too_large("gzip")
    except zlib.error as problem:
        return b"".join(parts), f"the file's gzip data are damaged: {problem}"
    return b"".join(parts), None


def _too_large(codec: str) -> str:
    return f"the file's {codec} data unpack to more than a third of this machine's memory ({MOST_BYTES:,} bytes)"


def _unsnapped(data: bytes) -> tuple[bytes, str | None]:
    """Java's stream: magic, two versions, then blocks, each with its length."""
    parts, at, total, codec = list[bytes](), len(_SNAPPY) + 8, 0, pa.Codec("snappy")
    while at < len(data):
        (size,) = struct.unpack(">i", data[at : at + 4].rjust(4, b"\0"))
        block = data[at + 4 : at + 4 + size]
        if size <= 0 or len(block) < size:
            return b"".join(parts), "the file's snappy data end too early"
        total += (unpacked := _unpacked_size(block))
        if total > MOST_BYTES:
            return b"", _too_large("snappy")
        try:
            parts.append(codec.decompress(block, unpacked, asbytes=True))
        except (OSError, pa.ArrowException):
            return b"".join(parts), "the file's snappy data are damaged"
        at += 4 + size
    return b"".join(parts), None


def _unpacked_size(block: bytes) -> int:
    """A block begins with its length as a varint; Java writes blocks of 32 KiB, no writer makes any of more than 64
    MiB.
    """
    size = 0
    for at, octet in enumerate(block[:5]):
        size |= (octet & 0x7F) << 7 * at
        if octet < 0x80:
            break
    return min(size, 64 * 2**20)
