"""Log files → events, lines that were not understood, and an account of every file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

from kit import tables
from kit.errors import InputError, NotFound, PartialRead, ReadError
from kit.logs import fields, layouts, wordings
from kit.logs.entries import is_candidate, looks_like_coordination, with_continuations, with_header_times
from kit.model import LogFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CUT = 2000
_ZONE_STEP_S = 900
_SPARK_TYPES = {"string": "string", "int64": "bigint", "int32": "int", "timestamp[us, tz=UTC]": "timestamp"}
_PROBLEMS = {
    "empty": "is empty",
    "binary": "is not text",
    "truncated": "is damaged: what stands before the damage was read, the rest is missing",
    "layout": "has no line of the layout given",
    "no coordination": "holds no line about coordination (a Java client ≤ 0.9 and librdkafka print none below DEBUG)",
    "times go back": "has times that go back: rotated files in a wrong order, several consumers, a clock that was set",
    "zone unknown": "does not say its time zone, so its times are not in UTC: give the zone",
}
_FAILED_READS = (PySparkException, Py4JJavaError)
"""Without Spark Connect a failed task is the second."""
_BLOCK = {"file": pl.String, "block": pl.Int64, "first": pl.Int64, "n_lines": pl.Int64}
FATAL = ("binary", "truncated", "layout")


@dataclass(frozen=True)
class ClientLogs:
    """``events`` (``tables.LOG_EVENTS``) and ``unknown_lines`` (``tables.LOG_LINES``) are Spark's and lazy: each use
    reads the files again unless cached. ``files`` (``tables.LOG_FILES``) accounts for every line and is there."""

    events: DataFrame
    unknown_lines: DataFrame
    files: pl.DataFrame


def read_client_logs(
    spark: SparkSession, paths: str | Iterable[str], zone: str | None = None, layout: str | None = None
) -> ClientLogs:
    """Read logs of consumers or brokers: files, folders or patterns, gz too, layouts mixed.

    The files are read twice now, to count and to account; and once for each use of ``events``.

    Args:
        zone: of times that don't say theirs (``Europe/Paris``, ``+05:30``); None: as the file proves it, else unknown.
        layout: one of ``layouts.NAMES``; None: whichever fits, line by line.

    Raises:
        InputError: no such layout or zone.
        NotFound: no such file.
        ReadError: a file can't be read at all.
    """
    if layout is not None and layout not in layouts.NAMES:
        raise InputError(f"there is no layout {layout!r}; there are {', '.join(layouts.NAMES)}")
    _check_zone(spark, zone)
    wanted = [paths] if isinstance(paths, str) else list(paths)
    lines, counted, damaged = _counted_lines(spark, wanted)
    classified = _classified(_records(_numbered(spark, lines, counted), layout), zone)
    files = _files(classified, counted, _input_files(spark, wanted), damaged, lines, layout)
    return ClientLogs(_events(classified), _unknown(classified), files)


def verify_logs(logs: ClientLogs) -> str:
    """What was read, in sentences; each file with a problem has one.

    Raises:
        PartialRead: a file is damaged, is no text, or has not the layout given: which and why.
    """
    files = logs.files
    told = [
        f"{len(files)} files, {files['n_lines'].sum()} lines: {files['n_events'].sum()} events, "
        f"{files['n_context'].sum()} known lines without one, {files['n_unknown'].sum()} lines that look like "
        "coordination and were not understood."
    ]
    problems = files.filter(pl.col("problem").is_not_null())
    told += [f"{file} {_PROBLEMS[problem]}." for file, problem in problems.select("file", "problem").iter_rows()]
    fatal = problems.filter(pl.col("problem").is_in(FATAL))
    if not fatal.is_empty():
        raise PartialRead(" ".join(told))
    return "\n".join(told)


def _check_zone(spark: SparkSession, zone: str | None) -> None:
    if zone is None:
        return
    try:
        spark.range(1).select(F.convert_timezone(F.lit(zone), F.lit("UTC"), F.localtimestamp())).collect()
    except PySparkException as error:
        raise InputError(f"there is no time zone {zone!r}: say one like Europe/Paris or +05:30") from error


def _text(spark: SparkSession, paths: list[str], skip_damage: bool = False) -> DataFrame:
    """Lines with their file, the block of it, and a number that rises within the block."""
    lines = spark.read.option("ignoreCorruptFiles", skip_damage).text(paths)
    return lines.select(
        F.regexp_replace("_metadata.file_path", "^file:/+", "/").alias("file"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("number"),
        F.col("value"),
    )


def _input_files(spark: SparkSession, paths: list[str]) -> list[str]:
    return sorted(spark.read.text(paths).inputFiles())


def _counted_lines(spark: SparkSession, paths: list[str]) -> tuple[DataFrame, pl.DataFrame, set[str]]:
    """The lines, how many each block has, and the damaged files: of those, what can be read is."""
    try:
        lines = _text(spark, paths)
        lines.isLocal()  # Spark Connect notices a missing path only when it analyses the frame.
    except PySparkException as error:
        raise NotFound(f"no log at {', '.join(paths)}: {error.getCondition()}") from error
    try:
        return lines, _count(lines), set()
    except _FAILED_READS as error:
        damaged = {file for file in _input_files(spark, paths) if not _is_readable(spark, file)}
        if not damaged:
            raise ReadError(f"the logs at {', '.join(paths)} can't be read: {_first_line(error)}") from error
    lines = _text(spark, paths, skip_damage=True)
    return lines, _count(lines), damaged


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _is_readable(spark: SparkSession, file: str) -> bool:
    try:
        _count(_text(spark, [file]))
    except _FAILED_READS:
        return False
    return True


def _count(lines: DataFrame) -> pl.DataFrame:
    """Per block: its first number, how many lines it has, and how many are before it in its file."""
    blocks = lines.groupBy("file", "block").agg(F.min("number").alias("first"), F.count("*").alias("n_lines"))
    rows = [row.asDict() for row in blocks.collect()]
    counted = pl.DataFrame(rows, schema=_BLOCK).sort("file", "block")
    return counted.with_columns(before=pl.col("n_lines").cum_sum().over("file") - pl.col("n_lines"))


def _numbered(spark: SparkSession, lines: DataFrame, counted: pl.DataFrame) -> DataFrame:
    candidates = lines.where(is_candidate(F.col("value")))
    if counted.is_empty():
        return candidates.select("file", F.lit(0).cast("bigint").alias("line"), "value").limit(0)
    blocks = spark.createDataFrame(counted.select("file", "block", "first", "before").to_arrow())
    known = candidates.join(F.broadcast(blocks), on=["file", "block"], how="inner")
    return known.select("file", (F.col("number") - F.col("first") + F.col("before") + 1).alias("line"), "value")


def _records(lines: DataFrame, layout: str | None) -> DataFrame:
    """Candidates, cut into records where a line holds several, with the parts of their layout."""
    lines = lines.withColumn("origin", layouts.origin(F.col("value")))
    record = F.posexplode(F.split(layouts.without_prefix(F.col("value")), layouts.RECORD_START))
    records = lines.select("file", "line", "origin", record.alias("record", "raw"))
    records = records.where(F.trim("raw") != "")
    raw, name = F.trim("raw"), F.col("layout")
    records = records.withColumn("layout", layouts.layout_of(raw, layout))
    parts = {part: layouts.part(raw, name, part) for part in ("time", "zone", "level", "logger", "message")}
    records = records.withColumns(parts).withColumnRenamed("time", "time_text")
    # A bare line of a client is one, too: some layouts print nothing but the message.
    bare = F.when(raw.rlike(rf"{fields.CONSUMER_PREFIX}|{fields.BROKER_PREFIX}|{fields.OLD_PREFIX}"), raw)
    records = records.withColumn("message", F.coalesce("message", bare))
    records = records.withColumn("client_id", fields.client_of(raw, F.lit(None).cast("string")))
    return with_continuations(with_header_times(records))


def _classified(records: DataFrame, zone: str | None) -> DataFrame:
    """With when it was, and the kind of event; null: not understood. The rest is of no interest and gone."""
    full = F.col("message")
    records = records.where(full.isNotNull())
    source = fields.source_of(full, F.coalesce("logger", F.lit("")), F.col("layout"))
    of_rdkafka = F.ltrim(F.regexp_replace(full, fields.RDKAFKA_PREFIX, ""))
    told = F.when(source == wordings.LIBRDKAFKA, of_rdkafka).otherwise(fields.without_client_prefix(full))
    records = _timed(records.withColumns({"source": source, "told": told}), zone)
    records = records.withColumn("kind", fields.kind_of(F.col("told"), F.col("source")))
    return _interesting(records)


def _interesting(records: DataFrame) -> DataFrame:
    is_rdkafka, logger = F.col("source") == wordings.LIBRDKAFKA, F.coalesce("logger", F.lit(""))
    # Lists that dump librdkafka's state are many and say no more than the one of the group.
    is_dump = is_rdkafka & (F.col("kind") == "group_assignment") & (logger != "GRPASSIGNMENT")
    kind = F.when(is_dump, wordings.CONTEXT).otherwise(F.col("kind"))
    facility = logger.rlike(r"^(?:CGRP|JOIN|SYNC|LEAVE|REBALANCE|HEARTBEAT|REJOIN)")
    looks = F.when(is_rdkafka, facility).otherwise(looks_like_coordination(F.col("told"), logger))
    records = records.withColumns({"kind": kind, "is_unknown": F.col("kind").isNull() & looks})
    return records.where(F.col("kind").isNotNull() | F.col("is_unknown"))


def _timed(records: DataFrame, zone: str | None) -> DataFrame:
    time, layout = F.col("time_text"), F.col("layout")
    epoch = layouts.epoch_at(time, layout)
    printed = F.nullif(F.regexp_extract(time, rf"({layouts.ZONE})$", 1), F.lit(""))
    records = records.withColumns({"epoch": epoch, "local": layouts.local_at(time)})
    local_us = F.unix_micros(F.concat(F.col("local").cast("string"), F.lit("+00:00")).try_cast("timestamp"))
    records = records.withColumn("local_us", local_us)
    said = F.regexp_extract("raw", r"(?:receivedTimeMs|createdTimeMs)=(\d{13})\b", 1).try_cast("bigint")
    steps = F.round((F.col("local_us") / 1e6 - said / 1e3) / _ZONE_STEP_S)
    records = records.withColumn("steps", F.when(F.abs(steps) <= 60, steps))
    whole = Window.partitionBy("file")
    proved = F.when(F.min("steps").over(whole) == F.max("steps").over(whole), F.max("steps").over(whole))
    proved_at = F.timestamp_micros((F.col("local_us") - proved * _ZONE_STEP_S * 1_000_000).cast("bigint"))
    given = None if zone is None else layouts.utc_at(F.col("local"), F.lit(zone))
    told = layouts.utc_at(F.col("local"), F.coalesce("zone", F.when(F.col("local").isNotNull(), printed)))
    at = [F.col("epoch"), told, *([] if given is None else [given]), proved_at]
    records = records.withColumn("observed_at", F.coalesce(*at))
    return records.withColumn("local_at", F.coalesce(F.unix_micros("epoch"), F.col("local_us")))


def _events(classified: DataFrame) -> DataFrame:
    told = F.col("told")
    events = classified.where(F.col("kind").isNotNull() & (F.col("kind") != wordings.CONTEXT))
    events = events.withColumns(fields.consumer_prefix(F.col("message")))
    old = fields.old_consumer(F.col("message"))
    member = F.coalesce(fields.member_of(told), old)
    events = events.withColumns(
        {"member_id": member, "old": old, "rdkafka_client": fields.client_of(F.col("raw"), member)}
    )
    group = F.coalesce("prefix_group", fields.group_of(told), fields.old_group(F.coalesce("old", "member_id")))
    client = F.coalesce(fields.consumer_prefix(F.col("message"))["client_id"], "rdkafka_client")
    kind = F.col("kind")
    partitions = F.when(F.size("listed") > 0, F.sort_array("listed")).otherwise(fields.partitions_of(told, kind))
    partitions = F.when(
        (kind == "group_assignment") & (F.size("listed") == 0), F.array().cast("array<string>")
    ).otherwise(partitions)
    wanted = {
        "client_id": client,
        "group_id": group,
        "generation": fields.generation_of(told),
        "leader_id": fields.leader_of(told),
        "assignor": fields.assignor_of(told),
        "coordinator": fields.coordinator_of(told),
        "coordinator_id": fields.coordinator_id_of(told),
        "partitions": F.when(kind.isin("assignment_diff", "reconciling"), F.col("added")).otherwise(partitions),
        "owned_before": F.col("owned"),
        "owned_after": F.col("assigned"),
        "offset": fields.offset_of(told),
        "reason": fields.reason_of(told),
        "text": F.substring(F.trim("raw"), 1, _CUT),
    }
    events = events.withColumns(wanted)
    return events.select(*[_typed(field.name, str(field.type)) for field in tables.LOG_EVENTS.schema])


def _typed(name: str, arrow: str) -> Column:
    spark = "array<string>" if arrow.startswith("list") else _SPARK_TYPES[arrow]
    return F.col(name).cast(spark).alias(name)


def _unknown(classified: DataFrame) -> DataFrame:
    """``wording``: the text with ids and numbers left out, to count by."""
    worded = F.substring(F.regexp_replace(F.regexp_replace("told", fields.UUID, "…"), r"\d+", "…"), 1, 120)
    lines = classified.where("is_unknown").withColumns({"wording": worded, "text": F.substring("raw", 1, _CUT)})
    return lines.select(*tables.LOG_LINES.schema.names)


def _files(
    classified: DataFrame,
    counted: pl.DataFrame,
    names: list[str],
    damaged: set[str],
    lines: DataFrame,
    given: str | None,
) -> pl.DataFrame:
    found = {_path(name): account for name, account in _accounts(classified).items()}
    n_lines = {_path(name): n for name, n in counted.group_by("file").agg(pl.col("n_lines").sum()).iter_rows()}
    binary = _binary(lines, {name for name in counted["file"] if _path(name) not in found})
    rows = []
    for path in sorted({_path(name) for name in [*names, *n_lines]}):
        account = found.get(path, {})
        is_damaged, is_binary = path in {_path(name) for name in damaged}, path in binary
        rows.append(
            LogFile(
                file=path,
                n_lines=n_lines.get(path, 0),
                n_events=account.get("n_events", 0),
                n_context=account.get("n_context", 0),
                n_unknown=account.get("n_unknown", 0),
                layouts=tuple(sorted(account.get("layouts", ()))),
                n_times_back=account.get("n_times_back", 0),
                first_at=account.get("first_at"),
                last_at=account.get("last_at"),
                problem=_problem(account, n_lines.get(path, 0), is_damaged, is_binary, given),
            )
        )
    return pl.DataFrame(tables.LOG_FILES.from_rows(rows))


_COUNTS = ("n_events", "n_context", "n_unknown")


def _path(name: str) -> str:
    """Without Spark's scheme of local files, which it writes in two ways."""
    return re.sub("^file:/+", "/", name)


def _accounts(classified: DataFrame) -> dict[str, dict[str, Any]]:
    is_context = F.col("kind") == wordings.CONTEXT
    before = F.lag("local_at").over(Window.partitionBy("file", "origin").orderBy("line", "record"))
    rows = classified.withColumn("goes_back", F.coalesce(F.col("local_at") < before - 1_000_000, F.lit(False)))
    count = {
        "n_events": F.count_if(F.col("kind").isNotNull() & ~is_context),
        "n_context": F.count_if(is_context),
        "n_unknown": F.count_if("is_unknown"),
        "layouts": F.collect_set("layout"),
        "n_times_back": F.count_if("goes_back"),
        "first_at": F.min("observed_at"),
        "last_at": F.max("observed_at"),
        "n_unzoned": F.count_if(F.col("local_at").isNotNull() & F.col("observed_at").isNull()),
    }
    found = rows.groupBy("file").agg(*[value.alias(name) for name, value in count.items()])
    return {row["file"]: row for row in pl.DataFrame(found.toArrow()).iter_rows(named=True)}


def _binary(lines: DataFrame, files: set[str]) -> set[str]:
    """Of the files without any line of interest, those that hold NUL bytes or are no UTF-8."""
    if not files:
        return set()
    odd = F.col("value").contains("\x00") | F.col("value").contains("\ufffd")
    found = lines.where(F.col("file").isin(list(files)) & odd).select("file").distinct()
    return {_path(row["file"]) for row in found.collect()}


def _problem(account: dict[str, Any], n_lines: int, is_damaged: bool, is_binary: bool, given: str | None) -> str | None:
    nothing = not any(account.get(key) for key in _COUNTS)
    problems = {
        "truncated": is_damaged,
        "empty": n_lines == 0,
        "binary": is_binary,
        "layout": nothing and given is not None,
        "no coordination": nothing,
        "times go back": bool(account.get("n_times_back")),
        "zone unknown": bool(account.get("n_unzoned")),
    }
    return next((name for name, applies in problems.items() if applies), None)
