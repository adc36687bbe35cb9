"""Transactions of a metadata log: what is between BeginTransaction and its end counts at the end, or never.

The first copy out of ZooKeeper is one such transaction. A new leader aborts what an earlier one left open (KIP-868).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kit.kraft.metadata_log.records import ABORT, BEGIN, END, Record

NONE, OPEN, COMMITTED, ABORTED = "none", "open", "committed", "aborted"
MARKERS = (BEGIN, END, ABORT)


def with_transactions(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """Each record with how its transaction ended; those of one wait for its end. Control records are of none."""
    begun: list[Record] = []
    for record in records:
        marker = record.api_key if record.body is not None else None
        if marker == BEGIN:
            yield from _ended(begun, OPEN)
            begun = [record]
        elif marker in MARKERS and begun:
            yield from _ended([*begun, record], COMMITTED if marker == END else ABORTED)
            begun = []
        elif marker in MARKERS:
            yield record._replace(error=f"{record.name} without a BeginTransaction"), NONE
        elif begun:
            begun.append(record)
        else:
            yield record, NONE
    yield from _ended(begun, OPEN)


def _ended(records: list[Record], status: str) -> Iterator[tuple[Record, str]]:
    return ((record, status if record.api_key is not None else NONE) for record in records)
