"""Find the lines that may matter, and the lines that belong together: lists and blocks over several lines, two-line
records.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from kit.rebalances.logs.layouts import JUL, JUL_HEADER, LIBRDKAFKA
from kit.rebalances.logs.partition_fields import partitions_in
from kit.rebalances.logs.texts import extracted, has, regex, replaced

_LOOKS = (
    r"(?i)re-?balanc|(?:join|sync|leave)[-_ ]?group|heart ?beat|coordinat(?:or|ed by)|\bgeneration[_ ]?(?:id)?\b"
    r"|member[_ ]?id\b|(?:assigned|revoked|lost) ?partitions|partitions? (?:were |was |to )?(?:assign|revoke|lost)"
    r"|\bpartitions?\b.{0,80}\b(?:was|were|are) (?:assigned|revoked|lost)\b"
    r"|consumer group|group consume error|committed offset|claim the partition"
)
_OTHER_CLIENT = r"^\[(?:Producer|AdminClient) clientId=[^\]]*\] "
"""Its client id may have any word."""
_CLASSES = r"(?:Consumer|Group|Abstract)Coordinator$|Membership\w*Manager$|HeartbeatRequestManager$|^kafka\.coordinator"
_LABELS = {
    "assigned": r"^\s*(?:now assigned|Assigned) partitions(?:| \(all\)):\s*(.*)$",
    "owned": r"^\s*(?:compare with previously owned|Current owned) partitions:\s*(.*)$",
    "added": r"^\s*(?:newly added partitions|Added partitions \(assigned - owned\)):\s*(.*)$",
}
_LISTED = r"^\s+([\w.-]+) \[(\d+)\]"
_IN_TABLE = r"(?:x|\||│) ([\w.-]+) +(?:x|\||│) (\{\d{1,6}(?:-\d{1,6})?(?:, \d{1,6}(?:-\d{1,6})?)*\}) +(?:x|\||│)\s*$"
"""A row of the table that faust prints of a set of partitions; a terminal's lines are pasted as ``x``, too."""
TABLE_MARKS = (r"(?:x|\||│) [\w.-]+ +(?:x|\||│) \{\d[\d, -]*\} +(?:x|\||│)\s*$",)
_FAR = 12
"""A labelled line belongs to an entry at most this many lines before it."""
_APART = 1_000
"""A list may be interrupted by this many lines: other threads write meanwhile."""
_STREAM = ("file", "origin", "stream")
_PLACE, _ENTRY = ("file", "line", "record"), ("file", "entry_line", "entry_record")


def looks_like_coordination(message: pl.Expr, logger: pl.Expr) -> pl.Expr:
    """Return whether a line of unknown wording should have been known: by its words, or by the class that wrote it."""
    return has(replaced(message, _OTHER_CLIENT, ""), _LOOKS) | has(logger, _CLASSES)


def is_part(text: pl.Expr) -> pl.Expr:
    """Return whether a line belongs to the block of an entry before it."""
    return pl.any_horizontal([has(text, label) for label in _LABELS.values()])


def with_marks(records: pl.DataFrame) -> pl.DataFrame:
    """Return which record is an entry, and what all other records may be to one: ``item`` of a list, ``*_here`` of a
    block.
    """
    text = pl.when(pl.col("layout").is_null()).then("raw")
    item = pl.when(pl.col("layout") == LIBRDKAFKA).then("message").str.extract_groups(regex(_LISTED)).struct
    row = text.str.extract_groups(regex(rf"^\s*{_IN_TABLE}")).struct
    return records.with_columns(
        # librdkafka's threads write at the same time: a list is behind the line of its own handle.
        pl.when(pl.col("layout") == LIBRDKAFKA)
        .then(pl.concat_str("client_id", "logger", separator="|", ignore_nulls=True))
        .alias("stream"),
        pl.coalesce(item.field("1") + "-" + item.field("2"), row.field("1") + row.field("2")).alias("item"),
        *(text.str.extract(regex(label)).alias(f"{name}_here") for name, label in _LABELS.items()),
    ).with_columns(is_entry=pl.col("message").is_not_null() & pl.col("item").is_null())


def settled(records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Records in order, of whose last file more may follow → those whose entries are whole, and those that must
    wait."""
    is_last = pl.col("file") == pl.lit(records["file"].last())
    end = records.filter(is_last).select(pl.col("line").max()).item()
    streams = (
        records.filter(is_last & _says())
        .group_by(_STREAM)
        .agg(last=pl.col("line").max(), entry=pl.col("line").filter("is_entry").max())
    )
    open_at = streams.filter(pl.col("last") >= pl.lit(end) - _APART).select(pl.col("entry").min()).item()
    border = end if open_at is None else open_at
    is_later = is_last & (pl.col("line") >= border)
    # A two-line record begins with a line without content: right before the entry, or at the end.
    may_begin = is_last & ~pl.col("is_entry") & pl.col("line").is_in((border - 1, end))
    return records.filter(~is_later), records.filter((is_later & _says()) | may_begin)


def with_neighbours(records: pl.LazyFrame) -> pl.LazyFrame:
    """The entries, with what lines around them say.

    Behind one: lists of partitions → ``assigned``, ``owned``, ``added`` (a Java client's block) and ``listed``
    (librdkafka's list). Before it: java.util.logging's time and class.
    """
    placed = records.with_columns(
        *(
            pl.when("is_entry").then(name).forward_fill().over(_STREAM).alias(entry)
            for name, entry in zip(_PLACE[1:], _ENTRY[1:])
        ),
        before_line=pl.col("line").shift().over(_STREAM),
        before=pl.col("raw").shift().over(_STREAM),
    )
    is_header = (pl.col("layout") == JUL) & (pl.col("before_line") == pl.col("line") - 1)
    header = pl.when(is_header).then("before")
    entries = placed.filter("is_entry").with_columns(
        time_text=pl.coalesce("time_text", extracted(header, JUL_HEADER, 1)),
        logger=pl.coalesce("logger", extracted(header, JUL_HEADER, 2)),
    )
    statements = placed.filter(_says())
    gap = pl.col("line") - pl.col("line").shift().over(_STREAM)
    behind = (
        statements.with_columns(is_lost=((gap > _APART) & ~pl.col("is_entry")).cum_max().over(*_STREAM, *_ENTRY[1:]))
        .filter(~pl.col("is_entry"), ~pl.col("is_lost"), pl.col("entry_line").is_not_null())
        .with_columns(is_near=pl.col("line") - pl.col("entry_line") <= _FAR)
        .group_by(_ENTRY, maintain_order=True)
        .agg(
            *(_labelled(f"{name}_here").alias(name) for name in _LABELS),
            listed=pl.col("item").drop_nulls(),
        )
        .with_columns(listed=_of_tables(pl.col("listed")))
    )
    return entries.join(behind, left_on=_PLACE, right_on=_ENTRY, how="left", maintain_order="left")


def _labelled(name: str) -> pl.Expr:
    return partitions_in(pl.col(name).filter(pl.col("is_near") & pl.col(name).is_not_null()).last())


def _of_tables(listed: pl.Expr) -> pl.Expr:
    """The items of a list, with those of a table's rows one by one."""
    is_table = listed.list.eval(pl.element().str.ends_with("}")).list.any()
    each = pl.when(is_table).then(listed).map_elements(_each_of, return_dtype=pl.List(pl.String), skip_nulls=True)
    return pl.coalesce(each, listed)


def _each_of(rows: Iterable[str]) -> list[str]:
    """
    >>> _each_of(["a-b{1-3, 7}", "c{0}"])
    ['a-b-1', 'a-b-2', 'a-b-3', 'a-b-7', 'c-0']
    """
    found = []
    for topic, _, numbers in (row.partition("{") for row in rows):
        for first, _, last in (each.partition("-") for each in numbers.strip("}").replace(" ", "").split(",")):
            found += [f"{topic}-{number}" for number in range(int(first), int(last or first) + 1)]
    return found


def _says() -> pl.Expr:
    """Return whether a record is an entry, or belongs to one."""
    return pl.col("is_entry") | pl.any_horizontal(pl.col("item", *(f"{name}_here" for name in _LABELS)).is_not_null())
