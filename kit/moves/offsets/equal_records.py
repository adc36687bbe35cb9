"""An offset of one log in the copy of that log on another cluster, by the records on both sides. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from kit.groups.read.record_prints import Print
from kit.text.quantity import quantity

RECORD, TIMESTAMP, SYNCS = "record", "timestamp", "syncs"
METHODS = (RECORD, TIMESTAMP, SYNCS)
"""By an equal record, by timestamp alone, by MirrorMaker 2's syncs. The first and the last fall back to the second."""
CONTEXT = 5
"""Records on each side that decide between copies that are equal."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The position in the copy at which a group continues.

    ``distance``: how many records of the source lie between its offset and the record that was found; null by
    timestamp. ``doubt``: why records may be read again or not at all; empty: the next record is the same on both sides.
    """

    offset: int
    method: str
    distance: int | None = None
    doubt: str = ""

    @property
    def sentence(self) -> str:
        """Return the sentence that a plan shows."""
        by = {RECORD: "by equal record", TIMESTAMP: "by timestamp", SYNCS: "by offset sync"}[self.method]
        near = f", {self.distance:,} records away" if self.distance else ""
        return f"{by}{near}{f': {self.doubt}' if self.doubt else ''}"


def by_equal_record(offset: int, source: Sequence[Print], copy: Sequence[Print]) -> Translation | None:
    """Find the next record to read in the copy, or else the one that was read last.

    Args:
        offset: the committed offset in the source's log.
        source: the source's records on both sides of it.
        copy: the copy's records of the same time.

    Returns None: none of these records is in the copy.

    >>> source = [Print(7, 100, b"a"), Print(8, 110, b"b"), Print(9, 120, b"c")]
    >>> by_equal_record(9, source, [Print(3, 110, b"b"), Print(4, 120, b"c")])
    Translation(offset=4, method='record', distance=0, doubt='')
    >>> by_equal_record(9, source, [Print(3, 100, b"a")])
    Translation(offset=4, method='record', distance=1, doubt='the next record is not in the copy')
    """
    at = sum(record.offset < offset for record in source)
    if at < len(source) and (found := _equal(source, at, copy)):
        return Translation(copy[found[0]].offset, RECORD, 0, _doubled(found))
    for distance, before in enumerate(range(at - 1, -1, -1)):
        if found := _equal(source, before, copy):
            is_last = distance == 0 and at == len(source)
            missing = "" if is_last else "the next record is not in the copy"
            doubts = [each for each in (missing, _doubled(found)) if each]
            return Translation(copy[found[0]].offset + 1, RECORD, distance, "; ".join(doubts))
    return None


def by_sync(offset: int, syncs: list[tuple[int, int]]) -> Translation | None:
    """Translate by the last sync at or below the offset, as MirrorMaker 2 does; None: all are above it.

    >>> by_sync(10, [(0, 0), (8, 5)])
    Translation(offset=6, method='syncs', distance=2, doubt='up to 1 record is read again')
    """
    at = bisect_right(syncs, (offset, 2**63)) - 1
    if at < 0:
        return None
    upstream, downstream = syncs[at]
    distance = offset - upstream
    again = f"up to {quantity(distance - 1, 'record is', 'records are')} read again"
    return Translation(downstream + (distance > 0), SYNCS, distance, again if distance > 1 else "")


def nearest(offset: int, source: Sequence[Print]) -> list[Print]:
    """The records on both sides of an offset that are searched for in the copy."""
    at = sum(record.offset < offset for record in source)
    return list(source[max(0, at - CONTEXT) : at + CONTEXT])


def _equal(source: Sequence[Print], at: int, copy: Sequence[Print]) -> list[int]:
    """Return where the record is in the copy; of several copies those whose neighbours are most alike, the first one
    first.
    """
    places = [place for place, record in enumerate(copy) if record.is_equal(source[at])]
    if len(places) < 2:
        return places
    alike = {place: _alike(source, at, copy, place) for place in places}
    best = max(alike.values())
    return [place for place in places if alike[place] == best]


def _alike(source: Sequence[Print], at: int, copy: Sequence[Print], place: int) -> int:
    steps = [step for step in range(-CONTEXT, CONTEXT + 1) if 0 <= at + step < len(source)]
    return sum(0 <= place + step < len(copy) and source[at + step].is_equal(copy[place + step]) for step in steps)


def _doubled(found: Sequence[int]) -> str:
    return f"{len(found)} equal records: the first is taken, and later ones are read again" if len(found) > 1 else ""
