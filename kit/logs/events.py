"""Log files → events, lines that were not understood, and an account of every file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from pyspark.errors import PySparkException

from kit import tables
from kit.errors import InputError
from kit.logs import accounts, fields, layouts, lines, sql, wordings
from kit.logs.records import records_of_interest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    sifted = lines.sifted(spark, wanted)
    read = lines.read_lines(sifted)
    records = records_of_interest(sifted, read.n_candidates, layout, zone)
    told = accounts.accounts(records)
    files = accounts.log_files(told, read.n_lines, read.damaged, read.odd - set(told), layout)
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
    some_time = "TIMESTAMP_NTZ'2000-01-01 00:00:00'"
    try:
        spark.sql(f"SELECT {layouts.utc_at(some_time, ':zone')}", {"zone": zone}).collect()
    except PySparkException as error:
        raise InputError(f"there is no time zone {zone!r}: say one like Europe/Paris or +05:30") from error


def _events(records: DataFrame) -> DataFrame:
    events = records.where(f"kind != '{wordings.CONTEXT}'")
    events = events.selectExpr(
        "*", *sql.named(fields.consumer_prefix("message")), f"{fields.old_consumer('message')} AS old"
    )
    events = events.selectExpr("*", f"coalesce({fields.member_of('told')}, old) AS member_id")
    listed = "if(size(listed) > 0, sort_array(listed), if(kind = 'group_assignment', array(), NULL))"
    partitions = f"coalesce({listed}, {fields.partitions_of('told', 'kind')})"
    told = {
        "client_id": f"coalesce(prefix_client, {fields.client_of('raw', 'member_id')})",
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
        "partitions": f"if(kind IN ('assignment_diff', 'reconciling'), added, {partitions})",
        "owned_before": "owned",
        "owned_after": "assigned",
    }
    types = {field.name: _spark_type(str(field.type)) for field in tables.LOG_EVENTS.schema}
    return events.selectExpr(*[f"cast({told.get(name, name)} AS {type_}) AS {name}" for name, type_ in types.items()])


def _spark_type(arrow: str) -> str:
    return "array<string>" if arrow.startswith("list") else _SPARK_TYPES[arrow]


def _unknown(records: DataFrame) -> DataFrame:
    """``wording``: the text with ids and numbers left out, to count by."""
    worded = sql.replaced(sql.replaced("told", fields.UUID, "…"), r"\d+", "…")
    lines = records.where("is_unknown")
    lines = lines.selectExpr("*", f"substring({worded}, 1, 120) AS wording", f"substring(raw, 1, {_CUT}) AS text")
    return lines.select(*tables.LOG_LINES.schema.names)
