"""Format a duration for people: two units at most."""

from __future__ import annotations

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration(ms: int, is_most: bool = False) -> str:
    """Milliseconds in words, rounded down; ``is_most``: up, as an upper bound has to be.

    >>> duration(45_999), duration(45_001, is_most=True), duration(725_000), duration(3_600_000)
    ('45 s', '46 s', '12 min 5 s', '1 h')
    >>> duration(11_100_000), duration(11_111_000, is_most=True), duration(0), duration(86_399_999, is_most=True)
    ('3 h 5 min', '3 h 6 min', '0 s', '1 d')
    """
    seconds = -(-ms // 1000) if is_most else ms // 1000
    least = next((size for _, size in _UNITS[1:3] if seconds >= 24 * size), 1)
    rounded = (-(-seconds // least) if is_most else seconds // least) * least
    name, size = next(((name, size) for name, size in _UNITS if rounded >= size), ("s", 1))
    smaller = next(((n, s) for n, s in _UNITS if s < size and rounded % size >= s), None)
    first = f"{rounded // size} {name}"
    return f"{first} {rounded % size // smaller[1]} {smaller[0]}" if smaller else first
