"""Offsets in a file: JSON Lines or CSV, with a header that names the cluster and has a digest of the rows.

A file of JSON Lines (``.jsonl``) begins with the header as an object; a CSV file (``.csv``) with the same object after
``# ``. The ``digest`` shows whether rows were edited. Each row has ``group_id``, ``topic``, ``partition`` and
``offset``, and may have ``metadata``, ``leader_epoch`` and ``topic_id`` (since format 3): the id of the topic when the
offset was read. A topic that was created again has another id.

A file that a spreadsheet saved again is read: with a byte order mark, with semicolons, with a header that was split
into cells.

In CSV an apostrophe is before a text that a spreadsheet would run as a formula, and before a text that begins with
an apostrophe (since format 2).
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from kit.engine.model.files import write_whole
from kit.engine.model.values import Json, canonical, digest_of, parse_json
from kit.errors import InputError, WrongCluster
from kit.moves.offsets.kafka_tool import tool_text
from kit.moves.offsets.moves import Stored, item_of
from kit.moves.offsets.selection import Key
from kit.text.naming import listed
from kit.text.numbers import INT32_MAX, INT64_MAX, offset_in
from kit.text.regular_file import read_regular

KIND, FORMAT = "offramp offsets", 3
FORMS = OFFRAMP, KAFKAS = "offramp", "kafka"
COLUMNS = ("group_id", "topic", "partition", "offset", "metadata", "leader_epoch", "topic_id")
_REQUIRED = COLUMNS[:4]
_LARGEST = {"partition": INT32_MAX, "offset": INT64_MAX, "leader_epoch": INT32_MAX}
_MARK = "# "
_APOSTROPHE, _FORMULA_BEGINS = "'", "=+-@\t\r"


@dataclass(frozen=True, slots=True)
class OffsetsFile:
    """The content of a file: cluster, store, time of the export, offsets."""

    cluster_id: str
    store: str
    exported_at: str
    offsets: Mapping[Key, Stored]


def save_offsets(
    path: Path, cluster_id: str, store: str, offsets: Mapping[Key, Stored], now: datetime, form: str = OFFRAMP
) -> None:
    """Write the offsets to the new file ``path``: the whole file or nothing.

    ``form`` is one of ``FORMS``: ``kafka`` is CSV for ``kafka-consumer-groups.sh --from-file``.

    Raises:
        InputError: the name ends neither in ``.jsonl`` nor in ``.csv``, the file exists, or it can't be written.
    """
    if form not in FORMS:
        raise InputError(f"there is no format {form!r} of a file of offsets; there are {listed(FORMS)}")
    if os.path.lexists(path):
        raise InputError(f"{path} exists and is not overwritten: name another file")
    is_csv = _is_csv(path)
    if form == KAFKAS:
        if not is_csv:
            raise InputError(f"{path}: a file for kafka-consumer-groups ends in .csv")
        _write(path, tool_text(offsets))
        return
    rows: list[Mapping[str, Json]] = [_row(key, offsets[key]) for key in sorted(offsets)]
    header: dict[str, Json] = {
        "kind": KIND,
        "format": FORMAT,
        "cluster_id": cluster_id,
        "store": store,
        "exported_at": now.isoformat(),
        "digest": digest_of(tuple(rows)),
    }
    text = canonical(header) + "\n"
    _write(path, _MARK + text + _csv(rows) if is_csv else text + "".join(canonical(row) + "\n" for row in rows))


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise InputError(f"{path} can't be written: {error.strerror}") from error


def load_offsets(
    path: Path,
    cluster_id: str,
    *,
    other_cluster: bool = False,
    edited: bool = False,
) -> OffsetsFile:
    """The offsets of a file; all rows are validated first.

    ``other_cluster`` accepts a file of another cluster, ``edited`` a file whose rows were edited.

    Raises:
        InputError: the file can't be read, is no export, was edited, or has a wrong row (the message names the line).
        WrongCluster: the file is another cluster's.
    """
    first, body = _split(path)
    header = _header(path, first)
    if header["cluster_id"] != cluster_id and not other_cluster:
        raise WrongCluster(
            f"{path} holds offsets of cluster {header['cluster_id']}, but this is {cluster_id}: the same offset is"
            " another record here. Import the file with --other-cluster only if the logs of both clusters are the same"
        )
    parsed = _parse_csv(path, body, header["format"] > 1) if _is_csv(path) else _parse_lines(path, body)
    rows = [(number, _checked(path, number, row)) for number, row in parsed]
    if digest_of(tuple(row for _, row in rows)) != header["digest"] and not edited:
        raise InputError(
            f"{path} was edited after it was written: import the file with --edited only if you know who edited it"
        )
    offsets = dict(_unique(path, rows))
    return OffsetsFile(header["cluster_id"], str(header.get("store")), str(header.get("exported_at")), offsets)


def _row(key: Key, stored: Stored) -> dict[str, Json]:
    values = (*key, stored.offset, stored.metadata, stored.leader_epoch, stored.topic_id)
    return {name: value for name, value in zip(COLUMNS, values) if value is not None}


def _csv(rows: Sequence[Mapping[str, Json]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _guarded(value) if isinstance(value, str) else value for name, value in row.items()})
    return text.getvalue()


def _guarded(text: str) -> str:
    """The text as a cell that no spreadsheet runs: any client can choose a group's name."""
    return _APOSTROPHE + text if text[:1] in (*_FORMULA_BEGINS, _APOSTROPHE) else text


def _is_csv(path: Path) -> bool:
    if path.suffix not in (".csv", ".jsonl"):
        raise InputError(f"{path}: the name of a file of offsets ends in .jsonl or .csv")
    return path.suffix == ".csv"


def _split(path: Path) -> tuple[str, str]:
    """The first line and the rest with its line ends unchanged: a text in a row may contain line ends."""
    try:
        first, _, body = read_regular(path).decode("utf-8-sig").partition("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read: {error}") from error
    return first.removesuffix("\r"), body


def _header(path: Path, first: str) -> Mapping[str, Any]:
    try:
        header = parse_json(first.removeprefix(_MARK) if _is_csv(path) else first)
    except ValueError:
        header = _of_cells(first) if _is_csv(path) else None
    if not isinstance(header, dict) or header.get("kind") != KIND or not {"cluster_id", "digest"} <= header.keys():
        raise InputError(f"{path} is no file of offsets: the first line is no header of an export: {first[:80]!r}")
    if header.get("format") not in range(1, FORMAT + 1):
        raise InputError(
            f"{path} is of format {header.get('format')!r}; this version of offramp reads formats 1 to "
            f"{FORMAT}. Export the offsets again"
        )
    return header


def _of_cells(first: str) -> dict[str, Json]:
    """A header that a spreadsheet split at its commas: the quotes between may be gone, the names and values are not."""
    text = first.replace('"', "").strip(",; ").removeprefix(_MARK).strip("{}")
    parts = [part.partition(":") for part in re.split("[,;]", text)]
    header: dict[str, Json] = {name.strip(): value.strip("{} ") for name, colon, value in parts if colon}
    number = offset_in(str(header.get("format")))
    return header | {"format": number}


def _parse_lines(path: Path, body: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(body.split("\n"), 2):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: {line[:80]!r} is no row")
        yield number, row


def _parse_csv(path: Path, body: str, is_guarded: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    heading = body.partition("\n")[0]
    delimiter = ";" if ";" in heading and "," not in heading else ","
    reader = csv.DictReader(io.StringIO(body, newline=""), delimiter=delimiter)
    try:
        names = reader.fieldnames or ()
        if doubled := sorted({name for name in names if list(names).count(name) > 1}):
            raise InputError(f"{path}, line 2: the column {doubled[0]!r} is there twice; keep one of them")
        if not {*_REQUIRED} <= {*(reader.fieldnames or ())}:
            columns = listed(reader.fieldnames or ())
            raise InputError(f"{path}, line 2: the columns are {columns}; it needs {listed(_REQUIRED)}")
        for row in reader:
            if not any(row.values()):
                continue
            yield reader.line_num + 1, _csv_row(path, reader.line_num + 1, row, is_guarded)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num + 1}: {error}") from error


def _csv_row(path: Path, number: int, row: Mapping[str, str], is_guarded: bool) -> dict[str, Any]:
    """An empty field is a missing value, except that a group's name may be empty."""
    if None in row or None in row.values():
        raise InputError(f"{path}, line {number}: the line has another number of fields than there are columns")
    numbers = {name: _number(text) for name, text in row.items() if name in _LARGEST and text}
    texts = {name: text for name, text in row.items() if name not in _LARGEST and (text or name == "group_id")}
    if is_guarded:
        texts = {name: text.removeprefix(_APOSTROPHE) for name, text in texts.items()}
    return texts | numbers


def _number(text: str) -> int | str:
    return text if offset_in(text.removeprefix("-")) is None else int(text)


def _checked(path: Path, number: int, row: Mapping[str, Any]) -> dict[str, Json]:
    where = f"{path}, line {number}"
    if strangers := sorted(row.keys() - {*COLUMNS}):
        raise InputError(f"{where}: unknown column {strangers[0]!r}; the columns are {', '.join(COLUMNS)}")
    for name in COLUMNS:
        value = row.get(name)
        if value is None and name not in _REQUIRED:
            continue
        largest = _LARGEST.get(name)
        is_right = isinstance(value, str) and (value or name == "group_id")
        if largest is not None:
            is_right = _is_within(value, largest)
        if not is_right:
            kind = "text" if largest is None else f"a whole number from 0 to {largest}"
            raise InputError(f"{where}: {name} is {value!r}; it must be {kind}")
    return {name: row[name] for name in COLUMNS if row.get(name) is not None}


def _is_within(value: object, largest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest


def _unique(path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[Key, Stored]]:
    lines: dict[Key, int] = {}
    for number, row in rows:
        key = (row["group_id"], row["topic"], row["partition"])
        if key in lines:
            raise InputError(f"{path}: {item_of(key)} is in line {lines[key]} and in line {number}; keep one of them")
        lines[key] = number
        yield key, Stored(row["offset"], row.get("metadata"), row.get("leader_epoch"), topic_id=row.get("topic_id"))
