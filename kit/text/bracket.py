"""A time with its bounds, as people say it: from – to, rounded outwards."""

from __future__ import annotations

from kit.text.duration import duration

NEVER = "never at this rate"


def bracket(lower_ms: int | None, upper_ms: int | None, is_never: bool | None = False, note: str = "") -> str | None:
    """Both bounds in words; None where the lower one is unknown. ``note`` follows the time.

    >>> bracket(65_000, 125_001), bracket(4_000, 4_000), bracket(4_000, None, note=" by size")
    ('1 min 5 s – 2 min 6 s', '4 s', 'not before 4 s by size')
    >>> bracket(None, 5), bracket(None, None, True)
    (None, 'never at this rate')
    """
    if is_never:
        return NEVER
    if lower_ms is None:
        return None
    least = duration(lower_ms)
    if upper_ms is None:
        return f"not before {least}{note}"
    most = duration(upper_ms, is_most=True)
    return f"{least}{note}" if least == most else f"{least} – {most}{note}"
