"""Logs as people paste them: a few lines in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from kit.rebalances.logs import ClientLogs
from kit.rebalances.logs.local import files_here, read_logs_here


def read(folder: Path, *lines: str, **options: Any) -> ClientLogs[pl.DataFrame]:
    """Read one log of these lines."""
    return read_each(folder, ["\n".join(lines)], **options)["\n".join(lines)]


def read_each(folder: Path, texts: Iterable[str], **options: Any) -> dict[str, ClientLogs[pl.DataFrame]]:
    """Read each text as a log of its own, and return what was read by its text.

    All logs are read in one call, which takes as long as the call for one log.
    """
    files = {text: folder / f"{number}.log" for number, text in enumerate(texts)}
    for text, file in files.items():
        file.write_text(f"{text}\n")
    found = read_logs_here(files_here(map(str, files.values())), **options)
    return {text: _of_file(found, file) for text, file in files.items()}


def _of_file(logs: ClientLogs[pl.DataFrame], file: Path) -> ClientLogs[pl.DataFrame]:
    is_of_it = pl.col("file") == str(file)
    return ClientLogs(*(rows.filter(is_of_it) for rows in (logs.events, logs.unknown_lines, logs.files)))
