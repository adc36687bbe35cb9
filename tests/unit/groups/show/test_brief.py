"""The first lines of a report: what changed, who needs attention, who can leave ZooKeeper, what was not read."""

from __future__ import annotations

import polars as pl
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from kit.groups.analyze.summary import EXPIRING
from kit.groups.show import brief
from kit.groups.show.searchable import Searchable
from kit.groups.show.sparkline import lags_of_late, sparkline
from kit.presentation.headings import heading
from kit.presentation.page import render_html

GROUPS = (
    "group_id",
    "stage",
    "n_members",
    "lag",
    "store_in_use",
    "n_blockers",
    "n_beyond_end",
    "lag_retained",
    "n_partitions",
    "is_unreadable",
)
SUMMARY = pl.DataFrame(
    [
        ("left", "all KC", 2, 0, "kafka", 0, 0, 0, 1, False),
        ("old", "OZKCC", 2, 5, "zookeeper", 0, 0, 5, 1, False),
        ("held", "OZKCC", 1, 0, "zookeeper", 2, 0, 0, 1, False),
        ("nobody", "empty", 0, 40, "kafka", 0, 0, 40, 1, False),
        ("mixed", "unsafe mix", 2, None, None, 1, 0, None, 2, False),
    ],
    GROUPS,
    orient="row",
).with_columns(attention=pl.lit(None, pl.String))
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


def test_the_worst_comes_first_and_offsets_of_the_store_not_in_use_need_no_attention(needing):
    assert needing.rows() == [
        ("no active members", "nobody", None, 40),
        ("unsafe mix", "mixed", None, None),
        ("unowned", "old", 2, 5),
        ("stalled", "old", 1, 5),
        ("lag is growing", "old", None, 5),
    ]
    slightly = CHANGES.with_columns(pl.col("change") - 1)
    assert "lag is growing" not in brief.attention(SUMMARY, FINDINGS, STALLED, slightly)["kind"]
    alone = [each.filter(pl.col("group_id") == "left") for each in (SUMMARY, FINDINGS, CHANGES)]
    assert brief.attention(*alone[:2], STALLED.with_columns(group_id=pl.lit("left")).head(1), alone[2]).is_empty()
    assert brief.by_kind(needing)["n_groups"].to_list() == [1] * 5


def test_the_sentences(needing):
    moved = pl.DataFrame({"group_id": ["old", "held"], "n_partitions": [2, 3], "n_kept": [2, 1]})
    told = brief.brief(SUMMARY, needing, ERRORS, CHANGES, moved, "2026-11-22 08:00 UTC", [*SUMMARY["group_id"], "gone"])
    assert told.sentences == (
        "Since 2026-11-22 08:00 UTC: the lag of 1 group grew, no group caught up, 1 group went;"
        " how the lag of 4 groups changed is unknown.",
        "3 groups need attention: nobody, mixed, old. First: no active members.",
        "1 group can take the next step off ZooKeeper now: old; blockers hold 1 group; 1 group uses Kafka alone.",
        "1 group kept all partitions since last time; held did not.",
        "2 things could not be read. Values that depend on them are unknown, not zero.",
    )
    assert figure(told, "records behind") == ("45", "+100 since last time; of 1 group unknown")


def figure(told: brief.Brief, label: str) -> tuple[str, str]:
    return next((value, note) for name, value, note in told.figures if name == label)


def changed(*changes: int | None) -> brief.Brief:
    """A brief of groups that were there before, whose lag of 10 changed by this; None: it is not known how."""
    names = [f"g{at}" for at in range(len(changes))]
    lags = [None if change is None else 10 + change for change in changes]
    summary = pl.DataFrame(
        {
            "group_id": names,
            "stage": "all KC",
            "n_members": 1,
            "n_beyond_end": 0,
            "n_partitions": 1,
            "is_unreadable": False,
            "lag": lags,
            "lag_retained": lags,
            "store_in_use": "kafka",
            "n_blockers": 0,
            "attention": None,
        },
        schema_overrides={"lag": pl.Int64, "lag_retained": pl.Int64, "attention": pl.String},
    )
    rows = {"group_id": names, "store": "kafka", "lag_before": 10, "lag": lags, "change": list(changes)}
    moved = pl.DataFrame(rows, schema_overrides={"lag": pl.Int64, "change": pl.Int64})
    none = brief.attention(summary, FINDINGS.clear(), STALLED.clear(), moved.clear())
    return brief.brief(summary, none, ERRORS.clear(), moved, None, "then", names)


@pytest.mark.parametrize(
    ("changes", "rest", "behind"),
    [
        ((0, 0, 5), "; the lag of 2 groups is the same", ("35", "+5 since last time")),
        ((5,), "", ("15", "+5 since last time")),
        (
            (5, 0, None, None),
            "; the lag of 1 group is the same; how that of 2 groups changed is unknown",
            ("25", "+5 since last time; of 2 groups unknown"),
        ),
        ((None,), "; how the lag of 1 group changed is unknown", ("unknown", "change unknown; of 1 group unknown")),
    ],
)
def test_a_change_that_is_unknown_is_not_called_none(changes, rest, behind):
    told = changed(*changes)
    n_more = "1 group" if 5 in changes else "no group"
    assert told.sentences[0] == f"Since then: the lag of {n_more} grew, no group caught up{rest}."
    assert figure(told, "records behind") == behind


def test_members_of_groups_that_could_not_be_read_are_unknown():
    summary = SUMMARY.with_columns(n_members=pl.lit(None, pl.Int64))
    none = brief.attention(SUMMARY, FINDINGS.clear(), STALLED.clear(), CHANGES.clear())
    told = brief.brief(summary, none, ERRORS, CHANGES.clear(), None)
    assert figure(told, "members") == ("unknown", "of 5 groups unknown")
    part = summary.with_columns(n_members=pl.Series([2, 1, 0, None, None]))
    assert figure(brief.brief(part, none, ERRORS, CHANGES.clear(), None), "members") == ("3", "of 2 groups unknown")


def test_a_group_that_came_was_not_there_before_whatever_was_known_of_its_lag():
    """``lag_before`` is null also of a group whose lag could not be read, and of one that changed its store."""
    changes = CHANGES.with_columns(lag_before=pl.lit(None, pl.Int64), change=pl.lit(None, pl.Int64))
    none = brief.attention(SUMMARY, FINDINGS.clear(), STALLED.clear(), changes.clear())
    told = brief.brief(SUMMARY, none, ERRORS, changes, None, "then", ["old", "left", "held", "nobody"])
    assert "1 group came; how the lag of 4 groups changed is unknown." in told.sentences[0]


def test_lag_by_kind_is_unknown_where_it_is_of_every_group(needing):
    assert brief.by_kind(needing).filter(kind="unsafe mix")["lag"].to_list() == [None]


def test_a_commit_beyond_the_end_comes_first_with_what_the_consumer_will_do():
    beyond = SUMMARY.with_columns(n_beyond_end=pl.when(pl.col("group_id") == "left").then(1).otherwise(0))
    rows = brief.attention(beyond, FINDINGS, STALLED, CHANGES)
    assert rows.row(0) == ("commit beyond the end", "left", None, 0)
    assert "auto.offset.reset" in brief.by_kind(rows)["remedy"][0]


def test_a_group_whose_offsets_may_expire_needs_attention_as_offramp_groups_reports():
    left = SUMMARY.filter(group_id="left").with_columns(attention=pl.lit(EXPIRING))
    rows = brief.attention(left, FINDINGS.clear(), STALLED.clear(), CHANGES.clear())
    assert rows.rows() == [(EXPIRING, "left", None, 0)]
    assert "offsets.retention.minutes" in brief.by_kind(rows)["remedy"][0]


def test_a_group_whose_unread_records_are_all_deleted_needs_no_attention():
    is_nobody = pl.col("group_id") == "nobody"
    emptied = SUMMARY.with_columns(lag_retained=pl.when(is_nobody).then(0).otherwise("lag_retained"))
    assert "nobody" not in brief.attention(emptied, FINDINGS, STALLED.clear(), CHANGES)["group_id"]


def test_a_group_without_partitions_is_not_counted_as_unknown_and_an_unreadable_one_needs_attention():
    nothing = SUMMARY.with_columns(n_partitions=pl.lit(0), is_unreadable=pl.col("group_id") == "held")
    needing = brief.attention(nothing, FINDINGS.clear(), STALLED.clear(), CHANGES.clear())
    assert ("could not be read", "held", None, 0) in needing.rows()
    figures = {label: change for label, _, change in _brief(nothing, needing).figures}
    assert figures["records behind"] == ""
    assert {label: change for label, _, change in _brief(SUMMARY, needing).figures}["records behind"] != ""


def _brief(summary, needing):
    return brief.brief(summary, needing, ERRORS.clear(), CHANGES.clear(), None)


def test_without_an_earlier_report_nothing_is_reported_of_a_change():
    told = brief.brief(SUMMARY.clear(), brief.attention(SUMMARY.clear(), FINDINGS.clear(), STALLED.clear(),
                       CHANGES.clear()), ERRORS.clear(), CHANGES.clear(), None)  # fmt: skip
    assert told.sentences == (
        "This history holds no earlier report, so no changes can be shown.",
        "Nothing needs attention now.",
        "No group is known to be on the path off ZooKeeper; no group uses Kafka alone.",
        "Everything was read.",
    )


def test_a_report_names_the_right_without_which_groups_are_hidden(needing):
    may_miss = "Groups may be missing here: without DESCRIBE on the cluster, Kafka hides groups from the login."
    for errors, read in ((ERRORS.clear(), "Everything that the login can see was read."), (ERRORS, "2 things could ")):
        told = brief.brief(SUMMARY, needing, errors, CHANGES, None, may_miss=may_miss)
        assert (told.sentences[-2].startswith(read), told.sentences[-1]) == (True, may_miss)
        assert may_miss in told._repr_html_()


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


def test_records_produced_for_a_stalled_group_are_unknown_if_they_are_for_every_partition():
    stalled = pl.DataFrame(
        {"group_id": ["a", "b", "b"], "store": "kafka", "member_id": "m", "produced": [None, 2, None], "lag": [9, 1, 2]}
    )
    assert brief.standing_still(stalled).rows() == [("a", "kafka", "m", 1, None, 9), ("b", "kafka", "m", 2, 2, 3)]


def test_nothing_of_zookeeper_is_reported_of_a_cluster_without_it(needing):
    shown = brief.brief(SUMMARY, needing, ERRORS, CHANGES, None, has_zookeeper=False)
    assert "ZooKeeper" not in str(shown.figures + shown.sentences)
    assert "ZooKeeper" in str(brief.brief(SUMMARY, needing, ERRORS, CHANGES, None).figures)


def test_a_page_leaves_out_the_cells_that_are_tagged_so():
    notebook = new_notebook(cells=[new_markdown_cell("## Lag"), new_markdown_cell("## Stores")])
    notebook.cells[1].metadata["tags"] = ["zookeeper"]
    assert "Stores" in render_html(notebook, "A page")
    assert "Stores" not in render_html(notebook, "A page", "zookeeper")
