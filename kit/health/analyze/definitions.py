"""Lag as twelve tools define it, on the same offsets; and in sentences, why they disagree.

The definitions are from the tools' sources and documentation. Differences by *when* a tool reads are not shown here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import narwhals as nw
from narwhals.typing import FrameT

from kit.errors import InputError
from kit.health.analyze.windows import PARTITION
from kit.text.sentences import counted, words

NOTHING, HIDDEN, BESIDE, MINUS_ONE, RETAINED, HISTORY = (
    "no number",
    "not listed",
    "no number beside a commit",
    "-1",
    "the retained log",
    "the whole history",
)
"""The display of a partition in which the group has no commit. Tools with ``BESIDE`` or ``MINUS_ONE`` list it only
if the group has a commit of another partition of the topic.
"""
_BESIDE_A_COMMIT = (BESIDE, MINUS_ONE)


@dataclass(frozen=True)
class Definition:
    """``is_clamped``: a negative lag is shown as 0. ``is_retained``: records that were deleted unread don't count.

    ``sums_negative``: a negative lag is part of the tool's sums. ``source``: repository, commit and its date, in which
    this was read, and since when it is so; empty: by running the tool.
    """

    title: str
    no_commit: str
    is_clamped: bool = False
    is_retained: bool = False
    sums_negative: bool = True
    source: str = ""


DEFINITIONS = {
    "kafka": Definition("kafka-consumer-groups", NOTHING),
    "burrow": Definition("Burrow", HIDDEN, is_clamped=True, source="linkedin/Burrow ced55ba of 2025-10-03"),
    "kminion": Definition("KMinion", HIDDEN, is_clamped=True, source="redpanda-data/kminion 4f3867a of 2026-08-17"),
    "kafka-lag-exporter": Definition(
        "kafka-lag-exporter", NOTHING, is_clamped=True, source="seglo/kafka-lag-exporter 3fcb3c7 of 2023-01-15"
    ),
    "kafka_exporter": Definition("kafka_exporter", MINUS_ONE, source="danielqsj/kafka_exporter 953e2f1 of 2026-01-08"),
    "cmak": Definition("CMAK", NOTHING, source="yahoo/CMAK 30abfde of 2022-12-12"),
    "akhq": Definition(
        "AKHQ/kafbat UI", NOTHING, source="tchiotludo/akhq 91aa445 of 2025-02-16, kafbat/kafka-ui ab8c9ce of 2026-07-31"
    ),
    "console": Definition(
        "Redpanda Console",
        BESIDE,
        is_clamped=True,
        source="redpanda-data/console 12ba56d of 2026-08-21; not listed before 9a705e0 of 2026-05-25",
    ),
    "kafdrop": Definition(
        "Kafdrop",
        RETAINED,
        is_retained=True,
        sums_negative=False,
        source="obsidiandynamics/kafdrop dd68ef7 of 2026-06-18",
    ),
    "franz-go": Definition(
        "franz-go/rpk",
        RETAINED,
        is_clamped=True,
        source="twmb/franz-go adb3a18 of 2026-08-04; a negative lag was shown before c46b0f8 of 2024-05-26",
    ),
    "datadog": Definition(
        "Datadog",
        HIDDEN,
        is_clamped=True,
        source="DataDog/integrations-core pull request 22679 of 2026-02-18; a negative lag was shown before (0170599)",
    ),
    "unskript": Definition("unSkript", HISTORY, source="unskript/Awesome-CloudOps-Automation 740f230 of 2025-05-28"),
}


@nw.narwhalify
def lag_as(partition_lag: FrameT, tool: str) -> FrameT:
    """The lag that a tool would show for the same offsets.

    Args:
        partition_lag: rows of ``kit.analyze.partition_lag``.
        tool: a key of ``DEFINITIONS``.

    Columns:
        group_id, store, topic, partition: the key.
        tool: as asked for.
        lag: in records; null: it shows none, or an offset is not known.
        summed_lag: what of it enters the tool's sums: the -1 of kafka_exporter and a negative lag of Kafdrop do not.
        is_listed: whether the tool lists the partition at all; a tool that sees commits alone does not list one
            without. kafka_exporter and Redpanda Console list it if the group has a commit of another partition of the
            topic.

    Raises:
        InputError: there is no such tool.

    The log begins at 70 and ends at 100; the group committed 40:

    >>> import polars as pl
    >>> row = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0, "committed_offset": 40,
    ...        "log_start_offset": 70, "log_end_offset": 100, "has_no_commit": False}
    >>> [lag_as(pl.DataFrame(row), tool)["lag"][0] for tool in ("kafka", "kafdrop")]
    [60, 30]
    """
    if tool not in DEFINITIONS:
        raise InputError(f"there is no tool {tool!r}; there are {', '.join(DEFINITIONS)}")
    rows: FrameT = partition_lag.select(*PARTITION, **_columns(tool))
    return rows


@nw.narwhalify
def lag_definitions(partition_lag: FrameT) -> FrameT:
    """The lag that each tool would show for the same offsets: :func:`lag_as` of every tool, one below the other.

    Columns:
        group_id, store, topic, partition, tool: the key; the tool is one of ``DEFINITIONS``.
        lag, summed_lag, is_listed: as in :func:`lag_as`.

    The log begins at 70 and ends at 100; the group committed 40:

    >>> import polars as pl
    >>> row = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0, "committed_offset": 40,
    ...        "log_start_offset": 70, "log_end_offset": 100, "has_no_commit": False}
    >>> rows = lag_definitions(pl.DataFrame(row))
    >>> rows.filter(pl.col("tool").is_in(["kafka", "kafdrop"])).sort("tool").select("tool", "lag", "is_listed").rows()
    [('kafdrop', 30, True), ('kafka', 60, True)]
    """
    # In one pass: twelve copies of a Spark plan would be twelve times its joins.
    lags = {tool: _columns(tool)["lag"] for tool in DEFINITIONS}
    kept = [*PARTITION, "has_no_commit", "has_topic"]
    rows = partition_lag.select(*PARTITION, "has_no_commit", has_topic=_has_topic(), **lags)
    rows = rows.unpivot([*DEFINITIONS], index=kept, variable_name="tool", value_name="lag")
    has_none, tool = nw.col("has_no_commit"), nw.col("tool")
    is_hidden, is_minus_one = tool.is_in(_tools(HIDDEN)), tool.is_in(_tools(MINUS_ONE))
    is_beside = tool.is_in([name for kind in _BESIDE_A_COMMIT for name in _tools(kind)])
    leaves_out = tool.is_in([name for name, each in DEFINITIONS.items() if not each.sums_negative])
    is_left_out = (is_minus_one & has_none) | (leaves_out & (nw.col("lag") < 0).fill_null(False))
    return rows.select(
        *PARTITION,
        "tool",
        "lag",
        summed_lag=nw.when(~is_left_out).then(nw.col("lag")),
        is_listed=~((is_hidden | (is_beside & ~nw.col("has_topic"))) & has_none),
    )


@nw.narwhalify
def lag_explained(partition_lag: FrameT) -> FrameT:
    """Return whether the tools agree about each partition, and why not.

    Columns:
        group_id, store, topic, partition: the key.
        is_agreed: all tools show the same number; null where an offset is not known.
        sentence: what they show, and why.

    >>> import polars as pl
    >>> row = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0, "committed_offset": 40,
    ...        "log_start_offset": 70, "log_end_offset": 100, "has_no_commit": False, "error": None}
    >>> print(lag_explained(pl.DataFrame(row, schema_overrides={"error": pl.String}))["sentence"][0])
    30 records were deleted before the group read them: Kafdrop shows the 30 that still exist; the other tools show 60.
    """
    start, end, committed = nw.col("log_start_offset"), nw.col("log_end_offset"), nw.col("committed_offset")
    raw = end - committed
    agreed = words("All tools show ", counted(raw, "record"), ".")
    deleted = words(
        counted(start - committed, "record was", "records were"),
        " deleted before the group read them: ",
        _titles(lambda each: each.is_retained),
        " shows the ",
        end - start,
        " that still exist; the other tools show ",
        raw,
        ".",
    )
    negative = words(
        "The committed offset is ",
        counted(committed - end, "record"),
        " beyond the end of the log: the topic was created again or lost records, or an operator set the offset. ",
        _titles(lambda each: each.is_clamped),
        " show 0, the other tools ",
        raw,
        ".",
    )
    uncommitted = words(
        "No offset is committed: ",
        *(f"{_titles_where(no_commit)} {verb}; " for no_commit, verb in _UNCOMMITTED.items()),
        _titles_where(RETAINED),
        " show the retained log, ",
        end - start,
        "; ",
        _titles_where(HISTORY),
        " shows the whole history, ",
        end,
        ".",
    )
    unknown = words("The lag is unknown: ", nw.coalesce(nw.col("error"), nw.lit("the log's offsets were not read")))
    is_unknown = end.is_null() | start.is_null() | (committed.is_null() & ~nw.col("has_no_commit"))
    odd = nw.when(is_unknown).then(unknown).when(nw.col("has_no_commit")).then(uncommitted)
    sentence = odd.when(raw < 0).then(negative).when(start > committed).then(deleted).otherwise(agreed)
    is_odd = nw.col("has_no_commit") | (raw < 0).fill_null(False) | (start > committed).fill_null(False)
    return partition_lag.select(*PARTITION, is_agreed=nw.when(~is_unknown).then(~is_odd), sentence=sentence)


_UNCOMMITTED = {
    NOTHING: "show no number",
    HIDDEN: "do not list the partition",
    BESIDE: "shows no number if another partition of the topic has a commit, and otherwise does not list the partition",
    MINUS_ONE: "shows -1 if another partition of the topic has a commit, and otherwise does not list the partition",
}


def _has_topic() -> nw.Expr:
    """Return whether the group has a commit of any partition of the topic."""
    has_commit = (~nw.col("has_no_commit")).cast(nw.Int64)
    return has_commit.max().over("group_id", "store", "topic") > 0


def _columns(tool: str) -> dict[str, nw.Expr]:
    each = DEFINITIONS[tool]
    start, end, committed = nw.col("log_start_offset"), nw.col("log_end_offset"), nw.col("committed_offset")
    behind = end - (nw.when(start > committed).then(start).otherwise(committed) if each.is_retained else committed)
    shown = nw.when(behind < 0).then(nw.lit(0, nw.Int64)).otherwise(behind) if each.is_clamped else behind
    without = {
        MINUS_ONE: nw.when(~end.is_null() & _has_topic()).then(nw.lit(-1, nw.Int64)),
        RETAINED: end - start,
        HISTORY: end,
    }.get(each.no_commit, nw.lit(None, nw.Int64))
    has_none = nw.col("has_no_commit")
    lag = nw.when(has_none).then(without).otherwise(shown)
    summed = nw.when(~has_none).then(shown) if each.no_commit == MINUS_ONE else lag
    listed = {HIDDEN: ~has_none, **{kind: ~has_none | _has_topic() for kind in _BESIDE_A_COMMIT}}
    return {
        "tool": nw.lit(tool),
        "lag": lag,
        "summed_lag": summed if each.sums_negative else nw.when(lag >= 0).then(lag),
        "is_listed": listed.get(each.no_commit, nw.lit(True)),
    }


def _tools(no_commit: str) -> list[str]:
    return [tool for tool, each in DEFINITIONS.items() if each.no_commit == no_commit]


def _titles_where(no_commit: str) -> str:
    return _titles(lambda each: each.no_commit == no_commit)


def _titles(is_one: Callable[[Definition], bool]) -> str:
    titles = [each.title for each in DEFINITIONS.values() if is_one(each)]
    return " and ".join([", ".join(titles[:-1]), titles[-1]]) if len(titles) > 1 else titles[0]
