"""Which lines look as if they mattered, and which belong together: lists and blocks over several lines, two-line
records."""

from __future__ import annotations

from kit.logs import sql
from kit.logs.layouts import JUL, JUL_HEADER, LIBRDKAFKA

_LOOKS = (
    r"(?i)re-?balanc|join-?group|sync-?group|leave-?group|heart ?beat|coordinator|\bgeneration\b|member ?id"
    r"|(?:assigned|revoked|lost) partitions|consumer group|committed offset"
)
_CLASSES = r"(?:Consumer|Group|Abstract)Coordinator$|Membership\w*Manager$|HeartbeatRequestManager$|^kafka\.coordinator"
_HEADER = sql.regex(JUL_HEADER)
_LABELS = {
    "assigned": r"^\s*(?:now assigned|Assigned) partitions(?:| \(all\)):\s*(.*)$",
    "owned": r"^\s*(?:compare with previously owned|Current owned) partitions:\s*(.*)$",
    "added": r"^\s*(?:newly added partitions|Added partitions \(assigned - owned\)):\s*(.*)$",
    "dropped": r"^\s*(?:revoked partitions|Revoked partitions \(owned - assigned\)):\s*(.*)$",
}
_LISTED = r"^\s+([\w.-]+) \[(\d+)\]"
_TOPIC_PARTITION = r"([\w.-]+-\d+)(?![\w.-])"
_FAR = 12
"""So many lines behind its entry a labelled line may stand."""


def looks_like_coordination(message: str, logger: str) -> str:
    """Whether a line of unknown wording should have been known: by its words, or by the class that wrote it."""
    return f"{message} RLIKE {sql.regex(_LOOKS)} OR {logger} RLIKE {sql.regex(_CLASSES)}"


def with_header_times() -> str:
    """java.util.logging: the time and the class of the line before; that line itself is dropped."""
    header = f"if(layout = '{JUL}' AND before.line = line - 1 AND before.raw RLIKE {_HEADER}, before.raw, NULL)"
    return f"""
        |> EXTEND lag(struct(line, raw)) OVER (PARTITION BY file, origin ORDER BY line, record) AS before
        |> EXTEND {header} AS header
        |> SET time_text = coalesce(time_text, {sql.extracted("header", JUL_HEADER, 1)}),
            logger = coalesce(logger, {sql.extracted("header", JUL_HEADER, 2)})
        |> WHERE NOT raw RLIKE {_HEADER}"""


def with_continuations() -> str:
    """Lists of partitions in the lines behind an entry → the entry's columns ``assigned``, ``owned``, ``added``,
    ``dropped`` (a Java client's block) and ``listed`` (librdkafka's list); those lines themselves are dropped,
    and what is no entry of a log."""
    is_item = f"layout = '{LIBRDKAFKA}' AND message RLIKE {sql.regex(_LISTED)}"
    topic, partition = (sql.extracted("message", _LISTED, n) for n in (1, 2))
    item = f"if({is_item}, {topic} || '-' || {partition}, NULL)"
    said = {f"{name}_here": f"if(layout IS NULL, {_labelled(label)}, NULL)" for name, label in _LABELS.items()}
    # librdkafka's lists follow the line of the same handle; a block follows whatever stands before it.
    stream = f"if(layout = '{LIBRDKAFKA}', concat_ws('|', client_id, logger), NULL)"
    entry = "last(if(is_entry, struct(line, record), NULL), true) OVER (PARTITION BY {} ORDER BY line, record)"
    own = "OVER (PARTITION BY file, origin, entry)"
    gathered = {name: f"max(if(is_near, {name}_here, NULL)) {own}" for name in _LABELS}
    return f"""
        |> EXTEND {", ".join(sql.named(said))}, {stream} AS stream, {item} AS item
        |> EXTEND coalesce({", ".join(said)}) IS NOT NULL AS is_block
        |> EXTEND message IS NOT NULL AND item IS NULL AND NOT is_block AS is_entry
        |> EXTEND if(is_block, {entry.format("file, origin")}, {entry.format("file, origin, stream")}) AS entry
        |> EXTEND line - entry.line <= {_FAR} AS is_near
        |> EXTEND {", ".join(sql.named(gathered))}, collect_list(item) {own} AS listed
        |> WHERE is_entry"""


def _labelled(label: str) -> str:
    partitions = f"regexp_extract_all(regexp_extract(raw, {sql.regex(label)}, 1), {sql.regex(_TOPIC_PARTITION)})"
    return f"if(raw RLIKE {sql.regex(label)}, {partitions}, NULL)"
