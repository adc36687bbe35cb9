"""Which lines look as if they mattered, and which belong together: lists and blocks over several lines, two-line
records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kit.logs.layouts import JUL, JUL_HEADER, LIBRDKAFKA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LOOKS = (
    r"(?i)re-?balanc|join-?group|sync-?group|leave-?group|heart ?beat|coordinator|\bgeneration\b|member ?id"
    r"|(?:assigned|revoked|lost) partitions|consumer group|committed offset"
)
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


def looks_like_coordination(message: Column, logger: Column) -> Column:
    """Whether a line of unknown wording should have been known: by its words, or by the class that wrote it."""
    by_class = (
        r"(?:Consumer|Group|Abstract)Coordinator$|Membership\w*Manager$|HeartbeatRequestManager$|^kafka\.coordinator"
    )
    return message.rlike(_LOOKS) | F.coalesce(logger.rlike(by_class), F.lit(False))


def with_header_times(lines: DataFrame) -> DataFrame:
    """java.util.logging: the time and the class of the line before; that line itself is dropped."""
    before = Window.partitionBy("file", "origin").orderBy("line", "record")
    header = F.when(F.lag("line").over(before) == F.col("line") - 1, F.lag("raw").over(before))
    is_jul = F.col("layout") == JUL
    lines = lines.withColumn("header", F.when(is_jul & header.rlike(JUL_HEADER), header))
    time, logger = (F.nullif(F.regexp_extract("header", JUL_HEADER, n), F.lit("")) for n in (1, 2))
    lines = lines.withColumn("time_text", F.coalesce("time_text", time))
    lines = lines.withColumn("logger", F.coalesce("logger", logger))
    return lines.where(~F.col("raw").rlike(JUL_HEADER))


def with_continuations(lines: DataFrame) -> DataFrame:
    """Lists of partitions in the lines behind an entry → the entry's columns ``assigned``, ``owned``, ``added``,
    ``dropped`` (a Java client's block) and ``listed`` (librdkafka's list); those lines themselves are dropped."""
    is_list = (F.col("layout") == LIBRDKAFKA) & F.col("message").rlike(_LISTED)
    labels = {name: F.when(F.col("layout").isNull(), _labelled(pattern)) for name, pattern in _LABELS.items()}
    is_block = F.coalesce(*labels.values()).isNotNull()
    lines = lines.withColumns({**labels, "item": F.when(is_list, _item()), "follows": is_list | is_block})
    stream = ["file", "origin", "facility"]
    lines = lines.withColumn("facility", F.when(F.col("layout") == LIBRDKAFKA, F.concat_ws("|", "client_id", "logger")))
    behind = Window.partitionBy(*stream).orderBy("line", "record")
    entry = F.last(F.when(~F.col("follows"), F.struct("line", "record")), ignorenulls=True).over(behind)
    plain = Window.partitionBy("file", "origin").orderBy("line", "record")
    block = F.last(F.when(~F.col("follows"), F.struct("line", "record")), ignorenulls=True).over(plain)
    lines = lines.withColumn("entry", F.when(is_block, block).otherwise(entry))
    near = F.col("line") - F.col("entry.line") <= _FAR
    own = Window.partitionBy("file", "origin", "entry")
    found = {name: F.max(F.when(near, F.col(name))).over(own) for name in _LABELS}
    lines = lines.withColumns({**found, "listed": F.collect_list("item").over(own)})
    return lines.where(~F.col("follows"))


def _labelled(pattern: str) -> Column:
    text = F.nullif(F.regexp_extract("raw", pattern, 0), F.lit(""))
    return F.when(text.isNotNull(), F.regexp_extract_all(F.regexp_extract("raw", pattern, 1), F.lit(_TOPIC_PARTITION)))


def _item() -> Column:
    return F.concat_ws("-", F.regexp_extract("message", _LISTED, 1), F.regexp_extract("message", _LISTED, 2))
