"""What Spark's tasks do with the lines that may matter: each gets those of some files, in order, and tells events,
lines that were not understood, and an account of each file.

A task holds so many lines at a time, and of those before what may still be gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import polars as pl
import pyarrow as pa

from kit.logs import fields, records, wordings
from kit.logs.multiline import settled, with_marks, with_neighbours
from kit.logs.texts import replaced
from kit.tables import schema as tables

_BYTES, _ROWS = 32 << 20, 20_000
"""So much is told at once."""
_CUT = 2000
_BACK_US = 1_000_000
"""Clocks that write a record a little late are none that go back."""
ACCOUNT = {
    "n_events": pa.int64(),
    "n_context": pa.int64(),
    "n_unknown": pa.int64(),
    "layouts": pa.list_(pa.string()),
    "n_time_regressions": pa.int64(),
    "first_at": pa.timestamp("us", "UTC"),
    "last_at": pa.timestamp("us", "UTC"),
    "n_unzoned": pa.int64(),
    "first_local": pa.int64(),
    "last_local": pa.int64(),
    "least_step": pa.int64(),
    "most_step": pa.int64(),
}
_NOTHING = pl.DataFrame()
ARROW_SCHEMA = pa.schema(
    [each.with_nullable(True) for each in tables.LOG_EVENTS.schema] + [("wording", pa.string()), *ACCOUNT.items()]
)
SCHEMA = tables.spark_ddl(ARROW_SCHEMA)
"""A row with a ``kind`` is an event, one with a ``wording`` a line that was not understood, one with ``n_events`` the
account of its file."""


@dataclass(frozen=True)
class ExtractEvents:
    """The task for ``mapInArrow`` over rows of ``file``, ``block``, ``number``, ``value``, in this order; its rows are
    of ``SCHEMA``. ``before``: as of ``lines.Lines``."""

    before: pl.DataFrame
    layout: str | None
    zone: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for frame in self._told(_portions(batches)):
            yield from _rows(frame)

    def _told(self, portions: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        waiting, last, accounts = _NOTHING, _NOTHING, []
        for lines, is_last in _with_last(portions):
            ready = pl.concat([waiting, self._marked(lines)], how="diagonal")
            if not is_last:
                ready, waiting = map(_by_themselves, settled(ready))
            entries = records.judged(records.timed(with_neighbours(ready.lazy()), self.zone)).collect()
            told = entries.filter(pl.col("kind").is_not_null() | pl.col("is_unknown"))
            account, last = map(_by_themselves, _account(told, entries, last))
            accounts.append(account)
            yield _events(told)
            yield _unknown(told)
        if accounts:
            yield _whole(pl.concat(accounts))

    def _marked(self, lines: pl.DataFrame) -> pl.DataFrame:
        numbered = lines.lazy().join(self.before.lazy(), on=("file", "block"), maintain_order="left")
        numbered = numbered.with_columns(line=pl.col("n_before") + pl.col("number") + 1)
        return with_marks(records.records_of(numbered, self.layout)).collect()


def _portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """As many lines as are told at once."""
    held: list[pl.DataFrame] = []
    for batch in batches:
        held.append(pl.DataFrame(batch))
        if sum(map(len, held)) > _ROWS or sum(each.estimated_size() for each in held) > _BYTES:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def _with_last(portions: Iterable[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Each, and whether none follows."""
    before = None
    for each in portions:
        if before is not None:
            yield before, False
        before = each
    if before is not None:
        yield before, True


def _by_themselves(rows: pl.DataFrame) -> pl.DataFrame:
    """Copied: a few rows that stay would otherwise keep all the texts of their portion."""
    return pl.DataFrame(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _events(told: pl.DataFrame) -> pl.DataFrame:
    """What a text says is looked for once: most events of a client are heartbeats, word for word the same."""
    message = pl.col("message")
    events = told.filter(pl.col("kind") != wordings.CONTEXT)
    texts = events.select("told", "kind").unique().lazy().with_columns(**_said())
    return (
        events.lazy()
        .with_columns(**fields.consumer_prefix(message), old=fields.old_consumer(message))
        .join(texts, on=("told", "kind"), how="left", maintain_order="left")
        .with_columns(member_id=pl.coalesce("said_member", "old"))
        .with_columns(**_facts())
        .select(tables.LOG_EVENTS.schema.names)
        .collect()
    )


@cache
def _said() -> dict[str, pl.Expr]:
    """What a text tells by itself, column by column."""
    said = pl.col("told")
    return {
        "said_member": fields.member_of(said),
        "said_group": fields.group_of(said),
        "said_partitions": fields.partitions_of(said, pl.col("kind")),
        "generation": fields.generation_of(said),
        "leader_id": fields.leader_of(said),
        "assignor": fields.assignor_of(said),
        "coordinator": fields.coordinator_of(said),
        "coordinator_id": fields.coordinator_id_of(said),
        "offset": fields.offset_of(said),
        "reason": fields.reason_of(said),
    }


@cache
def _facts() -> dict[str, pl.Expr]:
    """What an event tells beyond its text."""
    kind = pl.col("kind")
    empty = pl.when(kind == "group_assignment").then(pl.lit([], pl.List(pl.String)))
    listed = pl.when(pl.col("listed").list.len() > 0).then(pl.col("listed").list.sort()).otherwise(empty)
    return {
        "client_id": pl.coalesce("prefix_client", "client_id", fields.client_in(pl.col("member_id"))),
        "group_id": pl.coalesce("prefix_group", "said_group", fields.old_group(pl.coalesce("old", "member_id"))),
        "text": pl.col("raw").str.strip_chars(" ").str.slice(0, _CUT),
        "partitions": pl.when(kind.is_in(("assignment_diff", "reconciling")))
        .then("added")
        .otherwise(pl.coalesce(listed, "said_partitions")),
        "owned_before": pl.col("owned"),
        "owned_after": pl.col("assigned"),
    }


def _unknown(told: pl.DataFrame) -> pl.DataFrame:
    """``wording``: the text with ids and numbers left out, to count by."""
    worded = replaced(replaced(pl.col("told"), fields.UUID, "…"), r"\d+", "…").str.slice(0, 120)
    lines = told.filter("is_unknown").with_columns(wording=worded, text=pl.col("raw").str.slice(0, _CUT))
    return lines.select(tables.LOG_LINES.schema.names)


def _account(told: pl.DataFrame, entries: pl.DataFrame, last: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What these tell of each file, and the last of every origin, with which to compare what follows. Any entry may
    prove the zone."""
    before = pl.col("local_at").shift().over("file", "origin")
    every = pl.concat([last, told.with_columns(is_new=pl.lit(True))], how="diagonal")
    timed = every.with_columns(goes_back=pl.col("is_new") & (pl.col("local_at") < before - _BACK_US))
    unzoned = pl.col("local_at").filter(pl.col("local_at").is_not_null() & pl.col("observed_at").is_null())
    account = (
        timed.filter("is_new")
        .group_by("file")
        .agg(
            n_events=(pl.col("kind") != wordings.CONTEXT).sum(),
            n_context=(pl.col("kind") == wordings.CONTEXT).sum(),
            n_unknown=pl.col("is_unknown").sum(),
            layouts=pl.col("layout").drop_nulls().unique(),
            n_time_regressions=pl.col("goes_back").sum(),
            first_at=pl.col("observed_at").min(),
            last_at=pl.col("observed_at").max(),
            n_unzoned=unzoned.len(),
            first_local=unzoned.min(),
            last_local=unzoned.max(),
        )
    )
    step = pl.col("zone_step")
    steps = entries.group_by("file").agg(least_step=step.min(), most_step=step.max())
    ends = every.select("file", "origin", "local_at", is_new=pl.lit(False)).group_by("file", "origin").last()
    return account.join(steps, on="file", how="full", coalesce=True), ends.filter(
        pl.col("file") == pl.lit(every["file"].last())
    )


def _whole(accounts: pl.DataFrame) -> pl.DataFrame:
    """One account per file that told anything."""
    whole = accounts.group_by("file").agg(
        pl.col("^n_.*$").sum(),
        pl.col("^(first|least)_.*$").min(),
        pl.col("^(last|most)_.*$").max(),
        layouts=pl.col("layouts").explode().drop_nulls().unique(),
    )
    return whole.filter(pl.sum_horizontal("n_events", "n_context", "n_unknown") > 0)


def _rows(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    arrow = frame.to_arrow()
    columns = [
        arrow.column(name).cast(type_) if name in arrow.column_names else pa.nulls(len(frame), type_)
        for name, type_ in zip(ARROW_SCHEMA.names, ARROW_SCHEMA.types)
    ]
    yield from pa.table(columns, schema=ARROW_SCHEMA).to_batches()
