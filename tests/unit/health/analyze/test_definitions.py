"""Lag as twelve tools define it: one case per column of the comparison."""

from __future__ import annotations

import re

import polars as pl
import pytest

from kit import analyze
from kit.errors import InputError

KEY = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0}
TYPES = dict.fromkeys(("committed_offset", "log_start_offset", "log_end_offset"), pl.Int64) | {"error": pl.String}


def rows(committed: int | None, start: int | None, end: int | None, error: str | None = None) -> pl.DataFrame:
    offsets = {"committed_offset": committed, "log_start_offset": start, "log_end_offset": end}
    has_none = committed is None and error is None
    return pl.DataFrame([{**KEY, **offsets, "has_no_commit": has_none, "error": error}], schema_overrides=TYPES)


def shown(frame: pl.DataFrame) -> dict[str, int | str | None]:
    found = {}
    for tool in analyze.DEFINITIONS:
        (row,) = analyze.lag_as(frame, tool).to_dicts()
        found[tool] = row["lag"] if row["is_listed"] else "hidden"
    return found


PLAIN = dict.fromkeys(analyze.DEFINITIONS, 60)
CLAMPING = {"burrow", "kminion", "kafka-lag-exporter", "console", "franz-go", "datadog"}
CASES = {
    "well": ((40, 10, 100), PLAIN, True, "All tools show 60 records."),
    "caught up": ((100, 10, 100), dict.fromkeys(PLAIN, 0), True, "All tools show 0 records."),
    "deleted unread": ((40, 70, 100), PLAIN | {"kafdrop": 30}, False, "30 records were deleted before the group read"),
    "beyond the end": (
        (105, 10, 100),
        {tool: 0 if tool in CLAMPING else -5 for tool in PLAIN},
        False,
        "The committed offset is 5 records beyond the end",
    ),
    "no commit": (
        (None, 70, 100),
        dict.fromkeys(PLAIN)
        | dict.fromkeys(("burrow", "kminion", "console", "kafka_exporter", "datadog"), "hidden")
        | {"kafdrop": 30, "franz-go": 30, "unskript": 100},
        False,
        "No offset is committed: kafka-consumer-groups, kafka-lag-exporter, CMAK and AKHQ/kafbat UI show no number; "
        "Burrow, KMinion and Datadog do not list the partition; Redpanda Console shows no number if another partition "
        "of the topic has a commit, and otherwise does not list the partition; kafka_exporter shows -1 if another "
        "partition of the topic has a commit, and otherwise does not list the partition; Kafdrop and franz-go/rpk show "
        "the retained log, 30; unSkript shows the whole history, 100.",
    ),
    "unknown end": ((40, None, None, "no leader"), dict.fromkeys(PLAIN), None, "The lag is unknown: no leader"),
}


@pytest.mark.parametrize(("offsets", "expected", "is_agreed", "said"), CASES.values(), ids=CASES)
def test_each_tool_shows_its_own(offsets, expected, is_agreed, said):
    frame = rows(*offsets)
    assert shown(frame) == expected
    (row,) = analyze.lag_explained(frame).to_dicts()
    assert row["is_agreed"] is is_agreed
    assert row["sentence"].startswith(said)


def test_the_explained_figures_are_the_shown_ones():
    """Wherever the tools are said to agree they show one number, and nowhere else."""
    for offsets, *_ in CASES.values():
        found = {row["lag"] if row["is_listed"] else "hidden"
                 for row in analyze.lag_definitions(rows(*offsets)).to_dicts()}  # fmt: skip
        is_agreed = analyze.lag_explained(rows(*offsets))["is_agreed"][0]
        assert is_agreed is None or is_agreed == (len(found) == 1)


def test_a_sum_leaves_out_what_is_no_lag():
    frame = pl.concat([rows(40, 10, 100), rows(None, 70, 100)])
    sums = analyze.lag_definitions(frame).group_by("tool").agg(pl.col("summed_lag").sum()).rows()
    assert dict(sums) == PLAIN | {"kafdrop": 90, "franz-go": 90, "unskript": 160}


def test_all_definitions_at_once_are_those_of_each_tool():
    frame = pl.concat([rows(*offsets) for offsets, *_ in CASES.values()])
    one_by_one = pl.concat([analyze.lag_as(frame, tool) for tool in analyze.DEFINITIONS])
    together = analyze.lag_definitions(frame).select(one_by_one.columns)
    assert sorted(together.rows(), key=str) == sorted(one_by_one.rows(), key=str)


def test_kafka_exporter_shows_minus_one_beside_a_commit_of_the_same_topic():
    frame = pl.concat([rows(40, 10, 100), rows(None, 70, 100).with_columns(partition=pl.lit(1, pl.Int64))])
    shown_by = analyze.lag_as(frame, "kafka_exporter").sort("partition")
    assert shown_by.select("lag", "summed_lag", "is_listed").rows() == [(60, 60, True), (-1, None, True)]
    shown_by = analyze.lag_as(frame, "console").sort("partition")
    assert shown_by.select("lag", "summed_lag", "is_listed").rows() == [(60, 60, True), (None, None, True)]


def test_kafdrop_shows_a_negative_lag_and_leaves_it_out_of_its_sums():
    frame = pl.concat([rows(40, 10, 100), rows(105, 10, 100).with_columns(partition=pl.lit(1, pl.Int64))])
    shown_by = analyze.lag_as(frame, "kafdrop").sort("partition")
    assert shown_by.select("lag", "summed_lag").rows() == [(60, 60), (-5, None)]


def test_each_source_has_its_date_but_kafkas_own_which_is_run():
    undated = [tool for tool, each in analyze.DEFINITIONS.items() if not re.search(r" of \d{4}-\d\d-\d\d", each.source)]
    assert undated == ["kafka"]


def test_an_unknown_tool_is_named():
    with pytest.raises(InputError, match="there is no tool 'burow'; there are kafka, burrow"):
        analyze.lag_as(rows(1, 0, 2), "burow")
