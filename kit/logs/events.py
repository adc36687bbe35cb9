"""Log files → events, lines that were not understood, and an account of every file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from kit import tables
from kit.errors import InputError
from kit.logs import accounts, fields, layouts, wordings
from kit.logs.lines import load_lines
from kit.logs.records import records_of_interest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CUT = 2000
_SPARK_TYPES = {"string": "string", "int64": "bigint", "int32": "int", "timestamp[us, tz=UTC]": "timestamp"}


@dataclass(frozen=True)
class ClientLogs:
    """``events`` (``tables.LOG_EVENTS``) and ``unknown_lines`` (``tables.LOG_LINES``) are Spark's and lazy: computed
    at each use, from what was kept on Spark's disks. ``files`` (``tables.LOG_FILES``) accounts for every line."""

    events: DataFrame
    unknown_lines: DataFrame
    files: pl.DataFrame


def read_client_logs(
    spark: SparkSession, paths: str | Iterable[str], zone: str | None = None, layout: str | None = None
) -> ClientLogs:
    """Read logs of consumers or brokers: files, folders or patterns, gz too, layouts mixed.

    The files are read once, now.

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
    lines = load_lines(spark, wanted)
    records = records_of_interest(lines.sifted, layout, zone)
    found = accounts.accounts(records)
    files = accounts.log_files(found, lines.n_lines, lines.damaged, lines.odd - set(found), layout)
    return ClientLogs(_events(records), _unknown(records), files)


def verify_logs(logs: ClientLogs) -> str:
    """What was read, in sentences; each file with a problem has one.

    Raises:
        PartialRead: a file is damaged, is no text, or has not the layout given: which and why.
    """
    return accounts.verified(logs.files)


def _check_zone(spark: SparkSession, zone: str | None) -> None:
    if zone is None:
        return
    try:
        spark.range(1).select(F.convert_timezone(F.lit(zone), F.lit("UTC"), F.localtimestamp())).collect()
    except PySparkException as error:
        raise InputError(f"there is no time zone {zone!r}: say one like Europe/Paris or +05:30") from error


def _events(classified: DataFrame) -> DataFrame:
    events = classified.where(F.col("kind").isNotNull() & (F.col("kind") != wordings.CONTEXT))
    events = events.withColumns(_columns({**fields.consumer_prefix("message"), "old": fields.old_consumer("message")}))
    events = events.withColumn("member_id", F.expr(f"coalesce({fields.member_of('told')}, old)"))
    kind, none = F.col("kind"), F.array().cast("array<string>")
    listed = F.when(F.size("listed") > 0, F.sort_array("listed")).when(kind == "group_assignment", none)
    partitions = F.coalesce(listed, fields.partitions_of(F.col("told"), kind))
    wanted = {
        **_columns(
            {
                "client_id": f"coalesce(client_id, {fields.client_of('raw', 'member_id')})",
                "group_id": f"coalesce(prefix_group, {fields.group_of('told')}, "
                f"{fields.old_group('coalesce(old, member_id)')})",
                "generation": fields.generation_of("told"),
                "leader_id": fields.leader_of("told"),
                "assignor": fields.assignor_of("told"),
                "coordinator": fields.coordinator_of("told"),
                "coordinator_id": fields.coordinator_id_of("told"),
                "offset": fields.offset_of("told"),
                "reason": fields.reason_of("told"),
                "text": f"substring(trim(raw), 1, {_CUT})",
            }
        ),
        "partitions": F.when(kind.isin("assignment_diff", "reconciling"), F.col("added")).otherwise(partitions),
        "owned_before": F.col("owned"),
        "owned_after": F.col("assigned"),
    }
    events = events.withColumns(wanted)
    return events.select(*[_typed(field.name, str(field.type)) for field in tables.LOG_EVENTS.schema])


def _columns(texts: dict[str, str]) -> dict[str, Column]:
    return {name: F.expr(text) for name, text in texts.items()}


def _typed(name: str, arrow: str) -> Column:
    spark = "array<string>" if arrow.startswith("list") else _SPARK_TYPES[arrow]
    return F.col(name).cast(spark).alias(name)


def _unknown(classified: DataFrame) -> DataFrame:
    """``wording``: the text with ids and numbers left out, to count by."""
    worded = F.substring(F.regexp_replace(F.regexp_replace("told", fields.UUID, "…"), r"\d+", "…"), 1, 120)
    lines = classified.where("is_unknown").withColumns({"wording": worded, "text": F.substring("raw", 1, _CUT)})
    return lines.select(*tables.LOG_LINES.schema.names)
