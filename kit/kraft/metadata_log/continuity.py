"""Find missing offsets of a metadata log, and offsets that go back: the log is never compacted, so each follows on
the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kit.kraft.metadata_log.records import Record


def with_gaps(records: Iterable[Record], first: int | None = None) -> Iterator[Record]:
    """The records, and before each that does not follow on the last one a row that reports it.

    ``first`` is the offset expected at the beginning; None: any.
    """
    expected, epoch = first, -1
    for record in records:
        if record.offset is not None and record.epoch is not None:
            if expected is not None and record.offset > expected:
                gap = expected, record.offset - 1
                yield _problem(record, f"offsets {gap[0]}..{gap[1]} are missing")._replace(gap=gap)
            elif expected is not None and record.offset < expected:
                yield _problem(
                    record, f"offset {record.offset} comes after {expected - 1}: this record belongs to another log"
                )
            if record.epoch < epoch:
                yield _problem(record, f"epoch {record.epoch} comes after {epoch}: this record belongs to another log")
            expected, epoch = record.offset + 1, record.epoch
        yield record


def _problem(before: Record, error: str) -> Record:
    return Record(None, None, -1, None, None, None, None, error=error, file=before.file)
