"""An account of one file of a metadata log: every row is in one count, and what is wrong is reported."""

from __future__ import annotations

from collections import Counter

from kit.kraft.metadata_log.bulk import Bulk
from kit.kraft.metadata_log.files import CHECKPOINT, LogFile
from kit.kraft.metadata_log.records import RECORD_TYPES, Record
from kit.tables.metadata import MetadataFile

_MOST = 20
"""The largest number of different problems and gaps that are named; all are counted."""


class Tally:
    """Counts the records of one file."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._types: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._problems: Counter[str] = Counter()
        self._gaps: list[str] = []
        self._n_records = self._n_control = 0
        self._first: Record | None = None
        self._last: Record | None = None

    def add(self, record: Record) -> None:
        """Count one record, or one place that can't be read."""
        self._n_records += 1
        if record.offset is not None:
            self._first, self._last = self._first or record, record
        if not record.is_known:
            self._unknown[f"{record.api_key} v{record.version}"] += 1
        elif record.error is not None:
            self._problems[record.error] += 1
            self._gaps += [f"{record.gap[0]}..{record.gap[1]}"] if record.gap else []
        elif record.api_key is None:
            self._n_control += 1
        else:
            self._types[str(record.name)] += 1

    def add_bulk(self, bulk: Bulk) -> None:
        """Count a part of a file that was read by columns."""
        first, last = self._first or bulk.first, bulk.last or self._last
        for record in bulk.rest:
            self.add(record)
        for kind, rows in bulk.rows.items():
            if n := sum(map(len, rows)):
                self._types[RECORD_TYPES[kind].name] += n
                self._n_records += n
        self._first, self._last = first, last

    @property
    def is_whole(self) -> bool:
        """Nothing damaged or missing; a checkpoint from header to footer."""
        if self._problems or self._first is None or self._last is None:
            return False
        ends = (self._first.name, self._last.name)
        return self._file.kind != CHECKPOINT or ends == ("SnapshotHeader", "SnapshotFooter")

    def row(self) -> MetadataFile:
        """``tables.METADATA_FILES``."""
        is_log = self._file.kind != CHECKPOINT
        return MetadataFile(
            file=self._file.name,
            kind=self._file.kind,
            base_offset=self._file.base_offset,
            epoch=self._file.epoch,
            n_bytes=self._file.n_bytes,
            n_records=self._n_records,
            n_control=self._n_control,
            n_unknown=self._unknown.total(),
            n_errors=self._problems.total(),
            first_offset=self._first.offset if is_log and self._first else None,
            last_offset=self._last.offset if is_log and self._last else None,
            types=_counted(self._types),
            unknown=_counted(self._unknown),
            gaps=tuple(self._gaps[:_MOST]),
            problems=_counted(self._problems)[:_MOST],
            is_whole=self.is_whole,
        )


def _counted(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{name}: {n}" for name, n in sorted(counts.items()))
