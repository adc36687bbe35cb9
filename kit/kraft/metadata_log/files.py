"""Copied files of a metadata log, and which of them are a log's segments and checkpoints.

Kafka writes ``__cluster_metadata-0/<offset>.log`` and ``<offset>-<epoch>.checkpoint``; files that end otherwise
(``.index``, ``.checkpoint.part``, ``.deleted``) are none of a log's content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from kit.errors import InputError, NotFound, ReadError
from kit.kraft.metadata_log.batches import HEADER, MOST_OFFSET
from kit.text.regular_file import is_special, open_regular

FOLDER = "__cluster_metadata-0"
SEGMENT, CHECKPOINT, FETCHED = "segment", "checkpoint", "fetched"
_SEGMENT = re.compile(r"(\d{20})\.log")
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file by path, or bytes that a controller sent (``data``).

    ``base_offset``: a segment's first offset, or the offset that a checkpoint ends before; None where the name does not
    show it, as in ``bootstrap.checkpoint``.
    """

    name: str
    kind: str
    base_offset: int | None
    epoch: int | None = None
    data: bytes | None = None

    @property
    def n_bytes(self) -> int | None:
        """None when the file is gone."""
        try:
            return len(self.data) if self.data is not None else Path(self.name).stat().st_size
        except OSError:
            return None

    def read(self) -> bytes:
        """The bytes; raises ReadError."""
        if self.data is not None:
            return self.data
        with self.opened() as stream:
            return self.taken(stream)

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """To read it some bytes at a time; raises ReadError."""
        try:
            return open_regular(Path(self.name)) if self.data is None else BytesIO(self.data)
        except OSError as error:
            raise self._unreadable(error) from None

    def taken(self, stream: BinaryIO, n_bytes: int = -1) -> bytes:
        """The next bytes of what is opened, all by default; raises ReadError."""
        try:
            return stream.read(n_bytes)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> ReadError:
        return ReadError(f"{self.name} can't be read: {error.strerror}")


def log_file(path: Path) -> LogFile:
    """A file by its name; one of no known name is a checkpoint if it ends so, else a segment of unknown offset."""
    if (match := _SEGMENT.fullmatch(path.name)) and int(match[1]) <= MOST_OFFSET:
        return LogFile(str(path), SEGMENT, int(match[1]))
    match = _CHECKPOINT.fullmatch(path.name)
    if match and int(match[1]) <= MOST_OFFSET and int(match[2]) < 2**31:
        return LogFile(str(path), CHECKPOINT, int(match[1]), int(match[2]))
    return LogFile(str(path), CHECKPOINT if path.suffix == ".checkpoint" else SEGMENT, None)


def find_files(paths: str | Path | Iterable[str | Path]) -> list[LogFile]:
    """The files of one log: a log's folder, the data folder around it, or files by name; ordered as they are read.

    Raises:
        InputError: there is no such path, or one file is given twice.
        NotFound: a folder holds neither segment nor checkpoint.
        ReadError: a folder or file can't be opened.
    """
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    try:
        files = [each for path in named for each in _at(Path(path))]
        files.sort(key=lambda each: (each.kind, _first_offset(each), each.epoch or 0))
    except OSError as error:
        raise ReadError(f"{error.filename} can't be read: {error.strerror}") from None
    if len({Path(each.name).resolve() for each in files}) < len(files):
        raise InputError("a file of the metadata log is given twice")
    return files


def _at(path: Path) -> list[LogFile]:
    if path.is_file() or is_special(path):  # The reader that opens it reports what is wrong.
        return [log_file(path)]
    if not path.is_dir():
        raise InputError(f"there is no file or folder {path}")
    folder = path / FOLDER if (path / FOLDER).is_dir() else path
    names = [each for each in folder.iterdir() if _SEGMENT.fullmatch(each.name) or _CHECKPOINT.fullmatch(each.name)]
    if not names:
        raise NotFound(f"{folder} holds no segment and no checkpoint of a metadata log: give the folder that does")
    return [log_file(each) for each in names]


def _first_offset(file: LogFile) -> int:
    """The name's, or what the first batch reports."""
    if file.base_offset is not None or file.kind == CHECKPOINT:
        return file.base_offset or 0
    with open_regular(Path(file.name)) as stream:
        head = stream.read(HEADER.size)
    return int(HEADER.unpack(head)[0]) if len(head) == HEADER.size else 0
