"""Read the options and files that ``kafka-consumer-groups`` takes for a reset, as this library's values. Pure."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kit.errors import InputError
from kit.moves.offsets import other_tools
from kit.moves.offsets.moves import Stored, item_of
from kit.moves.offsets.resets import AGO, TIME, Reset
from kit.moves.offsets.selection import Key
from kit.text.numbers import INT32_MAX, INT64_MAX, offset_in
from kit.text.regular_file import read_regular

_DURATION = re.compile(
    r"P(?=.)(?:(?P<days>\d{1,6})D)?(?:T(?=.)(?:(?P<hours>\d{1,8})H)?(?:(?P<minutes>\d{1,8})M)?"
    r"(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_WITH_GROUP = 4


def to_datetime(text: str) -> Reset:
    """``2026-01-31T12:00:00.000``, in UTC unless it names a zone, as the tool reads it (``Utils.getDateTime``).

    Raises:
        InputError: it is no such time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--to-datetime {text!r}: give a time such as 2026-01-31T12:00:00.000") from None
    return Reset(TIME, time if time.tzinfo is not None else time.replace(tzinfo=UTC))


def by_duration(text: str) -> Reset:
    """``PnDTnHnMnS`` before now (ISO 8601, ``java.time.Duration``).

    Raises:
        InputError: it is no such duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise InputError(f"--by-duration {text!r}: give a duration such as P7D or PT1H30M")
    parts = {name: float(value) for name, value in found.groupdict().items() if value is not None}
    try:
        return Reset(AGO, timedelta(**parts))
    except OverflowError:
        raise InputError(f"--by-duration {text!r} is longer ago than any record") from None


def load_tool_file(path: Path, groups: Sequence[str]) -> dict[Key, Stored]:
    """Return the offsets of a file of the tool's ``--export``: ``topic,partition,offset`` of the one group that is
    named, or ``group,topic,partition,offset``, without a header. Output of kafkactl, AKHQ and kcat is recognised too:
    ``kit.moves.offsets.other_tools``.

    Such a file names no cluster, so nothing shows whether its offsets are this cluster's.

    Raises:
        InputError: the file can't be read, or a line is another; the message names the line.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}") from error
    offsets: dict[Key, Stored] = {}
    for where, row in _rows(path, text):
        key, offset = _parsed(where, row, groups)
        if key in offsets:
            raise InputError(f"{where}: {item_of(key)} is there twice; keep one of them")
        offsets[key] = Stored(offset)
    if not offsets:
        raise InputError(f"{path} has no offset")
    return offsets


def _rows(path: Path, text: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Each row with its place, for errors."""
    try:
        rows = other_tools.rows_of(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if rows is not None:
        yield from ((f"{path}, offset {number}", row) for number, row in enumerate(rows, 1))
        return
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        yield from ((f"{path}, line {reader.line_num}", row) for row in filter(None, reader))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from error


def tool_text(offsets: Mapping[Key, Stored]) -> str:
    """The offsets as a file that the tool's ``--from-file`` takes, each line with its group.

    Metadata and leader epochs have no place in it.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows((*key, offsets[key].offset) for key in sorted(offsets))
    return text.getvalue()


def _parsed(where: str, row: Sequence[str], groups: Sequence[str]) -> tuple[Key, int]:
    if len(row) not in (_WITH_GROUP - 1, _WITH_GROUP):
        raise InputError(f"{where}: give topic,partition,offset or group,topic,partition,offset, not {row!r}")
    if len(row) < _WITH_GROUP and len(groups) != 1:
        raise InputError(f"{where} names no group: name the one that the file is for: --group GROUP")
    group, topic, partition, offset = row if len(row) == _WITH_GROUP else (*groups, *row)
    at, value = offset_in(partition.strip()), offset_in(offset.strip())
    if at is None or value is None or at > INT32_MAX or value > INT64_MAX:
        raise InputError(f"{where}: partition and offset are whole numbers from 0, not {partition!r} and {offset!r}")
    return (group, topic, at), value
