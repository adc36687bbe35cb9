"""Numbers out of znodes, files and command lines, which may hold any text: what the protocols can hold, or None.

``str.isdecimal`` takes the digits of every script, and ``int`` gives up at 4,300 of them.
"""

from __future__ import annotations

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_LONGEST = len(str(INT64_MAX))


def offset_in(text: str) -> int | None:
    """ASCII digits up to 2⁶³ − 1; None for all else, a negative number and spaces around it too."""
    return _number(text, INT64_MAX)


def partition_in(name: str) -> int | None:
    """As brokers write it, and their ids too: ASCII digits up to 2³¹ − 1 without leading zeros; None for all else."""
    number = _number(name, INT32_MAX)
    return number if number is not None and str(number) == name else None


def _number(text: str, largest: int) -> int | None:
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _LONGEST and int(digits) <= largest else None
