"""Records of known wording → events; records that resemble coordination and have none → unknown lines."""

from __future__ import annotations

from functools import cache

import polars as pl

from kit.rebalances.logs import fields, library_fields, partition_fields, wordings
from kit.rebalances.logs.texts import extracted, has, replaced
from kit.tables import schema as tables

_CUT, _CUT_LIST = 2_000, 2_000_000
"""A longer text is cut; one that lists a group's members is as long as they are many."""
_IS_CUT_OFF = r"(?:,|\.\.\.|…)(?: ?\(?\+?\d+ more\)?)?[\])}\"'\s]*$|\btruncated[\])>]*\s*$"
"""The end of a list that is not whole: a person who pasted it, or a program that collected it, left the rest out."""
_ENDS_WITH_A_COMMA = "Local: "
"""The beginning of a list that has a comma behind its last entry, too: librdkafka's example of a rebalance callback."""
_LISTS_MEMBERS = ("joined", "leader_assigning", "assignment_computed", "group_rebalancing", "target_computed")


def events_of(records: pl.DataFrame) -> pl.DataFrame:
    """Each text is parsed once: most events of a client are heartbeats, word for word the same."""
    message = pl.col("message")
    events = records.filter(pl.col("kind") != wordings.CONTEXT)
    texts = events.select("phrase", "kind", "source").unique().lazy().with_columns(**_of_text())
    return (
        events.lazy()
        .with_columns(**fields.consumer_prefix(message), old=fields.old_consumer(message))
        .join(texts, on=("phrase", "kind", "source"), how="left", maintain_order="left")
        .with_columns(said_group=_whole("said_group"), said_member=_whole("said_member"))
        .with_columns(member_id=pl.coalesce("said_member", "old"))
        .with_columns(**_of_record())
        .select(tables.LOG_EVENTS.schema.names)
        .collect()
    )


def _whole(name: str) -> pl.Expr:
    """Return the name that a text has; null where the text is cut behind it, and with it perhaps the name."""
    is_at_the_end = pl.col("is_cut") & pl.col("phrase").str.ends_with(pl.col(name))
    return pl.when(~is_at_the_end.fill_null(False)).then(name).alias(name)


@cache
def _of_text() -> dict[str, pl.Expr]:
    """The columns that follow from the text alone."""
    text = pl.col("phrase")
    is_library = pl.col("source").is_in(wordings.LIBRARIES)
    others = library_fields.columns_of(pl.when(is_library).then(text))
    said_alone = pl.when(is_library).then(replaced(text, library_fields.FACTS_BEHIND, "")).otherwise(text)
    columns = {
        "said_member": fields.member_of(text),
        "said_group": fields.group_of(text),
        "said_partitions": partition_fields.partitions_of(text, pl.col("kind")),
        "generation": fields.generation_of(text),
        "leader_id": fields.leader_of(text),
        "assignor": fields.assignor_of(text),
        "coordinator": fields.coordinator_of(text),
        "coordinator_id": fields.coordinator_id_of(text),
        "offset": fields.offset_of(text),
        "reason": fields.reason_of(said_alone),
    }
    return {name: pl.coalesce(others[name], each) if name in others else each for name, each in columns.items()}


@cache
def _of_record() -> dict[str, pl.Expr]:
    """The columns that need more than the text."""
    kind = pl.col("kind")
    longest = pl.when(kind.is_in(_LISTS_MEMBERS)).then(_CUT_LIST).otherwise(_CUT)
    empty = pl.when((kind == "group_assignment") & (pl.col("source") == wordings.LIBRDKAFKA)).then(
        pl.lit([], pl.List(pl.String))
    )
    is_list = pl.col("said_partitions").is_not_null() & ~pl.col("phrase").str.starts_with(_ENDS_WITH_A_COMMA)
    is_cut_off = has(pl.when(is_list).then("phrase"), _IS_CUT_OFF).fill_null(False)
    # All lines of librdkafka name its client, or none does.
    by_member = pl.when(pl.col("source") != wordings.LIBRDKAFKA).then(fields.client_in(pl.col("member_id")))
    listed = pl.when(pl.col("listed").list.len() > 0).then(pl.col("listed").list.sort()).otherwise(empty)
    return {
        "client_id": pl.coalesce("prefix_client", "client_id", by_member),
        "group_id": pl.coalesce(
            "prefix_group", "said_group", fields.old_group(pl.coalesce("old", "member_id")), _group_beside()
        ),
        "text": pl.col("raw").str.strip_chars(" ").str.slice(0, longest),
        "reason": pl.when("is_cut")
        .then(pl.col("reason").fill_null("") + " … (the line is cut here)")
        .otherwise("reason"),
        "partitions": pl.when(pl.col("is_cut") | is_cut_off)
        .then(None)
        .when(kind.is_in(("assignment_diff", "reconciling")))
        .then("added")
        .otherwise(pl.coalesce(listed, "said_partitions")),
        "owned_before": pl.col("owned"),
        "owned_after": pl.col("assigned"),
    }


def _group_beside() -> pl.Expr:
    """The group that a program names in a key of its own, beside the text of a client that does not print it."""
    raw = pl.when(pl.col("source").is_in(wordings.LIBRARIES)).then("raw")
    return extracted(raw, r"\b(?:consumer_?[gG]roup|group_?[iI]d)\\*\"?[=:] ?\\*\"?([^\s\"\\,;{}]+)")


def unknown_lines_of(records: pl.DataFrame) -> pl.DataFrame:
    """``wording``: the text without its ids and numbers, to count by."""
    worded = replaced(replaced(pl.col("phrase"), fields.UUID, "…"), r"\d+", "…").str.slice(0, 120)
    lines = records.filter("is_unknown").with_columns(wording=worded, text=pl.col("raw").str.slice(0, _CUT))
    return lines.select(tables.LOG_LINES.schema.names)
