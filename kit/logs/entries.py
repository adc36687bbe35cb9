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
_LABELS = {
    "assigned": r"^\s*(?:now assigned|Assigned) partitions(?:| \(all\)):\s*(.*)$",
    "owned": r"^\s*(?:compare with previously owned|Current owned) partitions:\s*(.*)$",
    "added": r"^\s*(?:newly added partitions|Added partitions \(assigned - owned\)):\s*(.*)$",
}
_LISTED = r"^\s+([\w.-]+) \[(\d+)\]"
_TOPIC_PARTITION = r"([\w.-]+-\d+)(?![\w.-])"
_FAR = 12
"""So many lines behind its entry a labelled line may stand."""


def looks_like_coordination(message: str, logger: str) -> str:
    """Whether a line of unknown wording should have been known: by its words, or by the class that wrote it."""
    return f"{message} RLIKE {sql.regex(_LOOKS)} OR {logger} RLIKE {sql.regex(_CLASSES)}"


def with_neighbours() -> str:
    """What lines around an entry say of it; what is no entry is dropped.

    Behind it: lists of partitions → ``assigned``, ``owned``, ``added`` (a Java client's block) and ``listed``
    (librdkafka's list). Before it: java.util.logging's time and class.
    """
    here = {f"{name}_here": f"if(layout IS NULL, {_labelled(label)}, NULL)" for name, label in _LABELS.items()}
    is_item = f"layout = '{LIBRDKAFKA}' AND message RLIKE {sql.regex(_LISTED)}"
    topic, partition = (sql.extracted("message", _LISTED, n) for n in (1, 2))
    # librdkafka's threads write at the same time: a list is behind the line of its own handle.
    here["stream"] = f"if(layout = '{LIBRDKAFKA}', concat_ws('|', client_id, logger), NULL)"
    here["item"] = f"if({is_item}, {topic} || '-' || {partition}, NULL)"
    above, own = "PARTITION BY file, origin, stream ORDER BY line, record", "PARTITION BY file, origin, entry"
    gathered = {name: f"max(if(is_near, {name}_here, NULL)) OVER ({own})" for name in _LABELS}
    is_header = f"layout = '{JUL}' AND before.line = line - 1 AND before.raw RLIKE {sql.regex(JUL_HEADER)}"
    return f"""
        |> EXTEND {", ".join(sql.named(here))}
        |> EXTEND message IS NOT NULL AND item IS NULL AS is_entry
        |> EXTEND last(if(is_entry, struct(line, record), NULL), true) OVER ({above}) AS entry,
            lag(struct(line, raw)) OVER ({above}) AS before
        |> EXTEND line - entry.line <= {_FAR} AS is_near, if({is_header}, before.raw, NULL) AS header
        |> EXTEND {", ".join(sql.named(gathered))}, collect_list(item) OVER ({own}) AS listed
        |> WHERE is_entry
        |> SET time_text = coalesce(time_text, {sql.extracted("header", JUL_HEADER, 1)}),
            logger = coalesce(logger, {sql.extracted("header", JUL_HEADER, 2)})"""


def _labelled(label: str) -> str:
    partitions = f"regexp_extract_all(regexp_extract(raw, {sql.regex(label)}, 1), {sql.regex(_TOPIC_PARTITION)})"
    return f"if(raw RLIKE {sql.regex(label)}, {partitions}, NULL)"
