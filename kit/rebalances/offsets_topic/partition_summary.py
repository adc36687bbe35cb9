"""Count every record of a read: each is in one count of its partition."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from kit.rebalances.offsets_topic.binary_column import Ints
from kit.rebalances.offsets_topic.fetching import PartitionRange, Records
from kit.rebalances.offsets_topic.keys import EPOCHS, GENERATION, UNREADABLE, Keys, name_of
from kit.tables.rebalances import OffsetsPartition

_TABLES = ("commits", "generations", "epochs")
_NO_KEY = "the key can't be decoded"


class Tally:
    """Counts of the records of some partitions."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, str]] = Counter()
        self._others: Counter[tuple[int, int]] = Counter()
        self._problems: Counter[tuple[int, str]] = Counter()

    def add(self, records: Records, every: Keys, asked: Keys, *tables: pa.RecordBatch | pa.Table) -> None:
        """One batch: all its keys, those asked for, and the tables of rows made of these."""
        is_null = records.values.is_null().to_numpy(zero_copy_only=False)
        rows = np.concatenate([asked.commits, asked.generations, asked.epochs])
        kinds = {
            "records": records.partition,
            "commits": records.partition[asked.commits],
            "generations": records.partition[asked.generations],
            "epochs": records.partition[asked.epochs],
            "tombstones": records.partition[rows[is_null[rows]]],
            "unreadable": records.partition[every.kind == UNREADABLE],
            "read": records.partition[np.concatenate([every.commits, every.generations, every.epochs])],
        }
        for name, partitions in kinds.items():
            self._count(name, partitions)
        is_other = (every.kind > GENERATION) & ~np.isin(every.kind, EPOCHS)
        self._others.update(zip(records.partition[is_other].tolist(), every.kind[is_other].tolist()))
        for table in tables:
            self._add_errors(table)

    def _count(self, name: str, partitions: Ints) -> None:
        distinct, counts = np.unique(partitions, return_counts=True)
        for partition, count in zip(distinct.tolist(), counts.tolist()):
            self._counts[partition, name] += count

    def _add_errors(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Records, not rows: of a record with several members it is counted once."""
        if rows["error"].null_count == len(rows):
            return
        failed = rows.filter(rows["error"].is_valid()).select(["partition", "offset", "error"]).to_pylist()
        first = {(row["partition"], row["offset"]): row["error"] for row in reversed(failed)}
        for (partition, _), error in first.items():
            self._counts[partition, "errors"] += 1
            self._problems[partition, error] += 1

    def row(self, part: PartitionRange, read_until: int) -> OffsetsPartition:
        """Return the counts of one partition that was read to its end."""
        count = {name: self._counts[part.partition, name] for name in ("records", *_TABLES)}
        unreadable = self._counts[part.partition, "unreadable"]
        others = [(kind, n) for (partition, kind), n in sorted(self._others.items()) if partition == part.partition]
        problems = [(text, n) for (partition, text), n in sorted(self._problems.items()) if partition == part.partition]
        problems += [(_NO_KEY, unreadable)] if unreadable else []
        return OffsetsPartition(
            partition=part.partition,
            start_offset=part.start,
            end_offset=part.end,
            read_until=read_until,
            n_records=count["records"],
            n_commits=count["commits"],
            n_generations=count["generations"],
            n_epochs=count["epochs"],
            n_tombstones=self._counts[part.partition, "tombstones"],
            n_errors=self._counts[part.partition, "errors"],
            n_unsupported=sum(n for _, n in others),
            n_filtered=self._counts[part.partition, "read"] - sum(count[name] for name in _TABLES),
            n_unreadable=unreadable,
            others=tuple(f"{name_of(kind)}: {n}" for kind, n in others),
            problems=tuple(f"{text}: {n}" for text, n in problems),
            error=None,
        )


def unread(partition: int, error: str, part: PartitionRange | None = None) -> OffsetsPartition:
    """A partition that could not be read, or not to its end."""
    return OffsetsPartition(
        partition=partition,
        start_offset=None if part is None else part.start,
        end_offset=None if part is None else part.end,
        read_until=None,
        n_records=None,
        n_commits=None,
        n_generations=None,
        n_epochs=None,
        n_tombstones=None,
        n_errors=None,
        n_unsupported=None,
        n_filtered=None,
        n_unreadable=None,
        others=(),
        problems=(),
        error=error,
    )
