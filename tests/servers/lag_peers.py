"""Restate how two other tools compute lag in time, from what they publish: for comparison only."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

_POINTS = 60


@dataclass
class LookupTable:
    """kafka-lag-exporter's table of one log: when its end was which offset. It is kept as that tool keeps it.

    So a log that is made again is not noticed until its end passes the former one, and what is older than all points
    is guessed by the line through the first and the last.
    """

    points: list[tuple[int, int]] = field(default_factory=list)

    def add(self, end: int, at_ms: int) -> None:
        if self.points and (at_ms <= self.points[-1][1] or end < self.points[-1][0]):
            return
        if len(self.points) >= 2 and self.points[-1][0] == self.points[-2][0] == end:
            self.points[-1] = (end, at_ms)
            return
        self.points = [*self.points, (end, at_ms)][-_POINTS:]

    def lag_ms(self, offset: int) -> float | None:
        """By the newest of its points; None: it can't determine, or says that it is infinite."""
        if not self.points:
            return None
        (last, now_ms) = self.points[-1]
        if offset == last:
            return 0.0
        if len(self.points) < 2:
            return None
        appended = _on_line(self._segment(offset), offset)
        return None if appended in (inf, -inf) else now_ms - appended

    def _segment(self, offset: int) -> tuple[tuple[int, int], tuple[int, int]]:
        for left, right in reversed(list(zip(self.points, self.points[1:]))):
            if left[0] <= offset <= right[0]:
                return left, right
        return self.points[0], self.points[-1]


@dataclass
class TwoAnchors:
    """klag's way: a line from the log's first record to the one with the newest timestamp.

    Where these can't be used it falls back to the ends that it polled, and never guesses beyond the oldest.
    """

    polled: list[tuple[int, int]] = field(default_factory=list)

    def add(self, end: int, at_ms: int) -> None:
        self.polled = [*self.polled, (end, at_ms)][-_POINTS:]

    def lag_ms(
        self, offset: int, first: tuple[int, int], newest: tuple[int, int], end: int, now_ms: int
    ) -> float | None:
        """``first`` and ``newest``: offset and timestamp of both anchors."""
        (start, begin), (anchor, until) = first, newest
        is_usable = begin > 0 and until > 0 and until >= begin and anchor > start and start <= offset <= end
        if is_usable:
            at = until if offset >= anchor else _on_line((first, newest), offset)
            return max(0.0, now_ms - at)
        for left, right in reversed(list(zip(self.polled, self.polled[1:]))):
            if left[0] <= offset <= right[0] and left[0] < right[0]:
                return max(0.0, now_ms - _on_line((left, right), offset))
        return None


def _on_line(segment: tuple[tuple[int, int], tuple[int, int]], offset: int) -> float:
    (start, begin), (end, until) = segment
    if end == start:
        return begin if offset == start else -inf
    return begin + (until - begin) * (offset - start) / (end - start)
