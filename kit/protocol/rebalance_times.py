"""Count the rebalances of a group and measure their length, by its records in ``__consumer_offsets``.

Under the consumer protocol a rebalance begins when the coordinator raises the group epoch (key 3), and has ended when
each member has reached the newest epoch (key 8). Members consume meanwhile what they keep. A conversion, and the first
member of an empty group, are no rebalance. A classic group writes one record per generation, at the end: the log has
the number of its rebalances, and not their duration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One record about epochs. ``member`` None: the whole group. ``epoch`` None: the member left.

    ``is_generation``: a generation of a classic group, which has no epochs of members.
    """

    offset: int
    written_at: datetime | None
    epoch: int | None
    member: str | None = None
    is_generation: bool = False


@dataclass(frozen=True, slots=True)
class RebalanceTimes:
    """Rebalances whose end the log shows.

    ``n_classic``: generations of the classic group. ``durations_ms``: one per rebalance under the consumer protocol.
    """

    n_classic: int = 0
    durations_ms: tuple[int, ...] = ()

    @property
    def median_ms(self) -> int | None:
        return round(median(self.durations_ms)) if self.durations_ms else None

    @property
    def longest_ms(self) -> int | None:
        return max(self.durations_ms, default=None)


def rebalance_times(records: Iterable[EpochRecord], since: int) -> tuple[RebalanceTimes, RebalanceTimes]:
    """The rebalances that ended before offset ``since``, and those that ended from it on; ``records`` by offset."""
    found: tuple[list[int], list[int]] = ([], [])
    n_classic = [0, 0]
    reached: dict[str, int] = {}
    newest, began = -1, None
    for each in records:
        if each.is_generation:
            n_classic[each.offset >= since] += 1
            reached.clear()
            began = None
        elif each.member is not None and each.epoch is None:
            reached.pop(each.member, None)
        elif each.member is not None and each.epoch is not None:
            reached[each.member] = each.epoch
        elif each.epoch is not None and each.epoch != newest:
            newest, began = each.epoch, (began or each.written_at) if reached else None
        if began and each.written_at and reached and all(epoch == newest for epoch in reached.values()):
            found[each.offset >= since].append(round((each.written_at - began).total_seconds() * 1000))
            began = None
    early, late = (RebalanceTimes(count, tuple(ms)) for count, ms in zip(n_classic, found, strict=True))
    return early, late
