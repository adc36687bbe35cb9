"""Which lines matter, cheaply; which belong together: lists and blocks over several lines, two-line records.

A line is first held against a few fixed texts; a regular expression on every line would be ten times slower than
counting them. Only what is left is looked at closely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from kit.logs.layouts import JUL, JUL_HEADER, LIBRDKAFKA, MONTHS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MARKS = (
    "dinator",
    "group ",
    "Group",
    "Member",
    "g group",
    "generation",
    "Reconcil",
    "d partitions",
    "ommit",
    "etting offset",
    "balanc",
    "beat",
    "metadata ",
    "kafka.consumer.",
    "ConsumerConnector",
    "ubscribe",
    "%7|",
)
"""One of them is in every line about coordination, in its text or in the name of its class. Each costs a walk over the
line, so they are few; a set of beginnings beside them was measured to be slower, why is not known."""
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


def is_candidate(line: Column) -> Column:
    """Lines that may tell an event; true for all that do, and for not many others."""
    begins = line.startswith("%") | F.substring(line, 1, 3).isin(*MONTHS)
    # Over bytes Spark walks three times as fast as over the same text; written out, these tests make its code so long
    # that the JVM doesn't compile it.
    marks = F.array(*[F.lit(mark.encode()) for mark in _MARKS])
    return begins | F.exists(marks, lambda mark: F.contains(line.cast("binary"), mark))


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
