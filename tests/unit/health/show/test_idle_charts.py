"""Pictures of groups that nobody uses: every group counts once, and what is unknown says so."""

from __future__ import annotations

import polars as pl

from kit.groups.analyze.idle import DAY_MS
from kit.health.show.idle_charts import commit_ages, group_classes
from kit.presentation.chart import svg

HOUR_MS = DAY_MS // 24
ROWS = pl.DataFrame(
    [
        ("a", "kafka", "active", 0),
        ("b", "kafka", "idle", HOUR_MS),
        ("c", "kafka", "idle", HOUR_MS + 1),
        ("d", "zookeeper", "dead", 400 * DAY_MS),
        ("e", "kafka", None, None),
    ],
    schema={"group_id": pl.String, "store": pl.String, "class": pl.String, "commit_age_ms": pl.Int64},
    orient="row",
)


def counted(chart) -> dict[tuple[str, ...], int]:
    rows = chart.data
    return {tuple(row[name] for name in rows.columns if name != "groups"): row["groups"] for row in rows.to_dicts()}


def test_each_group_counts_once_in_its_store():
    drawn = group_classes(ROWS)
    assert counted(drawn) == {
        ("kafka", "active"): 1,
        ("kafka", "idle"): 2,
        ("zookeeper", "dead"): 1,
        ("kafka", "can't be reported"): 1,
    }
    assert "1 active · 2 idle · 1 dead · 1 can't be reported: of 5 groups in a store" in svg(drawn)


def test_ages_are_in_their_column_and_the_unknown_ones_too():
    drawn = commit_ages(ROWS)
    assert counted(drawn) == {
        ("up to an hour", "active"): 1,
        ("up to an hour", "idle"): 1,
        ("a day", "idle"): 1,
        ("older", "dead"): 1,
        ("unknown", "can't be reported"): 1,
    }
    assert all(text in svg(drawn) for text in (">a week<", ">older<", "Known for 4 of 5 groups"))
