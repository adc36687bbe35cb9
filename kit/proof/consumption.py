"""Load what members delivered and producers wrote, from their files of JSON lines to polars or Spark frames.

Files may still be written to. A line that holds no record is never dropped silently: it is a row of ``unread_lines``
with the reason, and :func:`verify_loaded` reports how many there are. ``unfinished``: the line has no end, because it
is being written or its writer was killed over it; ``malformed``: anything else.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl
import pyarrow as pa

from kit.errors import HistoryError, PartialRead
from kit.tables import schema as tables
from kit.tables.groups import UnreadLine
from kit.tables.polars import as_polars
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNFINISHED = "unfinished"
MALFORMED = "malformed"

_FILES = "*.jsonl"
_QUOTED = 200
_BROKEN = "broken_line"
_FILE_NAME = "_metadata.file_name"
_TORN = r"\}\s*\{"
"""A line may hold one record and the beginning of another, or all of it: Spark takes the first and reports nothing."""
_SPARK = {"int32": "int", "int64": "bigint", "string": "string"}

Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Loaded(Generic[Frame]):
    """Records of ``tables.CONSUMPTION`` or ``tables.PRODUCTION``, and what could not be read of their files."""

    records: Frame
    unread_lines: Frame


def load_consumption(folder: Path, group_id: str, consumers: Iterable[str] | None = None) -> Loaded[pl.DataFrame]:
    """Return the records that the members of one group delivered, from ``<folder>/*.jsonl``: at_ms, consumer, topic,
    partition, offset.

    Args:
        consumers: the group's members; None: whoever wrote a line in that folder.

    Raises:
        HistoryError: there is no such folder, or a file can't be read.
    """
    loaded = _load(folder, _line_schema(tables.CONSUMPTION, "group_id"))
    records = loaded.records.with_columns(group_id=pl.lit(group_id))
    if consumers is not None:
        records = records.filter(pl.col("consumer").is_in(list(consumers)))
    return Loaded(records.select(tables.CONSUMPTION.schema.names), loaded.unread_lines)


def load_production(folder: Path) -> Loaded[pl.DataFrame]:
    """Return the acknowledged records, from ``<folder>/*.jsonl``: at_ms, producer, topic, partition, offset, number.

    Raises:
        HistoryError: there is no such folder, or a file can't be read.
    """
    return _load(folder, _line_schema(tables.PRODUCTION))


def spark_consumption(
    spark: SparkSession, folder: str, group_id: str, consumers: Iterable[str] | None = None
) -> Loaded[DataFrame]:
    """The same as :func:`load_consumption` from a folder that Spark reads; lazy, so each use reads again unless cached.

    Raises:
        HistoryError: there is no such folder.
    """
    from pyspark.sql import functions as F

    loaded = _spark_load(spark, folder, _line_schema(tables.CONSUMPTION, "group_id"))
    records = loaded.records.withColumn("group_id", F.lit(group_id))
    if consumers is not None:
        records = records.where(F.col("consumer").isin(list(consumers)))
    return Loaded(records.select(*tables.CONSUMPTION.schema.names), loaded.unread_lines)


def spark_production(spark: SparkSession, folder: str) -> Loaded[DataFrame]:
    """The same as :func:`load_production` from a folder that Spark reads; lazy.

    Raises:
        HistoryError: there is no such folder.
    """
    return _spark_load(spark, folder, _line_schema(tables.PRODUCTION))


def verify_loaded(loaded: Loaded[Any]) -> str:
    """A sentence: how many records there are, and how many lines are unfinished. Spark works now.

    Raises:
        PartialRead: lines are malformed: how many, the first of them, and why.
    """
    unread = loaded.unread_lines
    lines = as_polars(unread)
    malformed = lines.filter(pl.col("reason") != UNFINISHED).sort("file", "text")
    if not malformed.is_empty():
        first = malformed.row(0, named=True)
        raise PartialRead(
            f"{quantity(len(malformed), 'line')} could not be read: records are missing, first in {first['file']}: "
            f"{first['text']!r} ({first['reason']})"
        )
    n_records = len(loaded.records) if isinstance(loaded.records, pl.DataFrame) else loaded.records.count()
    unfinished = quantity(len(lines), "line is", "lines are")
    return f"{quantity(n_records, 'record was', 'records were')} read; {unfinished} unfinished."


def _line_schema(table: tables.Table, *without: str) -> pa.Schema:
    return pa.schema([field for field in table.schema if field.name not in without])


def _load(folder: Path, schema: pa.Schema) -> Loaded[pl.DataFrame]:
    if not folder.is_dir():
        raise HistoryError(f"there is no folder {folder}: nothing was delivered or written there")
    wanted = pl.Schema(pl.DataFrame(schema.empty_table()).schema)
    records, unread = [pl.DataFrame(schema=wanted)], list[UnreadLine]()
    for file in sorted(folder.glob(_FILES)):
        parsed, left = _parse(file, wanted)
        records.append(parsed)
        unread += left
    return Loaded(pl.concat(records), pl.DataFrame(tables.UNREAD_LINES.from_rows(unread)))


def _parse(file: Path, schema: pl.Schema) -> tuple[pl.DataFrame, list[UnreadLine]]:
    """All at once where every line is valid; line by line otherwise, to find invalid lines."""
    try:
        data = read_regular(file)
    except OSError as error:
        raise HistoryError(f"{file} can't be read: {error}") from error
    whole = data.rfind(b"\n") + 1
    if not data[whole:].strip():
        try:
            records = pl.read_ndjson(io.BytesIO(data[:whole]), schema=schema)
        except pl.exceptions.ComputeError:
            pass
        else:
            if not sum(records.null_count().row(0)):
                return records, []
    return _parse_lines(file, data, schema)


def _parse_lines(file: Path, data: bytes, schema: pl.Schema) -> tuple[pl.DataFrame, list[UnreadLine]]:
    rows, unread = [], list[UnreadLine]()
    for line in data.decode(errors="replace").split("\n"):
        if not line.strip():
            continue
        row = _row(line, schema)
        if row is None:
            unread.append(UnreadLine(file.name, line[:_QUOTED], _reason(line)))
        else:
            rows.append(row)
    return pl.DataFrame(rows, schema=schema, orient="row"), unread


def _row(line: str, schema: pl.Schema) -> tuple[Any, ...] | None:
    """The line's values if each is there and of its type, and whole numbers fit."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    values = tuple(fields.get(name) for name in schema) if isinstance(fields, dict) else ()
    fits = len(values) == len(schema) and all(map(_fits, values, schema.dtypes()))
    return values if fits else None


def _fits(value: Any, dtype: pl.DataType) -> bool:
    if dtype == pl.String:
        return isinstance(value, str)
    limit = 2**31 if dtype == pl.Int32 else 2**63
    return type(value) is int and -limit <= value < limit


def _reason(line: str) -> str:
    return MALFORMED if line.rstrip().endswith("}") else UNFINISHED


def _spark_load(spark: SparkSession, folder: str, schema: pa.Schema) -> Loaded[DataFrame]:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    path = f"{folder.rstrip('/')}/{_FILES}"
    ddl = ", ".join(f"{field.name} {_SPARK[str(field.type)]}" for field in schema)
    try:
        lines = spark.read.text(path)
        parsed = spark.read.schema(f"{ddl}, {_BROKEN} string").option("columnNameOfCorruptRecord", _BROKEN).json(path)
        lines.isLocal()  # Spark Connect notices a missing path only when it analyses the frame.
    except AnalysisException as error:
        raise HistoryError(f"{folder} holds no {_FILES} that Spark can read: {error.getCondition()}") from error
    is_whole = F.col(_BROKEN).isNull()
    for name in schema.names:
        is_whole &= F.col(name).isNotNull()
    text = F.coalesce(_BROKEN, F.to_json(F.struct(*schema.names)))
    torn = lines.where(F.col("value").rlike(_TORN)).select(F.col("value").alias("text"), _FILE_NAME)
    unread = parsed.where(~is_whole).select(text.alias("text"), _FILE_NAME).unionByName(torn).distinct()
    reason = F.when(F.rtrim("text").endswith("}"), MALFORMED).otherwise(UNFINISHED)
    quoted = F.substring("text", 1, _QUOTED).alias("text")
    unread = unread.select(F.col("file_name").alias("file"), quoted, reason.alias("reason"))
    return Loaded(parsed.where(is_whole).select(*schema.names), unread)
