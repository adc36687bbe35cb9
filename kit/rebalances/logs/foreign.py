"""Lines of no known layout: markup is removed, JSON is opened, and a known text is searched for anywhere in the line.

People paste logs behind prefixes of their own, in Markdown, in HTML, as JSON in JSON.
"""

from __future__ import annotations

import re

import polars as pl

from kit.rebalances.logs import fields, layouts, library_fields, wordings
from kit.rebalances.logs.known_text import WORDS, located, unquoted
from kit.rebalances.logs.multiline import is_part
from kit.rebalances.logs.not_logged import is_program, is_stack
from kit.rebalances.logs.printed_times import ANY, epoch_in, time_in, zone_in
from kit.rebalances.logs.texts import extracted, has, replaced
from kit.rebalances.logs.wordings.go import FRANZ_GO_LINES

_ENTITIES = (
    (r"&quot;|&#34;", '"'),
    (r"&#0?39;|&apos;|&#x27;", "'"),
    (r"&gt;", ">"),
    (r"&lt;", "<"),
    (r"&nbsp;", " "),
    (r"&amp;", "&"),
)
_MARKUP = (
    (r"\[Kafka: (\w+)\]", "[${1}]"),  # how Nest calls kafkajs' classes
    (r"\x1b\[[0-9;]*[A-Za-z]", ""),  # a terminal's colours
    (r"</?(?:br|code|pre|b|i|p|em|strong|span|div)\b[^>]*>", ""),
    (r"^(?:\s*(?:>|[-*+] |\*\*|`+|#+ ))+ ?", ""),
    (
        r"\b(group|explicit|assigned for|member id|coordinator for|node_id=\d+\) for) `([^`\s]+)`",
        "${1} \x1f${2}\x1f",
    ),  # the client's own
    (r"(?:\*\*|`|\s)+$", ""),
    (r"\*\*|`", ""),
    (r"\x1f", "`"),
    (r"\b([a-z][a-z -]+[a-z]) ?\[group ([^\s\]]+)([^\]]*)\]", "${1}; group: ${2}${3}"),  # how Go prints franz-go's keys
    (r"\\([\[\]_*=<>#.(){}|-])", "${1}"),
)
"""The texts that markup writes, and their meaning, in this order."""
_WITH_FACTS = sorted({each.template.split("; ")[0] for each in FRANZ_GO_LINES if "; " in each.template}, reverse=True)
_IN_KEYS = rf'^(.*?\bmsg=)"?({"|".join(map(re.escape, _WITH_FACTS))})"? (group|id|plan|why)=(.*)$'
"""franz-go's texts in a line of keys and values, as Go's slog prints it."""
_HEADING = r"^\s*#+ "
"""A title of Markdown reports again what a log below it reports."""
_OBJECT = r"(\{.*\})[\s,;'\"]*$"
_WRAPPED = r"^\s*\{\"[\w.-]+\":\s*(\{.*\})\}[\s,;]*$"
"""An object whose only key holds the one with the message."""
_MESSAGE_KEYS = (
    *(f"$['{key}']" for key in ("message", "msg", "log", "MESSAGE", "textPayload", "line", "body", "text")),
    *(f"$['{key}']['message']" for key in ("jsonPayload", "_source", "fields", "attributes", "log")),
)
_WITH_WHY = "assigning partitions"
"""franz-go's text that gives the reason, and no group."""
_OF_SARAMA = "kafka server: "
"""The beginning of sarama's errors, which programs print beside a message of their own."""
_DEPTH = 3
"""JSON may hold JSON this often."""
_THREAD = r"\[thrd:.*?\]: (.*)$"
_RDKAFKA = r"\[thrd:|#(?:consumer|producer)-\d+[|\]:]"
_FACILITY = (
    r"\b([A-Z][A-Z0-9_]{2,})[\s:|\]'\",]+(?:message: '|\[?[^\s\[\]|]*#consumer-\d+[\]:|]*\s*)?(?:\[thrd:|[A-Z][a-z])"
)
_LOGGER = r"\b([A-Za-z_]\w*(?:\.[A-Za-z_$][\w$]*)+)\b"
_DEBUGS_END = r"\s\+\d+(?:ms|s|m|h)$"
"""The end of each line of Node's package debug."""
_FORM = rf"{fields.UUID}|\w [\w.]+=[^\s=]|^\s*\[[^\s\]\[(][^\]\[(]+\] \S|\b\w+\.[a-z]{{1,4}}:\d+\b"
"""The forms that logs without a time and a level have, and sentences do not: ids, keys with values, a name in
brackets in front, a line of a source file.
"""
_SENTENCE = r"^\s*(?:[A-Za-z']+[,.]? ){12}"
"""The beginning of a sentence that explains a log, also where an id is quoted later."""


def resolved(records: pl.DataFrame) -> pl.DataFrame:
    """``records`` of whatever layout; those without a ``message`` get one where they hold a known text, or have the
    form of a line of a log. ``known_source``: whose wording that text is; ``is_prose``: it is in a sentence;
    ``is_thrown``: an exception reports it."""
    records = nothing_said(records)
    is_lacking = pl.col("message").is_null() & ~has(pl.col("raw"), layouts.JUL_HEADER) & ~is_stack(pl.col("raw"))
    if not records.select(is_lacking.any()).item():
        return records
    numbered = records.with_row_index("place").with_columns(is_lacking=is_lacking)
    recognised = _found(numbered.filter("is_lacking")).select(numbered.columns)
    return pl.concat([numbered.filter(~pl.col("is_lacking")), recognised]).sort("place").drop("place", "is_lacking")


def nothing_said(records: pl.DataFrame) -> pl.DataFrame:
    """Return ``records`` with the columns of :func:`resolved`, where no text is searched for."""
    return records.with_columns(known_source=pl.lit(None, pl.String), is_prose=pl.lit(False), is_thrown=pl.lit(False))


def with_entities_read(line: pl.Expr) -> pl.Expr:
    """The line with the characters that HTML writes by their names."""
    written: pl.Expr = pl.when(line.str.contains("&", literal=True)).then(line)
    for pattern, plain in _ENTITIES:
        written = replaced(written, pattern, plain)
    return pl.coalesce(written, line)


def with_keys(message: pl.Expr, json: pl.Expr) -> pl.Expr:
    """The message of a client that puts the facts into other keys of its JSON: with these behind it."""
    space = json.str.json_path_match("$['namespace']")
    named = pl.coalesce(pl.when(~message.str.starts_with("[")).then("[" + space + "] " + message), message)
    opened = pl.when(space.is_not_null()).then(json.str.replace_all(r"\"", '"', literal=True)).otherwise(json)
    of_kafkajs = pl.when(has(named, library_fields.WITH_KEYS)).then(named + " " + opened)
    group = json.str.json_path_match("$['group']")
    why = pl.when(message == _WITH_WHY).then(json).str.json_path_match("$['why']")
    of_franz_go = [message + f"{wordings.BESIDE} " + group + ", " + json, message + "; why: " + why]
    error = pl.coalesce([json.str.json_path_match(f"$['{key}']") for key in ("error", "err")])
    of_sarama = pl.when(error.str.starts_with(_OF_SARAMA)).then(message + ": " + error)
    return pl.coalesce(of_kafkajs, *of_franz_go, of_sarama, message)


def without_markup_behind(line: pl.Expr) -> pl.Expr:
    """The line without what ends a quotation; a quotation mark in a pair may be the client's own."""
    line = replaced(line, r"(?:\*\*|</(?:code|pre|b|i|p|em|strong|span|div)>)+\s*$", "")
    for mark in '`"':
        is_odd = line.str.count_matches(mark, literal=True) % 2 == 1
        is_lone = line.str.ends_with(mark) & is_odd & ~has(line, rf"{mark}[^{mark}\s]+{mark}$")
        line = pl.when(is_lone).then(line.str.head(-1)).otherwise(line)
    return line


def unmarked(line: pl.Expr) -> pl.Expr:
    """The line without what Markdown, HTML and terminals put into it, and with franz-go's facts as it prints them."""
    for pattern, plain in _MARKUP:
        line = replaced(line, pattern, plain)
    return pl.coalesce(_with_facts_behind(line), line)


def _with_facts_behind(line: pl.Expr) -> pl.Expr:
    """The line of keys and values with franz-go's text: with these behind the text; null: it is another line."""
    front, text, key, facts = (line.str.extract(_IN_KEYS, number) for number in (1, 2, 3, 4))
    for pattern, plain in (
        (r"^\"([^\"]*)\"", "${1}"),
        (r" (\w+)=\"([^\"]*)\"", ", ${1}: ${2}"),
        (r" (\w+)=", ", ${1}: "),
    ):
        facts = replaced(facts, pattern, plain)
    return front + text + "; " + key + ": " + facts


def _found(records: pl.DataFrame) -> pl.DataFrame:
    is_heading = has(pl.col("raw"), _HEADING) & ~has(pl.col("raw"), ANY)
    judged = records.with_columns(is_heading=is_heading, is_program=is_program(pl.col("raw")))
    opened = _opened(judged.with_columns(raw=unmarked(pl.col("raw"))))
    known = located(opened.select("place", text="raw", is_logged=pl.col("layout").is_not_null())).with_columns(
        known_source="found_source"
    )
    frame = opened.drop("known_source", "is_prose", "is_thrown").join(
        known, on="place", how="left", maintain_order="left"
    )
    raw = pl.col("raw")
    is_rdkafka = has(raw, _RDKAFKA)
    front = pl.when(is_rdkafka).then(extracted(raw, r"^(.*?)(?:\[thrd:|#consumer-)")).otherwise("front")
    of_rdkafka = pl.when(is_rdkafka).then(unquoted(pl.coalesce(raw.str.extract(_THREAD), raw), front))
    is_logged = has(raw, rf"{ANY}|\b(?:{layouts.LEVELS})\b|\[(?:{WORDS})\]|{_DEBUGS_END}")
    is_logged |= has(raw, _FORM) & ~has(raw, _SENTENCE)
    names_itself = pl.col("found").str.starts_with("[").fill_null(False)
    is_python = has(pl.coalesce("logger", extracted(pl.col("front"), _LOGGER)), fields.PYTHONS_MODULE) & ~names_itself
    of_python = pl.when(is_python).then(pl.lit(wordings.PYTHON)).otherwise("known_source")
    facility = pl.when(is_rdkafka).then(extracted(raw, _FACILITY))
    return frame.with_columns(front=front).with_columns(
        message=pl.when(~is_part(raw) & ~pl.col("is_program")).then(
            pl.coalesce(of_rdkafka, "found", pl.when(is_logged).then(raw))
        ),
        known_source=pl.when(is_rdkafka).then(pl.lit(wordings.LIBRDKAFKA)).otherwise(of_python),
        is_prose=~is_rdkafka
        & (pl.col("is_prose") | pl.col("is_heading") & pl.col("found").is_not_null()).fill_null(False),
        is_thrown=~is_rdkafka & pl.col("is_thrown").fill_null(False),
        layout=pl.when(is_rdkafka).then(pl.lit(layouts.LIBRDKAFKA)).when(~is_part(raw)).then("layout"),
        zone=pl.coalesce("zone", pl.when(pl.col("time_text").is_null()).then(zone_in(pl.col("front"), layouts.ZONE))),
        time_text=pl.coalesce(
            "time_text", pl.when(is_rdkafka).then(epoch_in(pl.col("front"))), time_in(pl.col("front"))
        ),
        level=pl.coalesce("level", extracted(pl.col("front"), rf"\b({WORDS})\b").str.to_uppercase()),
        logger=pl.coalesce(facility, "logger", "behind", extracted(pl.col("front"), _LOGGER)),
        client_id=pl.coalesce(fields.printed_client(raw), extracted(raw, r"(?:^|[\s:])([^\s|\[\]:]+)#consumer-\d+")),
    )


def _opened(records: pl.DataFrame) -> pl.DataFrame:
    """Return the message of a record in JSON, which may be a line, or JSON, of its own; the outermost time is kept."""
    records = records.with_columns(layout=pl.lit(None, pl.String))
    for _ in range(_DEPTH):
        records = records.with_columns(raw=replaced(pl.col("raw"), _WRAPPED, "${1}"))
        is_object = has(pl.col("raw"), rf"^[^{{]*{_OBJECT}") & pl.col("raw").str.contains('"', literal=True)
        if not records.select(is_object.any()).item():
            break
        # Each step is a column of its own: an expression that is named twice is computed twice.
        records = records.with_columns(json_text=pl.when(is_object).then(extracted(pl.col("raw"), _OBJECT)))
        json_text = pl.col("json_text")
        torn = json_text.str.head(-1)  # one brace too many is pasted with it
        is_torn = json_text.str.json_path_match("$").is_null()
        records = records.with_columns(json_text=pl.when(is_torn).then(torn).otherwise(json_text))
        records = records.with_columns(said=pl.coalesce([json_text.str.json_path_match(key) for key in _MESSAGE_KEYS]))
        records = records.with_columns(said=with_keys(pl.col("said"), json_text), has_said=pl.col("said").is_not_null())
        message = pl.col("said")
        has_text_in_front = ~pl.col("has_said") & json_text.str.json_path_match("$['group']").is_not_null()
        in_front: pl.Expr = pl.when(has_text_in_front).then(extracted(pl.col("raw"), r"^([^{]*\S)\s+\{"))
        records = records.with_columns(in_front=in_front)
        facts = replaced(json_text, r'":\s+', '":')
        parts = {
            "time_text" if part == "time" else part: [json_text.str.json_path_match(f"$['{key}']") for key in keys]
            for part, keys in layouts.JSON_KEYS.items()
            if part != "message"
        }
        records = records.with_columns(
            raw=pl.coalesce(message.str.strip_chars_end("\r\n"), with_keys(pl.col("in_front"), facts), "raw"),
            layout=pl.when(message.is_not_null()).then(pl.lit(layouts.JSON)).otherwise("layout"),
            **{name: pl.coalesce(name, *ways) for name, ways in parts.items()},
        ).drop("json_text", "said", "has_said", "in_front")
    return records
