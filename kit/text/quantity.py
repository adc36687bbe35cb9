"""A number and what it counts, for sentences."""

from __future__ import annotations

from decimal import Decimal


def quantity(number: float | Decimal, one: str, many: str = "") -> str:
    """The number with commas; ``many`` where more than one is not ``one`` and an s.

    >>> quantity(1, "member"), quantity(0, "member"), quantity(10_000, "member")
    ('1 member', '0 members', '10,000 members')
    >>> quantity(1, "offset is", "offsets are"), quantity(2, "offset is", "offsets are")
    ('1 offset is', '2 offsets are')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
