"""Numbers from znodes, files and command lines, which may hold any text: a number of the protocol's range, or None.

``str.isdecimal`` accepts the digits of every script, and ``int`` fails at more than 4,300 digits.
"""

from __future__ import annotations

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_LONGEST = len(str(INT64_MAX))


def offset_in(text: str) -> int | None:
    """An offset: ASCII digits up to 2⁶³ − 1. None for all other text, also with a sign or spaces around it."""
    return _number(text, INT64_MAX)


def partition_in(name: str) -> int | None:
    """A partition or a broker id: ASCII digits up to 2³¹ − 1 without leading zeros. None for all other text."""
    number = _number(name, INT32_MAX)
    return number if number is not None and str(number) == name else None


def _number(text: str, largest: int) -> int | None:
    if not (text.isdecimal() and text.isascii()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _LONGEST and int(digits) <= largest else None
