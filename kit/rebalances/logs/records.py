"""Lines → records: when each was, who wrote it, and which known wording it has."""

from __future__ import annotations

import polars as pl

from kit.rebalances.logs import fields, foreign, layouts, wordings
from kit.rebalances.logs.known_text import located
from kit.rebalances.logs.multiline import looks_like_coordination
from kit.rebalances.logs.texts import extracted, has, without

ZONE_STEP_S = 900
_LOGGER = pl.col("logger").fill_null("")
_TIME_BEHIND = r"\"(?:timestamp|time|ts)\":\"([^\"]+)\""
"""The beginning of the facts that a client puts behind its text, as JSON."""
_STACK = 200
"""The largest number of lines of a stack, with all its causes."""
_FACILITY = r"^(?:CGRP|JOIN|SYNC|LEAVE|REBALANCE|HEARTBEAT|REJOIN)"


def records_of(lines: pl.LazyFrame, layout: str | None) -> pl.DataFrame:
    """``line`` and ``value`` → records, where a line holds several, with the parts of their layout; where the layout
    is not ``given``, of lines without one, too."""
    value, raw = pl.col("value"), pl.col("raw")
    trimmed = raw.str.strip_chars(" ")
    # A bare line of a client is a record, too: some layouts print nothing but the message.
    is_bare = has(raw, f"{fields.CONSUMER_PREFIX}|{fields.BROKER_PREFIX}|{fields.OLD_PREFIX}")
    is_json = pl.col("layout") == layouts.JSON
    json_message, object_ = pl.when(is_json).then("message"), pl.when(is_json).then(trimmed)
    records = (
        lines.with_columns(value=foreign.with_entities_read(value))
        .select(
            "file",
            "line",
            "is_cut",
            origin=layouts.origin(value),
            front_time=layouts.time_in_front(value),
            raw=layouts.records_in(layouts.without_prefix(value)),
        )
        .with_columns(record=pl.int_ranges(pl.col("raw").list.len(), dtype=pl.Int32))
        .explode("raw", "record")
        .with_columns(raw=foreign.without_markup_behind(raw))
        .filter(trimmed != "")
        .with_columns(layout=layouts.layout_of(trimmed, layout))
        .with_columns(**layouts.groups_of(trimmed, pl.col("layout")), client_id=fields.printed_client(trimmed))
        .with_columns(**layouts.parts_of())
        .drop(layouts.NAMES)
        .rename({"time": "time_text"})
        .with_columns(
            message=pl.coalesce(foreign.with_keys(json_message, object_), "message", pl.when(is_bare).then("raw"))
        )
        .collect()
    )
    return foreign.nothing_said(records) if layout is not None else foreign.resolved(records)


def timed(entries: pl.LazyFrame, zone: str | None) -> pl.LazyFrame:
    """``observed_at``: as the time describes its zone, or as it was given. ``local_at``: µs, for what comes before
    what. ``zone_step``: how far a request dump's time is from UTC, in quarters of an hour: it holds the epoch's
    milliseconds, and the printed time in front.
    """
    behind = extracted(pl.when(pl.col("time_text").is_null()).then("message"), _TIME_BEHIND)
    time, local = pl.col("time_text"), pl.col("local")
    printed = pl.when(local.is_not_null()).then(extracted(time, f"({layouts.ZONE})$"))
    said_ms = extracted(pl.col("raw"), r"(?:receivedTimeMs|createdTimeMs)=(\d{13})\b").cast(pl.Int64)
    local_us = local.dt.timestamp("us")
    step = ((local_us / 1e6 - said_ms / 1e3) / ZONE_STEP_S).round()
    assumed = [] if zone is None else [layouts.utc_of(local, zone)]
    return (
        entries.with_columns(time_text=pl.coalesce(time, behind, "front_time"))
        .with_columns(epoch=layouts.epoch_at(time, pl.col("layout")), local=layouts.local_at(time))
        .with_columns(
            observed_at=pl.coalesce(
                pl.from_epoch("epoch", time_unit="us"), layouts.utc_at(local, pl.coalesce("zone", printed)), *assumed
            ).dt.replace_time_zone("UTC"),
            local_at=pl.coalesce("epoch", local_us),
            zone_step=pl.when(step.abs() <= 60).then(step).cast(pl.Int64),
        )
    )


def judged(entries: pl.LazyFrame) -> pl.LazyFrame:
    """With the kind of client (``source``), the message as its wording begins (``phrase``), and the ``kind`` of event;
    null: not understood, which ``is_unknown`` if it resembles coordination."""
    message, phrase, source = pl.col("message"), pl.col("phrase"), pl.col("source")
    is_rdkafka = source == wordings.LIBRDKAFKA
    unescaped = message.str.replace_all(r"\"", '"', literal=True)
    of_rdkafka = without(unescaped, fields.RDKAFKA_PREFIXES).str.strip_chars_start(" ")
    # Lists that dump librdkafka's state are many and add nothing to the one of the group.
    is_dump = is_rdkafka & (pl.col("known") == "group_assignment") & (_LOGGER != "GRPASSIGNMENT")
    by_facility = pl.when(has(_LOGGER, r"^[A-Z][A-Z0-9_]+$")).then(has(_LOGGER, _FACILITY))
    looks_alike = looks_like_coordination(phrase, _LOGGER) | looks_like_coordination(_error_beside(), pl.lit(""))
    looks = pl.when(is_rdkafka).then(pl.coalesce(by_facility, looks_alike)).otherwise(looks_alike)
    source_of = fields.source_of(message, _LOGGER, pl.col("layout"))
    sourced = (
        entries.with_columns(source=pl.coalesce("known_source", source_of))
        .with_columns(phrase=pl.when(is_rdkafka).then(of_rdkafka).otherwise(fields.without_client_prefix(message)))
        .collect()
    )
    # Most lines of a client repeat the text of others, so each text is matched with the wordings once.
    texts = sourced.select("source", "phrase").unique()
    kinds = texts.lazy().with_columns(known=fields.kind_of(texts["source"].unique()))
    matched = sourced.lazy().join(kinds, on=("source", "phrase"), how="left", nulls_equal=True, maintain_order="left")
    is_quoted = pl.col("is_prose") & pl.col("known").is_not_null() & (pl.col("known") != wordings.CONTEXT)
    return (
        _with_exceptions_once(_with_texts_behind_prefixes(matched.collect()))
        .lazy()
        .with_columns(kind=pl.when(is_dump).then(pl.lit(wordings.CONTEXT)).when(~is_quoted).then("known"))
        .with_columns(is_unknown=pl.col("kind").is_null() & (looks | is_quoted))
    )


def _error_beside() -> pl.Expr:
    """The error that an application's record in JSON has beside its message; an empty text: none."""
    record = pl.when(pl.col("known").is_null() & (pl.col("layout") == layouts.JSON)).then("raw")
    ways = [record.str.json_path_match(f"$['{key}']") for key in ("error", "err", "exception")]
    return pl.coalesce(*ways, pl.lit(""))


def _with_texts_behind_prefixes(entries: pl.DataFrame) -> pl.DataFrame:
    """Take the text behind an unknown prefix of a known layout. If a sentence is before the text, it is shown."""
    lacking = entries.filter(pl.col("known").is_null() & (pl.col("source") != wordings.LIBRDKAFKA))
    if lacking.is_empty():
        return entries
    texts = lacking.select(text="message").unique().with_row_index("place")
    matches = located(texts.with_columns(is_logged=pl.lit(True))).join(texts, on="place")
    if matches.is_empty():
        return entries
    by_text = matches.select(
        "found", "found_source", "found_kind", is_quoted="is_prose", is_said="is_thrown", message="text"
    )
    joined = entries.join(by_text, on="message", how="left", maintain_order="left")
    has_one = pl.col("known").is_null() & pl.col("found").is_not_null() & (pl.col("source") != wordings.LIBRDKAFKA)
    return joined.with_columns(
        message=pl.when(has_one).then("found").otherwise("message"),
        phrase=pl.when(has_one).then(fields.without_client_prefix(pl.col("found"))).otherwise("phrase"),
        source=pl.when(has_one).then("found_source").otherwise("source"),
        known=pl.when(has_one).then("found_kind").otherwise("known"),
        is_prose=pl.when(has_one).then("is_quoted").otherwise("is_prose"),
        is_thrown=pl.when(has_one).then("is_said").otherwise("is_thrown"),
    )


def _with_exceptions_once(entries: pl.DataFrame) -> pl.DataFrame:
    """Take an exception as an event, too, unless a line before it reports it: a log line, or the same exception."""
    if not entries["is_thrown"].any():
        return entries
    is_said = ~pl.col("is_prose") | pl.col("is_thrown")
    gap = pl.col("line") - pl.col("line").shift().over("file", pl.when(is_said).then("known"))
    is_again = pl.col("is_thrown") & (gap <= _STACK).fill_null(False)
    return entries.with_columns(
        known=pl.when(is_again).then(pl.lit(wordings.CONTEXT)).otherwise("known"),
        is_prose=pl.col("is_prose") & ~pl.col("is_thrown"),
    )
