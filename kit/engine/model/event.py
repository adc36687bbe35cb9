"""One line of a run's journal: fixed columns of fixed types, chained so that an edit shows.

``runs/<run-id>/events.jsonl`` is JSON lines in UTF-8. Every line has all columns of :data:`COLUMNS`, null where there
is nothing to report, never of another type, so that Spark reads the evidence of all runs at once::

    spark.read.schema(EVENT_SCHEMA).json("runs/*/events.jsonl")

(without the schema, a column that is null in every line becomes a string). ``before``, ``after`` and ``details`` are
JSON text. A line that was being written when its writer died is a row of nulls to Spark. ``previous`` is the SHA-256 of
the line before, without its newline; of the first line, of the run's id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from kit.engine.model.values import parse_json
from kit.errors import EvidenceError

_TORN_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    ``at`` is ISO 8601 in UTC by the operator's clock; ``monotonic_ms`` only goes forward, within one process.
    ``state`` is the run's state after it. ``event``: ``planned``, ``approved``, ``opened`` (a process takes the run
    up; versions in ``details``), ``moved`` (to ``state``), ``differs`` (an observation), ``checked``, ``attempted`` (a
    write is about to be made: of one item, or of those that ``details`` names), ``acted`` and ``undone`` (one item,
    with its ``outcome``), ``waiting``, ``verified``, ``step_undone``, ``stop_requested``, ``failed``, ``torn_line``,
    ``display_failed``, ``ended``. ``withheld`` names the column in which something resembled a secret: stars are in
    its place.
    """

    run_id: str
    seq: int
    at: str
    monotonic_ms: int
    event: str
    state: str
    step_id: str | None
    item: str | None
    outcome: str | None
    before: str | None
    after: str | None
    sentence: str | None
    error: str | None
    duration_ms: int | None
    details: str | None
    withheld: str | None
    previous: str


_SPARK = {"str": "string", "int": "bigint"}
_TYPES = {"str": (str,), "int": (int,), "str | None": (str, type(None)), "int | None": (int, type(None))}
COLUMNS: dict[str, str] = {field.name: _SPARK[str(field.type).split(" ")[0]] for field in fields(Event)}
"""Every column with its Spark type."""
EVENT_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
"""The schema of ``events.jsonl`` as Spark takes it."""
_JSON = ("before", "after", "details")
_FIELDS = {field.name: _TYPES[str(field.type)] for field in fields(Event)}


@dataclass(frozen=True, slots=True)
class Chain:
    """The events of a file, the hash that the next line has to name, and what was torn off at its end by a crash."""

    events: tuple[Event, ...]
    head: str
    torn: bytes


def at(event: Event) -> datetime:
    """Return when it happened, by the operator's clock."""
    return datetime.fromisoformat(event.at.replace("Z", "+00:00"))


def items_of(event: Event) -> list[str]:
    """The items that it is about: an attempt may be of several.

    Raises:
        ValueError, LookupError, TypeError: the details of an attempt name no items.
    """
    if event.item is not None:
        return [event.item]
    if event.event != "attempted":
        return []
    details: Any = parse_json(event.details or "{}")
    return [str(item) for item in details["items"]]


def to_row(event: Event) -> dict[str, str | int | None]:
    return {name: getattr(event, name) for name in COLUMNS}


def to_line(event: Event) -> bytes:
    return json.dumps(to_row(event), ensure_ascii=False, separators=(",", ":")).encode()


def line_hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def parse_chain(data: bytes, run_id: str) -> Chain:
    """The events of a journal. A last line without its newline was being written when the writer died.

    Raises:
        EvidenceError: a line is no event, or was edited, removed or moved; its number is named.
    """
    whole, _, torn = data.rpartition(b"\n")
    lines: Sequence[bytes] = whole.split(b"\n") if whole else ()
    head, events = line_hash(run_id.encode()), list[Event]()
    for number, line in enumerate(lines, 1):
        event = _event(line, number)
        if (event.seq, event.previous, event.run_id) != (number, head, run_id):
            raise EvidenceError(f"line {number} does not follow line {number - 1}: a line was edited, removed or moved")
        events.append(event)
        head = line_hash(line)
    return Chain(tuple(events), head, torn)


def shown(torn: bytes) -> str:
    """The beginning of a torn line, as text."""
    return torn[:_TORN_SHOWN].decode(errors="replace")


def _event(line: bytes, number: int) -> Event:
    try:
        data: Any = parse_json(line.decode())
    except ValueError as error:
        raise EvidenceError(f"line {number} is not JSON: {error}") from error
    if not isinstance(data, dict) or list(data) != list(_FIELDS):
        raise EvidenceError(f"line {number} does not have the columns of an event")
    for name, value in data.items():
        if not isinstance(value, _FIELDS[name]) or isinstance(value, bool):
            raise EvidenceError(f"line {number}: {name} is a {type(value).__name__}")
    for name in _JSON:
        _refuse_unless_json(data[name], f"line {number}: {name}")
    return Event(**data)


def _refuse_unless_json(text: str | None, where: str) -> None:
    try:
        parse_json(text or "null")
    except ValueError as error:
        raise EvidenceError(f"{where} is not JSON: {error}") from error
