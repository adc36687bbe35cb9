"""The partitions of a log message, as polars expressions; null where the message lists none."""

from __future__ import annotations

import polars as pl

from kit.rebalances.logs.texts import extracted, first_of, has, regex, replaced

_RUN, _TOPIC_PARTITION = r"[\w.-]+", r"^[\w.-]+-\d+$"
_LISTING = ("assigned", "revoked", "lost", "offsets_fetching", "assignment_acked", "target_received")
_SINGLE = (
    "offset_found",
    "offset_missing",
    "offset_reset",
    "out_of_range",
    "sought",
    "commit_ok",
    "commit_failed",
    "owned",
    "claiming",
)
_SPELLED = (
    (r"TopicPartition\(topic=u?'([^']+)', partition=(\d+)\)", "${1}-${2}"),
    (r"\bpartition (\d+) for topic ([\w.-]+)", "partition ${2}-${1}"),
    (r"Partition\(topic=Topic\(name='([^']+)'\), index=(\d+)\)", "${1}-${2}"),
    (r"([\w.-]+) \[\[(\d+)\]\](?: @?\S+(?: \[-?\d+\])?)?", "${1}-${2}"),
    (r"([\w.-]+)\[(\d+)\]@\w+", "${1}-${2},"),
    (r"([\w.-]+)(?:\([\w-]+\))? ?\[(\d+)(?::(?:#|-?\d+))?\]", "${1}-${2}"),
    (r"([\w.-]+)/(\d+): offset=[^;}]*", "${1}-${2}"),
    (r"provided offset ([\w.-]+-\d+)/.*$", "partition ${1}"),
)
_SAID_OF_PARTITIONS = r" (?:assigned|revoked|to revoke|were lost|incrementally (?:assigned|revoked)):"
_LIST = (
    rf"(?:[Pp]artitions?(?:\(s\))?(?:{_SAID_OF_PARTITIONS}|:)?|TPL|revoking|assignment:?) *"
    r"(?:(?:frozen)?set\()?[\[({\" ]*((?:[\w.-]+-\d+(?:: \d+)?(?:[,;] *)?)*)"
)
_ONE = (
    r"^([\w.-]+-\d+): offset reset",
    r"(?:partitions?|failed for|Response:|owned|claim) +([\w.-]+-\d+)(?:[^\w-]|$)",
)
_COUNTED = (
    r"of \d+ partition\(s\)|for \d+ pending|: \d+ (?:new )?partition\(s\) (?:assigned|revoked)$"
    r"|rebalanced: (?:assigned|revoked)"
)
"""librdkafka has a count in such lines, and lists the partitions in separate lines."""
_NOT_HERE = r": \[\d+(?:, ?\d+)*\]|^(?:Setting newly|Revoking previously) assigned partitions\s*$"
"""Partitions without their topics, or in the lines that follow."""


def partitions_of(message: pl.Expr, kind: pl.Expr) -> pl.Expr:
    """``topic-partition`` as printed, for kinds of events that list partitions; may be an empty list."""
    is_single = kind.is_in(_SINGLE)
    is_listing = kind.is_in(_LISTING) & ~has(message, _COUNTED) & ~has(message, _NOT_HERE)
    text: pl.Expr = pl.when(is_single | is_listing).then(message)
    for pattern, plain in _SPELLED:
        text = replaced(text, pattern, plain)
    listed = partitions_in(text.str.extract(regex(_LIST)).fill_null(""))
    partition = first_of(text, _ONE)
    return (
        pl.when(kind == "rebalance_ended")
        .then(_of_worker(message))
        .when(kind == "member_assigned")
        .then(partitions_in(message.str.extract(regex(r"\bassignedPartitions=\[([^\]]*)\]"))))
        .when(is_listing)
        .then(listed)
        .when(is_single & partition.is_not_null())
        .then(pl.concat_list(partition))
    )


def _of_worker(message: pl.Expr) -> pl.Expr:
    """Return the assignment of a worker of Kafka Connect: ``connector sink``, ``task sink-0``; null: the line lists
    nothing.
    """
    lists = [
        extracted(message, rf"\b{key}=(\[[^\]]*\])").str.strip_chars("[]").str.extract_all(r"[^,\s]+")
        for key in ("connectorIds", "taskIds")
    ]
    names = (pl.lit("connector ") + pl.element(), pl.lit("task ") + pl.element())
    return pl.concat_list([each.list.eval(name) for each, name in zip(lists, names)])


def partitions_in(text: pl.Expr) -> pl.Expr:
    """Every ``topic-partition`` of a text."""
    return text.str.extract_all(regex(_RUN)).list.eval(pl.element().filter(has(pl.element(), _TOPIC_PARTITION)))
