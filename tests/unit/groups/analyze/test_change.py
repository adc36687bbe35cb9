"""Two snapshots are compared."""

from __future__ import annotations

import polars as pl
import pytest

from kit import analyze


def lags(*rows: tuple[int | None, int, int]) -> pl.DataFrame:
    """(committed, log end, partition) of one group in Kafka."""
    return pl.DataFrame(
        [
            {
                "group_id": "g",
                "store": "kafka",
                "topic": "t",
                "partition": partition,
                "member_id": "m",
                "committed_offset": committed,
                "log_end_offset": end,
                **dict.fromkeys(("lag", "lag_retained"), None if committed is None else max(0, end - committed)),
                "is_stale": False,
            }
            for committed, end, partition in rows
        ],
        schema_overrides=dict.fromkeys(("committed_offset", "lag", "lag_retained"), pl.Int64),
    )


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((5, 10), (8, 12), "moving"),
        ((5, 10), (5, 12), "stalled"),
        ((5, 10), (5, 10), "stalled"),
        ((10, 10), (10, 10), "idle"),
        ((5, 10), (3, 10), "rewound"),
        ((None, 10), (5, 10), "unknown"),
        ((5, 10), (None, 10), "unknown"),
    ],
)
def test_members_that_read_on_are_found(before, after, verdict):
    (row,) = analyze.partition_progress(lags((*before, 0)), lags((*after, 0))).to_dicts()
    assert row["verdict"] == verdict
    assert row["produced"] == after[1] - before[1]


def test_partitions_of_one_snapshot_only_are_left_out():
    rows = analyze.partition_progress(lags((5, 10, 0), (5, 10, 1)), lags((6, 10, 1), (6, 10, 2)))
    assert rows["partition"].to_list() == [1]


def test_a_store_that_no_one_uses_is_not_stalled():
    left = lags((5, 10, 0)).with_columns(is_stale=pl.lit(True))
    assert analyze.partition_progress(lags((5, 10, 0)), left).is_empty()


def test_if_retention_deleted_all_that_was_unread_nothing_stalls():
    emptied = lags((5, 10, 0)).with_columns(lag_retained=pl.lit(0, pl.Int64))
    assert analyze.partition_progress(lags((5, 10, 0)), emptied)["verdict"].to_list() == ["idle"]


def test_lag_change_keeps_groups_of_either_snapshot():
    before = pl.DataFrame({"group_id": ["gone", "stays"], "store": ["kafka"] * 2, "lag": [4, 7]})
    after = pl.DataFrame({"group_id": ["stays", "new"], "store": ["kafka"] * 2, "lag": [2, 1]})
    rows = analyze.lag_change(before, after).sort("group_id")
    assert rows.rows() == [
        ("gone", "kafka", 4, None, None),
        ("new", "kafka", None, 1, None),
        ("stays", "kafka", 7, 2, -5),
    ]


def test_findings_are_counted_with_an_example():
    findings = pl.DataFrame(
        {"group_id": ["a", "a", "b"], "finding": ["x", "x", "x"], "sentence": ["second", "first", "only"]}
    )
    rows = analyze.finding_summary(findings).sort("group_id").rows()
    assert rows == [("a", "x", 2, "first"), ("b", "x", 1, "only")]
