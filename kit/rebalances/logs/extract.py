"""The task of Spark that turns candidate lines into rows: it gets those of some files, in order.

It gives events, lines that were not understood, and the counts of each file. It holds one portion of lines at a time,
and unfinished multi-line records from the portion before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from kit.rebalances.logs import brod_records, records
from kit.rebalances.logs.batching import detached, portions, with_last
from kit.rebalances.logs.multiline import settled, with_marks, with_neighbours
from kit.rebalances.logs.parsing import events_of, unknown_lines_of
from kit.rebalances.logs.task_summary import COUNTS, counts_of, totals
from kit.rebalances.logs.wrapped import rejoined
from kit.tables import schema as tables

_NOTHING = pl.DataFrame()
ARROW_SCHEMA = pa.schema(
    [each.with_nullable(True) for each in tables.LOG_EVENTS.schema] + [("wording", pa.string()), *COUNTS.items()]
)
SCHEMA = tables.spark_ddl(ARROW_SCHEMA)
"""A row with a ``kind`` is an event, one with a ``wording`` a line that was not understood, one with ``n_events`` the
counts of its file."""


@dataclass(frozen=True)
class ExtractEvents:
    """The task for ``mapInArrow`` over rows of ``file``, ``block``, ``number``, ``value``, in this order; its rows are
    of ``SCHEMA``. ``before``: as of ``lines.Lines``."""

    before: pl.DataFrame
    layout: str | None
    zone: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for frame in self._extracted(portions(batches)):
            yield from _as_batches(frame)

    def _extracted(self, lines: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        waiting, last, counts = _NOTHING, _NOTHING, []
        for portion, is_last in with_last(rejoined(brod_records.joined(map(self._numbered, lines)))):
            marked = with_marks(records.records_of(portion.lazy(), self.layout))
            ready = pl.concat([waiting, marked], how="diagonal")
            if not is_last:
                ready, waiting = map(detached, settled(ready))
            entries = records.judged(records.timed(with_neighbours(ready.lazy()), self.zone)).collect()
            understood = entries.filter(pl.col("kind").is_not_null() | pl.col("is_unknown"))
            of_portion, last = map(detached, counts_of(understood, entries, last))
            counts.append(of_portion)
            yield events_of(understood)
            yield unknown_lines_of(understood)
        if counts:
            yield totals(pl.concat(counts))

    def _numbered(self, lines: pl.DataFrame) -> pl.DataFrame:
        numbered = lines.lazy().join(self.before.lazy(), on=("file", "block"), maintain_order="left")
        return numbered.with_columns(line=pl.col("n_before") + pl.col("number") + 1).collect()


def _as_batches(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    arrow = frame.to_arrow()
    columns = [
        arrow.column(name).cast(type_) if name in arrow.column_names else pa.nulls(len(frame), type_)
        for name, type_ in zip(ARROW_SCHEMA.names, ARROW_SCHEMA.types)
    ]
    yield from pa.table(columns, schema=ARROW_SCHEMA).to_batches()
