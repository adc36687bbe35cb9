"""Lines → records: when each was, who wrote it, and which known wording it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kit.logs import fields, layouts, wordings
from kit.logs.entries import looks_like_coordination, with_continuations, with_header_times
from kit.logs.lines import kept_on_disk, with_line_numbers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ZONE_STEP_S = 900
_BACK_US = 1_000_000
"""Clocks that write a record a little late are none that go back."""
_NEEDED = (
    *("file", "line", "record", "raw", "origin", "layout", "observed_at", "local_at", "time_text", "level", "logger"),
    *("source", "kind", "is_unknown", "goes_back", "message", "told", "assigned", "owned", "added", "listed"),
)


def records_of_interest(sifted: DataFrame, layout: str | None, zone: str | None) -> DataFrame:
    """Events, known lines that tell none (``wordings.CONTEXT``), and lines that were not understood (``is_unknown``);
    computed now. Windows are over what is left of one file; Spark keeps them on disk where they are large."""
    records = with_line_numbers(_cut(sifted, layout).repartition("file"))
    records = with_continuations(with_header_times(records))
    records = _with_times_back(_judged(_timed(_told(records), zone)))
    # What is of interest is asked of what was computed: asked before, Spark would compute it once more to filter by.
    return kept_on_disk(records.select(*_NEEDED)).where(_is_of_interest())


def _is_of_interest() -> Column:
    return F.col("kind").isNotNull() | F.col("is_unknown")


def _cut(lines: DataFrame, layout: str | None) -> DataFrame:
    """Cut into records where a line holds several, with the parts of their layout."""
    record = F.posexplode_outer(F.split(F.expr(layouts.without_prefix("value")), layouts.RECORD_START))
    origin = F.expr(layouts.origin("value")).alias("origin")
    records = lines.select("file", "block", "number", "n_lines", origin, record.alias("record", "raw"))
    raw = F.trim("raw")
    records = records.withColumn("layout", F.expr(layouts.layout_of("trim(raw)", layout)))
    parts = {"time_text": "time", **{name: name for name in ("zone", "level", "logger", "message")}}
    of_layout = {column: F.expr(layouts.part("trim(raw)", "layout", name)) for column, name in parts.items()}
    records = records.withColumns(of_layout)
    # A bare line of a client is one, too: some layouts print nothing but the message.
    bare = F.when(raw.rlike(rf"{fields.CONSUMER_PREFIX}|{fields.BROKER_PREFIX}|{fields.OLD_PREFIX}"), raw)
    records = records.withColumn("message", F.coalesce("message", bare))
    return records.withColumn("client_id", F.expr(fields.client_of("trim(raw)", "null")))


def _told(records: DataFrame) -> DataFrame:
    """With the kind of client, and the message as its wording begins."""
    full = F.col("message")
    records = records.where(full.isNotNull())
    source = fields.source_of(full, F.coalesce("logger", F.lit("")), F.col("layout"))
    of_rdkafka = F.ltrim(F.regexp_replace(full, fields.RDKAFKA_PREFIX, ""))
    told = F.when(F.col("source") == wordings.LIBRDKAFKA, of_rdkafka).otherwise(
        F.expr(fields.without_client_prefix("message"))
    )
    return records.withColumn("source", source).withColumn("told", told)


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


def _judged(records: DataFrame) -> DataFrame:
    """With the kind of event; null: not understood, which ``is_unknown`` if it looks like coordination."""
    is_rdkafka, logger = F.col("source") == wordings.LIBRDKAFKA, F.coalesce("logger", F.lit(""))
    records = records.withColumn("known", fields.kind_of(F.col("told"), F.col("source")))
    # Lists that dump librdkafka's state are many and say no more than the one of the group.
    is_dump = is_rdkafka & (F.col("known") == "group_assignment") & (logger != "GRPASSIGNMENT")
    records = records.withColumn("kind", F.when(is_dump, wordings.CONTEXT).otherwise(F.col("known")))
    facility = logger.rlike(r"^(?:CGRP|JOIN|SYNC|LEAVE|REBALANCE|HEARTBEAT|REJOIN)")
    looks = F.when(is_rdkafka, facility).otherwise(looks_like_coordination(F.col("told"), logger))
    return records.withColumn("is_unknown", F.col("kind").isNull() & looks)


def _with_times_back(records: DataFrame) -> DataFrame:
    """Whether its time is before that of the record of interest before it."""
    above = Window.partitionBy("file", "origin").orderBy("line", "record").rowsBetween(Window.unboundedPreceding, -1)
    before = F.last(F.when(_is_of_interest(), F.struct("local_at")), ignorenulls=True).over(above)
    back = F.col("local_at") < before["local_at"] - _BACK_US
    return records.withColumn("goes_back", F.coalesce(back & _is_of_interest(), F.lit(False)))
