"""Small logs of this machine → the same tables, in this process: by the functions of Spark's tasks, without a JVM."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from kit.errors import NotFound, ReadError
from kit.rebalances.logs import file_summary, lines, scan
from kit.rebalances.logs.events import ClientLogs, check_arguments, extracted_here
from kit.rebalances.logs.extract import ExtractEvents
from kit.text.regular_file import is_special

SMALL = 100 << 20
"""At most so many bytes are read here: 100 MB take about a second of one processor, before Spark has started."""
_GROWS = {".gz": 10, ".bz2": 10}
"""The largest number of bytes that a compressed byte usually becomes."""
_MOST_GROWTH = 1032
"""The largest growth of any text by gzip; at the end of a file that was cut is any number."""
_FOR_SPARK = re.compile(r"[\[\]{}\\]|^\w+:")
"""Patterns and addresses that only Spark's file systems know."""


def files_here(paths: Iterable[str], most: float = SMALL) -> dict[str, int] | None:
    """File → bytes, of files, folders and patterns with ``*`` and ``?``; None where Spark must read them: they are too
    many bytes, elsewhere, hidden, or in folders of folders.

    Raises:
        NotFound: no such file.
        ReadError: a FIFO, a device or a link to nothing is there or in a folder: Spark would wait for it, or end.
    """
    sizes: dict[str, int] = {}
    for path in paths:
        if _FOR_SPARK.search(path):
            return None
        matching = sorted(glob.glob(path)) if set(path) & set("*?") else [path]
        if not matching or not os.path.exists(matching[0]):
            raise NotFound(f"no log at {path}: name a file, a folder or a pattern that matches one")
        for each in map(Path, map(os.path.abspath, matching)):
            _refuse_special(each)
            inside = [each] if each.is_file() else sorted(each.iterdir())
            if any(not file.is_file() or file.name.startswith((".", "_")) for file in inside):
                return None
            sizes |= {str(file): file.stat().st_size for file in inside}
    return sizes if sum(_weight(file, size) for file, size in sizes.items()) <= most else None


def _refuse_special(path: Path) -> None:
    """Spark leaves out files whose name begins with a dot or an underscore, and so is it here."""
    inside = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name[0] not in "._")
    for each in (path, *map(Path, inside)):
        if is_special(each) or (each.is_symlink() and not each.exists()):
            raise ReadError(f"{each} can't be read: it is not a regular file")


def _weight(file: str, size: int) -> int:
    """Return how many bytes it unpacks to, about; a gzip reports it at its end, of its last part and modulo 4 GiB."""
    likely = size * _GROWS.get(Path(file).suffix, 1)
    if not file.endswith(".gz") or size < 18:  # the shortest gzip
        return likely
    try:
        with open(file, "rb") as log:
            log.seek(-4, os.SEEK_END)
            return max(likely, min(int.from_bytes(log.read(4), "little"), size * _MOST_GROWTH))
    except OSError:  # The reader reports why.
        return likely


def read_logs_here(
    sizes: dict[str, int], zone: str | None = None, layout: str | None = None
) -> ClientLogs[pl.DataFrame]:
    """The files of :func:`files_here`, as ``kit.rebalances.logs.read_client_logs`` reads them, in polars frames.

    Raises:
        InputError: no such layout or zone.
        ReadError: a file can't be read at all.
    """
    check_arguments(zone, layout)
    blocks = tuple(block for file, size in sorted(sizes.items()) for block in scan.blocks_of(file, size))
    numbers = pa.record_batch([scan.integers(np.arange(len(blocks)))], names=["id"])
    rows = pl.DataFrame(pa.Table.from_batches(scan.CandidateScan(blocks, 0)([numbers])))
    # There is no driver to spare here: all candidates are in this process.
    read = lines.lines_of(rows.with_columns(is_few=pl.col("value").is_not_null()))
    assert read.few is not None
    counts, events, unknown = extracted_here(read.few, ExtractEvents(read.before, layout, zone))
    files = file_summary.log_files(counts, read, layout)
    return ClientLogs(pl.DataFrame(events), pl.DataFrame(unknown), files)
