"""The first lines of a report: what changed, who needs somebody, who can leave ZooKeeper, what was not read."""

from __future__ import annotations

import polars as pl
import pytest

from kit.show import brief
from kit.show.headings import heading
from kit.show.searchable import Searchable
from kit.show.sparkline import lags_of_late, sparkline

GROUPS = ("group_id", "stage", "n_members", "lag", "store_in_use", "n_blockers")
SUMMARY = pl.DataFrame(
    [
        ("left", "all KC", 2, 0, "kafka", 0),
        ("old", "OZKCC", 2, 5, "zookeeper", 0),
        ("held", "OZKCC", 1, 0, "zookeeper", 2),
        ("nobody", "empty", 0, 40, "kafka", 0),
        ("mixed", "unsafe mix", 2, None, None, 1),
    ],
    GROUPS,
    orient="row",
)
FINDINGS = pl.DataFrame(
    {"group_id": ["old", "old", "left"], "finding": ["unowned", "unowned", "more_threads_than_partitions"]}
)
STALLED = pl.DataFrame({"group_id": ["old", "old", "nobody"], "store": ["zookeeper", "kafka", "kafka"]})
CHANGES = pl.DataFrame(
    {
        "group_id": ["old", "old", "left", "gone"],
        "store": ["zookeeper", "kafka", "zookeeper", "kafka"],
        "lag_before": [2, 700, 100, 1],
        "lag": [102, 700, 900, None],
        "change": [100, 0, 800, None],
    }
)
ERRORS = pl.DataFrame({"error": ["a", "b"]})


@pytest.fixture
def needing():
    return brief.attention(SUMMARY, FINDINGS, STALLED, CHANGES)


def test_what_hurts_most_comes_first_and_offsets_of_the_store_not_in_use_hurt_nobody(needing):
    assert needing.rows() == [
        ("nobody reads", "nobody", None, 40),
        ("unsafe mix", "mixed", None, None),
        ("unowned", "old", 2, 5),
        ("standing still", "old", 1, 5),
        ("falling behind", "old", None, 5),
    ]
    slightly = CHANGES.with_columns(pl.col("change") - 1)
    assert "falling behind" not in brief.attention(SUMMARY, FINDINGS, STALLED, slightly)["kind"]
    alone = [each.filter(pl.col("group_id") == "left") for each in (SUMMARY, FINDINGS, CHANGES)]
    assert brief.attention(*alone[:2], STALLED.with_columns(group_id=pl.lit("left")).head(1), alone[2]).is_empty()
    assert brief.by_kind(needing)["n_groups"].to_list() == [1] * 5


def test_the_sentences(needing):
    moved = pl.DataFrame({"group_id": ["old", "held"], "n_partitions": [2, 3], "n_kept": [2, 1]})
    told = brief.brief(SUMMARY, needing, ERRORS, CHANGES, moved, "2026-11-22 08:00 UTC")
    assert told.sentences == (
        "Since 2026-11-22 08:00 UTC: 1 group fell behind, no group caught up, 1 group went;"
        " the lag of the others is the same.",
        "3 groups need somebody: nobody, mixed, old. First: nobody reads.",
        "1 group can take the next step off ZooKeeper now: old; blockers hold 1 group; 1 group uses Kafka alone.",
        "1 group kept all partitions since last time; held did not.",
        "2 things could not be read: what depends on it is unknown, not zero.",
    )
    assert {label: value for label, value, _ in told.figures}["records behind"] == "45"


def test_without_an_earlier_report_nothing_is_said_of_a_change():
    told = brief.brief(SUMMARY.clear(), brief.attention(SUMMARY.clear(), FINDINGS.clear(), STALLED.clear(),
                       CHANGES.clear()), ERRORS.clear(), CHANGES.clear(), None)  # fmt: skip
    assert told.sentences == (
        "No earlier report is in this history: the next one says what changed.",
        "Nothing needs somebody now.",
        "No group is known to be on the path off ZooKeeper; no group uses Kafka alone.",
        "Everything was read.",
    )


def test_names_are_text_in_the_brief_and_in_the_folded_table():
    hostile = "<img src=x onerror=alert(1)></script>\x1b"
    summary = SUMMARY.with_columns(group_id=pl.lit(hostile))
    needing = brief.attention(summary, FINDINGS.clear(), STALLED.clear(), CHANGES.clear())
    told = brief.brief(summary, needing, ERRORS, CHANGES, None)._repr_html_()
    whole = Searchable(summary, "All")._repr_html_()
    for html in (told, whole[whole.rindex('<table id="all-') :]):
        assert "<img" not in html
        assert "\x1b" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert whole.count("</script>") == whole.count("<script")


def test_headings_are_for_people():
    told = [
        heading(name) for name in ("group_id", "n_unowned", "duration_ms", "n_missing_in_kafka", "Stage", "is_idle")
    ]
    assert told == ["group", "partitions without an owner", "duration, ms", "missing in Kafka", "Stage", "idle"]


def test_lags_over_time_become_a_word():
    recent = pl.DataFrame({"group_id": "g", "store": "kafka", "started_at": [2, 1, 3], "lag": [5, 0, 10]})
    assert lags_of_late(recent).rows() == [("g", "kafka", "▁▅█")]
    assert (sparkline([None, 1]), sparkline([0, 0]), sparkline([])) == ("·█", "▁▁", "")
