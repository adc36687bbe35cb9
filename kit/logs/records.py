"""Lines → records: when each was, who wrote it, and which known wording it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.logs import fields, layouts, sql, wordings
from kit.logs.entries import looks_like_coordination, with_neighbours
from kit.logs.lines import kept_on_disk, with_line_numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ZONE_STEP_S = 900
_FOR_ONE_TASK = 25_000
"""So many lines are told in some seconds."""
_NEEDED = (
    *("file", "line", "record", "raw", "origin", "layout", "observed_at", "local_at", "time_text", "level", "logger"),
    *("source", "kind", "is_unknown", "message", "told", "assigned", "owned", "added", "listed"),
)
_LOGGER = "coalesce(logger, '')"


def records_of_interest(sifted: DataFrame, n_candidates: int, layout: str | None, zone: str | None) -> DataFrame:
    """Events, known lines that tell none (``wordings.CONTEXT``), and lines that were not understood (``is_unknown``);
    computed at the first use. Windows are over what is left of one file; Spark keeps them on disk where they are large.
    """
    n_tasks = n_candidates // _FOR_ONE_TASK
    spread = f"|> SELECT /*+ REPARTITION({n_tasks}, file, line) */ *" if n_tasks > 1 else ""
    records = sql.through(sifted, _cut(layout))
    records = sql.through(records, "|> SELECT /*+ REPARTITION(file) */ *", with_line_numbers())
    records = sql.through(records, with_neighbours())
    records = sql.through(records, _proved(), spread)
    records = sql.through(records, _told(), _timed(zone), _judged(), f"|> SELECT {', '.join(_NEEDED)}")
    # Asked of what is kept: asked before, Spark would compute it once more to filter by.
    return kept_on_disk(records).where("kind IS NOT NULL OR is_unknown")


def _cut(layout: str | None) -> str:
    """Cut into records where a line holds several, with the parts of their layout."""
    start = sql.regex(layouts.RECORD_START)
    parts = {part: f"nullif(parts[{number}], '')" for number, part in enumerate(layouts.PARTS)}
    parts["time_text"] = parts.pop("time")
    # A bare line of a client is one, too: some layouts print nothing but the message.
    is_bare = f"raw RLIKE {sql.regex(f'{fields.CONSUMER_PREFIX}|{fields.BROKER_PREFIX}|{fields.OLD_PREFIX}')}"
    return f"""
        |> SELECT file, block, number, n_lines, {layouts.origin("value")} AS origin,
            posexplode_outer(split({layouts.without_prefix("value")}, {start})) AS (record, raw)
        |> EXTEND {layouts.layout_of("trim(raw)", layout)} AS layout
        |> EXTEND {layouts.parts_of("trim(raw)", "layout")} AS parts
        |> EXTEND {", ".join(sql.named(parts))}
        |> SET message = coalesce(message, if({is_bare}, raw, NULL))
        |> EXTEND {fields.client_of("trim(raw)", "NULL")} AS client_id"""


def _told() -> str:
    """With the kind of client, and the message as its wording begins."""
    of_rdkafka = f"ltrim({sql.without('message', (fields.RDKAFKA_PREFIX,))})"
    of_others = fields.without_client_prefix("message")
    return f"""
        |> EXTEND {fields.source_of("message", _LOGGER, "layout")} AS source
        |> EXTEND if(source = '{wordings.LIBRDKAFKA}', {of_rdkafka}, {of_others}) AS told"""


def _proved() -> str:
    """``epoch``, ``local`` and ``local_us``: the time as printed. ``proved``: how far a file's times are from UTC, in
    quarters of an hour, by its request dumps: they hold the epoch's milliseconds, and the printed time in front."""
    said_ms = sql.extracted("raw", r"(?:receivedTimeMs|createdTimeMs)=(\d{13})\b")
    steps = f"round((local_us / 1e6 - try_cast({said_ms} AS bigint) / 1e3) / {_ZONE_STEP_S})"
    return f"""
        |> EXTEND {layouts.epoch_at("time_text", "layout")} AS epoch, {layouts.local_at("time_text")} AS local
        |> EXTEND unix_micros(try_cast(cast(local AS string) || '+00:00' AS timestamp)) AS local_us
        |> EXTEND {steps} AS steps
        |> SET steps = if(abs(steps) <= 60, steps, NULL)
        |> EXTEND min(steps) OVER (PARTITION BY file) AS least, max(steps) OVER (PARTITION BY file) AS most
        |> EXTEND if(least = most, most, NULL) AS proved"""


def _timed(zone: str | None) -> str:
    """``observed_at``: as the time says its zone, as it was given, or as the file proves it. ``local_at``: µs, for what
    comes before what."""
    printed = f"if(local IS NULL, NULL, {sql.extracted('time_text', f'({layouts.ZONE})$')})"
    given = "NULL" if zone is None else layouts.utc_at("local", f"'{zone}'")
    proved = f"timestamp_micros(cast(local_us - proved * {_ZONE_STEP_S} * 1000000 AS bigint))"
    return f"""
        |> EXTEND coalesce(zone, {printed}) AS said_zone
        |> EXTEND coalesce(epoch, {layouts.utc_at("local", "said_zone")}, {given}, {proved}) AS observed_at,
            coalesce(unix_micros(epoch), local_us) AS local_at"""


def _judged() -> str:
    """With the kind of event; null: not understood, which ``is_unknown`` if it looks like coordination."""
    # Lists that dump librdkafka's state are many and say no more than the one of the group.
    is_dump = f"source = '{wordings.LIBRDKAFKA}' AND known = 'group_assignment' AND {_LOGGER} != 'GRPASSIGNMENT'"
    facility = sql.regex(r"^(?:CGRP|JOIN|SYNC|LEAVE|REBALANCE|HEARTBEAT|REJOIN)")
    is_rdkafka, looks = f"source = '{wordings.LIBRDKAFKA}'", looks_like_coordination("told", _LOGGER)
    return f"""
        |> EXTEND {fields.kind_of("told", "source")} AS known
        |> EXTEND if({is_dump}, '{wordings.CONTEXT}', known) AS kind
        |> EXTEND kind IS NULL AND if({is_rdkafka}, {_LOGGER} RLIKE {facility}, {looks}) AS is_unknown"""
