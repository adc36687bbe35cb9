"""Files that are there as a whole or not at all, also after a crash; and readable by their owner alone.

A folder that a team may write to (``chmod g+rwxs``) stays the team's: what is put into it is open to the group too.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from kit.errors import EvidenceError


def write_whole(path: Path, content: str | bytes, is_new: bool = False) -> None:
    """Put ``content`` where ``path`` is; who reads meanwhile sees the old file or the new one.

    ``is_new``: FileExistsError where there is one already. If two processes put it there at once, one succeeds.
    """
    handle, scratch = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o600 | _for_group(path.parent) & 0o060)
            file.write(content if isinstance(content, bytes) else content.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            os.link(scratch, path)
            os.unlink(scratch)
        else:
            os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write like :func:`write_whole`, with the rights of files that plans, approvals and runs leave.

    Raises:
        EvidenceError: it was not written; which file, and why.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise EvidenceError(f"{path} was not written: {error.strerror}") from error


def keep_new(path: Path, content: str | bytes) -> bool:
    """Write like :func:`write_atomic`. Return False if there is such a file already, also one that came just now: it
    stays.

    Raises:
        EvidenceError: it was not written; which file, and why.
    """
    try:
        write_whole(path, content, is_new=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise EvidenceError(f"{path} was not written: {error.strerror}") from error
    return True


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that aren't there; one that is there stays as it is."""
    if folder.is_dir():
        return
    private_folder(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(mode | _for_group(folder.parent))


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder as durable as what it names."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _for_group(folder: Path) -> int:
    """Return the rights of the group in a folder that the group shares."""
    mode = folder.stat().st_mode
    return mode & 0o070 if mode & stat.S_ISGID and mode & stat.S_IWGRP else 0
