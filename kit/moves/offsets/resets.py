"""Resets of offsets, and the wanted offset of one partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kit.errors import InputError
from kit.moves.offsets.moves import Stored
from kit.tables.groups import LogOffset
from kit.text.numbers import offset_in

EARLIEST, LATEST, OFFSET, SHIFT, TIME, AGO = "earliest", "latest", "offset", "shift", "time", "ago"
_VALUES: dict[str, type] = {OFFSET: int, SHIFT: int, TIME: datetime, AGO: timedelta}
_LONGEST_AGO = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset to ``earliest``, ``latest`` or an ``offset``; by a ``shift`` (backwards if negative); or to a time.

    ``time`` is a datetime with a time zone, ``ago`` a timedelta before now: the first record that is not older.

    Raises:
        InputError: there is no such reset, or its value has another type.
    """

    to: str
    value: int | datetime | timedelta | None = None

    def __post_init__(self) -> None:
        if self.to not in (EARLIEST, LATEST, *_VALUES):
            raise InputError(f"there is no reset to {self.to!r}; possible are earliest, latest, {', '.join(_VALUES)}")
        kind = _VALUES.get(self.to, type(None))
        if type(self.value) is not kind:
            raise InputError(f"a reset to {self.to!r} takes {kind.__name__}, not {self.value!r}")
        if isinstance(self.value, datetime) and self.value.tzinfo is None:
            raise InputError(f"the time {self.value.isoformat()} has no time zone")
        if isinstance(self.value, timedelta) and not timedelta(0) <= self.value <= _LONGEST_AGO:
            raise InputError(f"{self.value} ago is in the future, or longer ago than any record")
        if self.to == OFFSET and isinstance(self.value, int) and self.value < 0:
            raise InputError(f"the offset {self.value} is negative; only a shift may be negative")

    def time_at(self, now: datetime) -> datetime | None:
        """The time of a reset by time, in UTC; None for other resets."""
        if isinstance(self.value, datetime):
            return self.value.astimezone(UTC)
        return now.astimezone(UTC) - self.value if isinstance(self.value, timedelta) else None

    @property
    def sentence(self) -> str:
        if isinstance(self.value, datetime):
            return f"time {self.value.astimezone(UTC).isoformat()}"
        return self.to if self.value is None else f"{self.to} {self.value}"


def parse_reset(text: str) -> Reset:
    """``earliest``, ``latest``, ``42``, ``+5``, ``-5``, ``-90m`` (s, m, h, d ago) or a time with its zone.

    Raises:
        InputError: the text is none of these.
    """
    if text in (EARLIEST, LATEST):
        return Reset(text)
    if (offset := offset_in(text)) is not None:
        return Reset(OFFSET, offset)
    if text[:1] in ("+", "-") and (shift := offset_in(text[1:])) is not None:
        return Reset(SHIFT, -shift if text[0] == "-" else shift)
    unit = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}.get(text[-1:])
    try:
        if text[:1] == "-" and unit is not None and offset_in(text[1:-1]) is not None:
            return Reset(AGO, timedelta(**{unit: int(text[1:-1])}))
        return Reset(TIME, datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise InputError(
            f"a reset to {text!r} is none of: earliest, latest, an offset, +n, -n, -90m, or a time such as "
            "2026-01-31T12:00:00+00:00"
        ) from None


def wanted_by(
    reset: Reset, before: Stored, log_start: int, log_end: int, at_time: int | None
) -> tuple[int | None, str | None]:
    """The wanted offset, not yet clamped, and a note; None: there is no offset to shift.

    ``at_time`` is the offset by time. None: all records are older; then the log's end is wanted, with a note.
    """
    if isinstance(reset.value, int):
        if reset.to == OFFSET:
            return reset.value, None
        return None if before.offset is None else before.offset + reset.value, None
    if reset.to in (TIME, AGO):
        return (
            (log_end, "all records are older than that time, so the offset is set to the end of the log (latest)")
            if at_time is None
            else (at_time, None)
        )
    return (log_start if reset.to == EARLIEST else log_end), None


def bounds(log: LogOffset | None) -> tuple[int, int] | None:
    """Start and end of a log; None if one of them is unknown."""
    if log is None or log.log_start_offset is None or log.log_end_offset is None:
        return None
    return log.log_start_offset, log.log_end_offset
