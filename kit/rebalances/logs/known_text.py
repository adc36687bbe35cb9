"""A known text anywhere in a line: where it begins, whose it is, and what is before it."""

from __future__ import annotations

import re
from functools import cache

import polars as pl

from kit.rebalances.logs import fields, layouts, library_fields, wordings
from kit.rebalances.logs.not_logged import is_template, says_nothing
from kit.rebalances.logs.printed_times import ANY
from kit.rebalances.logs.texts import extracted, has, replaced

_MARK = "\x1e"
_SHORTEST, _SHORTEST_CONTEXT = 4, 16
"""The beginning of a wording that is shorter is in every second line."""
_PLACES, _TRIED = 4, 8 << 20
"""A long line may have thousands of places: of each the rest is read. So many are tried, or so many bytes."""
_LONG = 15
"""A wording that is shorter may begin any sentence: without a time and a level it is shown, and no event."""
_WORD_FIRST = r"(\S+ (?:(?:successfully owned|attempting to claim) partition|can't rebalance after)\b)"
_OLD_PREFIX = rf"({fields.OLD_PREFIX.removeprefix('^').replace('([', '(?:[')})"
_OF_GO = r"(\[[^\]\s/]+/[^\]\s/]+\] )"
"""The beginning of lines of a consumer group over ZooKeeper in Go: the group, and the end of the member's id."""
_OWN_PREFIXES = (
    *(
        f"[{name} {key}="
        for name in ("Consumer", "ShareConsumer", "Worker", "Schema registry")
        for key in ("clientId", "instanceId")
    ),
    "[GroupCoordinator",
    "[GroupMetadataManager",
    "[GroupId ",
    "kafka: error while consuming ",
    "KafkaErrorException: [",
)
_OLD_EXCEPTION = "kafka.common.ConsumerRebalanceFailedException: "
_LEVELS = layouts.LEVELS.split("|")
WORDS = "|".join(sorted({*_LEVELS, *map(str.lower, _LEVELS), *map(str.capitalize, _LEVELS)} - {"Config", "Fine"}))
"""Levels, in every spelling."""
_FRONT = (
    rf"(?:^\s*|^% |[\]\[:|>)}}\"'=;,*/-]\s*|\t|\\[tn]|[0-9]Z?\s+|\b(?:UTC|GMT)\s+|\b(?:{WORDS}|std(?:out|err) [FP])\s+"
    r"|\b[A-Za-z_$][\w$]*(?:\.[\w$-]+)+(?::\d+)?\s+)$"
)
"""The end of a log line's front; a sentence that quotes a log ends otherwise."""
_WORDS_BEFORE = r"(?:\b[A-Za-z']+,? ){8}$"
"""The words that no layout prints in front of a text, but a sentence that quotes it does."""
_THE_ERROR = (
    r"(?i)\b(?:an?|and|as|by|following|get(?:s|ting)?|got|in|my|of|our|same|see(?:ing)?|th(?:at|e|is)|with) "
    r"(?:debug|error|fatal|info|trace|warn(?:ing)?):?\s+$"
)
"""A level's name in a sentence."""
_EXCEPTION = r"(?:Exception|Error|Throwable)\"?: $"
_THROWN = (
    r"^\s*(?:Exception in thread \"[^\"]*\" |Caused by: )?(?:[\w.$]+: .*nested exception is )?"
    r"(?:[\w.$]+(?:Exception|Error): )+$"
)
"""The front of a stack's first line, and of a cause."""
_TELL_WHAT_FAILED = ("commit_failed", "member_fenced", "offset_missing", "out_of_range")
"""The kinds of events that clients throw: with their own words, not with what the program reports."""
_BY = ("phrase", "found_source", "is_open")
"""The columns that decide of which kind a text is; ``is_open``: it does not report whose it is."""
_QUOTE_END = r"(?:\\n)?\\*\"(?:\s*[,}]|\s+\w+=|$).*$"
_LOGGER_BEHIND = r"\s\(([A-Za-z_][\w$]*(?:\.[\w$]+)+)(?::\d+)?\)(?: - [\w.-]+=[^()]*)?\s*$"


def located(texts: pl.DataFrame) -> pl.DataFrame:
    """``place``, ``text`` and ``is_logged`` (it is a log line for sure) → a row for each text that holds a known one.

    ``found``: from where it begins; ``front``: what is before; ``behind``: the logger behind it;
    ``found_source``, ``found_kind``: whose wording it is, and of which event;
    ``is_prose``: it is in the midst of a sentence, or may begin one; ``is_thrown``: it is what an exception reports.
    """
    marked = _marked(pl.col("text"))
    for first in (_WORD_FIRST, _OLD_PREFIX, _OF_GO):
        marked = replaced(marked, first, f"{_MARK}${{1}}")
    marked = marked.str.split(_MARK)
    pieces = texts.with_columns(pieces=marked).filter(pl.col("pieces").list.len() > 1)
    at_most = 1 + pl.max_horizontal(_PLACES, _TRIED // pl.col("text").str.len_bytes())
    places = pl.int_ranges(1, pl.min_horizontal(pl.col("pieces").list.len(), at_most))
    every = pieces.with_columns(at=places).explode("at")
    tail, front = pl.col("pieces").list.slice(pl.col("at")), pl.col("pieces").list.head(pl.col("at"))
    tails = every.select("place", "is_logged", front=front.list.join(""), tail=tail.list.join("")).with_columns(
        found=_whole(pl.col("tail"), pl.col("front")), behind=extracted(pl.col("tail"), _LOGGER_BEHIND)
    )
    is_formed = pl.col("is_logged") | has(pl.col("front"), rf"{ANY}|\b(?:{WORDS})\b")
    is_empty = ~is_formed & (is_template(pl.col("found")) | says_nothing(pl.col("front"), pl.col("found")))
    is_said = has(pl.col("front"), rf"{_EXCEPTION}|{_WORDS_BEFORE}|{_THE_ERROR}")
    is_prose = ~has(pl.col("front"), _FRONT) | is_said | is_empty
    is_own = _is_own(pl.col("found"), pl.col("front"))
    known = _with_kinds(tails).with_columns(is_own=is_own).with_columns(is_prose=is_prose & ~pl.col("is_own"))
    known = known.filter(pl.col("kind").is_not_null() | pl.col("is_own"))
    is_line = ~pl.col("is_prose") & is_formed
    is_sure = is_line | pl.col("is_own") | pl.col("phrase").str.contains(_not_by_chance())
    known = known.filter(is_sure | ~pl.col("is_prose")).with_columns(is_prose=pl.col("is_prose") | ~is_sure)
    known = known.filter(~(pl.col("is_prose") & (pl.col("kind") == wordings.CONTEXT)))
    # A thread's name may be a known text, too: what begins with a client's own prefix is the message.
    is_message = pl.col("is_own") & pl.col("kind").is_not_null() & (pl.col("kind") != wordings.CONTEXT)
    known = known.with_columns(is_message=is_message.fill_null(False))
    is_thrown = has(pl.col("front"), _THROWN) | pl.col("is_logged") & has(pl.col("front"), _EXCEPTION)
    known = known.with_columns(is_thrown=is_thrown & pl.col("kind").is_in(_TELL_WHAT_FAILED).fill_null(False))
    best = known.sort(
        "place", "is_prose", pl.col("kind").is_null(), ~pl.col("is_message"), pl.col("front").str.len_bytes()
    )
    return (
        best.group_by("place", maintain_order=True)
        .first()
        .select("place", "front", "found", "behind", "found_source", "is_prose", "is_thrown", found_kind="kind")
    )


def _marked(text: pl.Expr) -> pl.Expr:
    heads = _heads()
    return text.str.replace_many(heads, [_MARK + head for head in heads], leftmost=True)


@cache
def _heads() -> list[str]:
    every = [(each.head, each.kind) for table in wordings.BY_SOURCE.values() for each in table]
    event_heads = {head for head, kind in every if len(head) >= _SHORTEST and kind != wordings.CONTEXT}
    context = {head for head, kind in every if len(head) >= _SHORTEST_CONTEXT and kind == wordings.CONTEXT}
    return sorted({*event_heads, *context, *_OWN_PREFIXES}, key=lambda head: (-len(head), head))


@cache
def _not_by_chance() -> str:
    every = [each for table in wordings.BY_SOURCE.values() for each in table]
    long = [each for each in every if len(each.template.replace("{}", "")) >= _LONG]
    return "|".join(sorted({each.pattern or f"^{re.escape(each.head)}" for each in long}))


def _is_own(text: pl.Expr, front: pl.Expr) -> pl.Expr:
    """Return whether it begins with a client's own prefix, which no sentence does, or with an exception that only the
    old consumer throws, which a sentence may name.
    """
    starts = [text.str.starts_with(prefix) for prefix in _OWN_PREFIXES]
    is_thrown = text.str.starts_with(_OLD_EXCEPTION) & ~has(front, r"(?:\b[A-Za-z']+,? ){3}$")
    return pl.any_horizontal(starts) | has(text, fields.OLD_PREFIX) | is_thrown


def _whole(tail: pl.Expr, front: pl.Expr) -> pl.Expr:
    """Without what is behind the text: the end of the string that held it, the name of the logger."""
    with_keys = (tail + " " + front + tail).str.replace_all('\\"', '"', literal=True)
    whole = pl.when(has(tail, library_fields.WITH_KEYS)).then(with_keys)
    text = replaced(replaced(unquoted(tail, front), _LOGGER_BEHIND, ""), r"(?:\s|\\n)+$", "")
    return pl.coalesce(whole, text)


def unquoted(tail: pl.Expr, front: pl.Expr) -> pl.Expr:
    """The text up to the end of the string that began in front of it, if one did."""
    is_open = front.str.count_matches('"', literal=True) % 2 == 1
    return pl.when(is_open).then(replaced(tail, _QUOTE_END, "")).otherwise(tail)


def _with_kinds(tails: pl.DataFrame) -> pl.DataFrame:
    """With ``found_source`` and ``kind``: by what the text reports of itself, else the first whose wording it is."""
    of_itself = fields.source_of(pl.col("found"), pl.lit(""), pl.lit(None, pl.String))
    sourced = tails.with_columns(found_source=of_itself, phrase=fields.without_client_prefix(pl.col("found")))
    is_open = (pl.col("found_source") == wordings.JAVA) & (pl.col("phrase") == pl.col("found"))
    sourced = sourced.with_columns(is_open=is_open)
    texts = sourced.select(_BY).unique()
    order = {source: number for number, source in enumerate(wordings.BY_SOURCE)}
    tried = texts.join(pl.DataFrame({"source": list(order)}), how="cross")
    tried = tried.filter(pl.col("is_open") | (pl.col("source") == pl.col("found_source")))
    kinds = tried.lazy().with_columns(kind=fields.kind_of(order)).filter(pl.col("kind").is_not_null())
    first = kinds.sort(pl.col("kind") == wordings.CONTEXT, pl.col("source").replace_strict(order)).group_by(
        _BY, maintain_order=True
    )
    known = first.agg(pl.col("kind").first(), pl.col("source").first()).collect()
    return sourced.join(known, on=_BY, how="left").with_columns(found_source=pl.coalesce("source", "found_source"))
