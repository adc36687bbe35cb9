"""Read files of folders that other people can write to: a FIFO or a device there must not stop the reader."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """Return the bytes of a regular file; links are followed.

    The file is opened with ``O_NONBLOCK``, so a FIFO without a writer does not block (open(2)), and is refused.

    Raises:
        OSError: there is no such file, it can't be read, or it is not a regular file (errno ``EINVAL``).
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()
