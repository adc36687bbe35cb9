"""Values of znodes. They may hold anything: JSON that is nested too deep, lone surrogates, a megabyte of text."""

from __future__ import annotations

import json
from typing import Any

_SHOWN = 80


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def json_in(data: bytes | None) -> Any:
    """The value of JSON in UTF-8; None if it is invalid (``NaN``, too, which Kafka refuses), or nested too deep."""
    try:
        return _DECODER.decode((data or b"").decode())
    except (ValueError, RecursionError):
        return None


def is_text(value: object) -> bool:
    """Return whether a column can hold the text: JSON may escape lone surrogates."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def shown(value: str | bytes | None) -> str:
    """The beginning of the value, as a literal, for an error message."""
    if value is None or len(value) <= _SHOWN:
        return repr(value)
    return f"{value[:_SHOWN]!r}… ({len(value):,} in all)"
