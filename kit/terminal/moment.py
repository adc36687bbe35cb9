"""A time as people write it in an option."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from kit.errors import InputError

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str | None) -> datetime | None:
    """A time as people write it: ISO 8601, in UTC where it has no zone, or so long ago (``90m``, ``6h``, ``2d``).

    Raises:
        InputError: it is neither.
    """
    if not text:
        return None
    ago = _AGO.fullmatch(text)
    if ago:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is neither a time such as 2026-11-21T06:30 nor an age such as 90m") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
