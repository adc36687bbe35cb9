"""What znodes hold, which may be anything: JSON nested until the parser gives up, halves of characters, a megabyte."""

from __future__ import annotations

import json
from typing import Any

_SHOWN = 80


def json_in(data: bytes | None) -> Any:
    """What JSON in UTF-8 says; None for all that is none, or too deep to be read."""
    try:
        return json.loads((data or b"").decode())
    except (ValueError, RecursionError):
        return None


def is_text(value: object) -> bool:
    """Whether it is text that a column can hold: JSON may escape halves of characters."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def shown(value: str | bytes | None) -> str:
    """The beginning of the value, as a literal, for an error message."""
    if value is None or len(value) <= _SHOWN:
        return repr(value)
    return f"{value[:_SHOWN]!r}… ({len(value):,} in all)"
