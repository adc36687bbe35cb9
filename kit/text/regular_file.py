"""Read files of folders that other people can write to: a FIFO or a device there must not stop the reader."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_regular(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises as :func:`open_regular`."""
    with open_regular(path) as file:
        return file.read()


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file to read bytes; links are followed. ``buffering`` is that of ``open``.

    The file is opened with ``O_NONBLOCK``, so a FIFO without a writer does not block (open(2)), and is refused.

    Raises:
        OSError: there is no such file, it can't be read, or it is not a regular file (errno ``EINVAL``).
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return open(handle, "rb", buffering)


def is_special(path: Path) -> bool:
    """Return whether there is something that is neither a regular file nor a folder; links are followed."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
