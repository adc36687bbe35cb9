"""Files that follow on one another → an image: by columns where all of it is in order, else record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise

import polars as pl

from kit.kraft.metadata_log.bulk import Bulk, read_bulks
from kit.kraft.metadata_log.continuity import with_gaps
from kit.kraft.metadata_log.file_summary import Tally
from kit.kraft.metadata_log.files import LogFile
from kit.kraft.metadata_log.folding import Folded, folded
from kit.kraft.metadata_log.image import Image, Topic
from kit.kraft.metadata_log.records import Record, read_records
from kit.kraft.metadata_log.runs import NeedsRecordReader
from kit.kraft.metadata_log.transactions import with_transactions
from kit.text.fingerprints import Hide, stars


def stream(files: Iterable[LogFile], until: int | None = None, hide: Hide = stars) -> Iterator[Record]:
    """The records of files that follow on one another, up to ``until``, with a row for each gap."""
    records = chain.from_iterable(read_records(file.read(), file.name, hide) for file in files)
    return with_gaps(each for each in records if until is None or each.offset is None or each.offset < until)


@dataclass(frozen=True)
class Step:
    """Files to replay from ``first`` on; ``at_offset`` means the offset of each record of a checkpoint.

    ``before`` are the steps that made the image which these files continue with.
    """

    files: tuple[LogFile, ...]
    first: int
    at_offset: int | None
    until: int | None
    hide: Hide
    before: tuple[Step, ...] = ()

    def replay(self, image: Image, tallies: Mapping[str, Tally]) -> None:
        """Count every record, and apply those from ``first`` on."""
        try:
            self._by_columns(image, tallies)
        except NeedsRecordReader:
            self._plainly(image, tallies)

    def _plainly(self, image: Image, tallies: Mapping[str, Tally]) -> None:
        """Record by record; what is behind the place where the image stops is read all the same."""
        records = _counted(stream(self.files, self.until, self.hide), tallies)
        since = with_gaps(_since(records, self.first), self.first)
        image.replay(with_transactions(since), self.at_offset)
        for _ in records:
            pass

    def _by_columns(self, image: Image, tallies: Mapping[str, Tally]) -> None:
        """Apply all records by columns, or none: NeedsRecordReader before anything is counted or applied."""
        bulks = [bulk for each in self.files for bulk in read_bulks(each, self.hide)]
        self._refuse_gaps(bulks)
        if image.folded is None and image.n_partitions:
            raise NeedsRecordReader
        later = [each.since(self.first) if _offset(each.first) < self.first else each for each in bulks]
        partitions = self._folded(image.folded, later)
        for bulk in bulks:
            tallies[bulk.name].add_bulk(bulk)
        image.folded = image.unfold = None  # All that is replayed here needs no partitions.
        image.replay(with_transactions(record for bulk in later for record in bulk.rest), self.at_offset)
        for bulk in bulks:
            if bulk.last is not None and _offset(bulk.last) >= self.first:
                image.place(bulk.last, self.at_offset)
        image.folded, image.unfold = partitions, self._topics

    def _folded(self, before: Folded | None, bulks: list[Bulk]) -> Folded:
        partitions = folded(before, bulks)
        if self.at_offset is None:
            return partitions
        return Folded(
            partitions.topic_ids, partitions.rows.with_columns(pl.lit(self.at_offset, pl.Int64).alias("offset"))
        )

    def _refuse_gaps(self, bulks: list[Bulk]) -> None:
        some = [each for each in bulks if each.last is not None]
        for before, after in pairwise(some):
            if _offset(after.first) != _offset(before.last) + 1 or _epoch(after.first) < _epoch(before.last):
                raise NeedsRecordReader
        if some and _offset(some[0].first) > self.first:
            raise NeedsRecordReader
        if some and self.until is not None and _offset(some[-1].last) >= self.until:
            raise NeedsRecordReader

    def _topics(self) -> dict[str, Topic]:
        """With their partitions, read plainly."""
        image = Image()
        for step in (*self.before, self):
            step._plainly(image, {each.name: Tally(each) for each in step.files})
        return image.heads


def _offset(record: Record | None) -> int:
    return -1 if record is None or record.offset is None else record.offset


def _epoch(record: Record | None) -> int:
    return -1 if record is None or record.epoch is None else record.epoch


def _counted(records: Iterable[Record], tallies: Mapping[str, Tally]) -> Iterator[Record]:
    for record in records:
        tallies[record.file].add(record)
        yield record


def _since(records: Iterable[Record], first: int) -> Iterator[Record]:
    """Damage before ``first`` is skipped, too: a checkpoint has what was there."""
    expected = 0
    for record in records:
        expected = expected if record.offset is None else record.offset + 1
        if expected > first or (record.offset is None and expected == first):
            yield record
