"""Pictures of lag and health: what they draw of many rows, and that they say what they leave out."""

from __future__ import annotations

import re

import polars as pl

from kit import analyze
from kit.health.show.health_brief import health_brief
from kit.health.show.health_charts import MAX_LINES, ages_of_groups, hours_heatmap, lag_by_tool, verdict_timeline
from kit.presentation.chart import svg

HOUR_MS = 3_600_000
KEY = {"group_id": "g", "store": "kafka", "topic": "t"}


def test_the_partitions_that_tools_disagree_about_are_drawn_first():
    n = 3 * MAX_LINES
    offsets = {"committed_offset": [40] * (n - 1) + [10], "log_start_offset": 20, "log_end_offset": 1_234_567}
    lag = pl.DataFrame({**KEY, "partition": range(n), **offsets, "has_no_commit": False})
    drawn = svg(lag_by_tool(analyze.lag_definitions(lag)))
    assert f">t-{n - 1}<" in drawn
    assert ">1,234,547<" in drawn  # Kafdrop's
    assert f"{MAX_LINES} of {n} partitions; those on which most tools disagree come first" in drawn


def test_the_tools_fit_beside_each_other_in_a_notebook():
    """JupyterLab leaves 1,000 pixels beside its file browser on a screen of 1,440."""
    offsets = {"committed_offset": 1_000_133, "log_start_offset": 0, "log_end_offset": 100}
    lag = pl.DataFrame({**KEY, "topic": "orders", "partition": range(20), **offsets, "has_no_commit": False})
    drawn = svg(lag_by_tool(analyze.lag_definitions(lag)))
    assert ">-1,000,033<" in drawn
    assert float(re.search(r'<svg[^>]* width="([0-9.]+)"', drawn)[1]) < 1_000


def spans(group: str, *rows: tuple[str, int, int]) -> pl.DataFrame:
    said = [{**KEY, "group_id": group, "partition": 0, "status": s, "from_ms": a, "until_ms": b} for s, a, b in rows]
    return pl.DataFrame(said)


def test_verdicts_are_bars_and_what_happened_is_behind_its_own_group():
    every = pl.concat([spans("a", ("OK", 0, HOUR_MS), ("STOP", HOUR_MS, 2 * HOUR_MS)), spans("b", ("OK", 0, HOUR_MS))])
    incidents = pl.DataFrame({"group_id": ["a", "other"], "from_ms": [0, 0], "until_ms": [HOUR_MS, 1]})
    drawn = svg(verdict_timeline(every, incidents))
    assert all(text in drawn for text in (">OK<", ">STOP<", ">a · t-0<", ">b · t-0<", "Grey: event in the group"))
    assert "other" not in drawn
    assert "Grey" not in svg(verdict_timeline(every))
    assert "nothing to show" in svg(verdict_timeline(every.clear()))


def test_the_groups_longest_not_well_are_drawn():
    many = pl.concat([spans(f"g{at:03}", ("STOP", 0, at), ("OK", at, 999)) for at in range(MAX_LINES + 5)])
    drawn = svg(verdict_timeline(many))
    assert f"{MAX_LINES} of {MAX_LINES + 5} partitions; those with the longest trouble come first" in drawn
    assert "g044" in drawn
    assert "g001" not in drawn


def test_hours_of_the_groups_with_the_most_lag():
    rows = [{"group_id": f"g{at:03}", "store": "kafka", "hour_ms": hour * HOUR_MS, "max_lag": at}
            for at in range(MAX_LINES + 5) for hour in range(30)]  # fmt: skip
    drawn = svg(hours_heatmap(pl.DataFrame(rows)))
    assert f"{MAX_LINES} of {MAX_LINES + 5} groups; those with the most lag come first" in drawn
    assert "g001" not in drawn
    assert "nothing to show" in svg(hours_heatmap(pl.DataFrame(rows[:1]).with_columns(max_lag=pl.lit(None, pl.Int64))))


def test_a_brief_of_a_quiet_time_and_of_one_observation():
    within = pl.DataFrame({"group_id": ["g"], "over_ms": [0], "unknown_ms": [0], "max_lag": [1]})
    none = pl.DataFrame(schema=dict.fromkeys(("since_ms", "from_ms", "until_ms", "n_partitions", "max_lag"), pl.Int64))
    none = none.with_columns(group_id=pl.lit(""), cause=pl.lit(""), evidence=pl.lit(""))
    quiet = health_brief(within, none, [0, 60_000, 120_000], 1)
    assert quiet.sentences[0] == "From 1970-01-01 00:00:00 UTC to 1970-01-01 00:02:00 UTC, one observation per 1 min."
    assert quiet.sentences[1:] == (
        "No group had an incident by these rules.",
        "The lag of every group was always within 1 record.",
    )
    assert health_brief(within, none, [0], 1).sentences[0] == "1 observation: too few for a trend."
    beyond = pl.DataFrame({"group_id": ["g", "g", "h"]})
    said = health_brief(within, none, [0], 1, beyond).sentences[-1]
    assert said.startswith(
        "3 commits are beyond the end of the log now, so the lag there is 0, but the position is lost: g, h."
    )
    assert "auto.offset.reset" in said


def test_unknown_time_was_not_within_the_target():
    within = pl.DataFrame(
        {"group_id": ["well", "late", "unsure", "unread"], "over_ms": [0, 9, 0, 0], "unknown_ms": [0, 5, 5, 0]}
        | {"max_lag": [1, 50, 1, None]}
    )
    alarm = {"since_ms": 0, "from_ms": 0, "until_ms": 60_000, "n_partitions": 2, "max_lag": None}
    alarms = pl.DataFrame({"group_id": ["unread"], **alarm, "cause": "unknown", "evidence": "none"})
    told = health_brief(within, alarms, [0, 60_000, 120_000], 1)
    assert told.sentences[-1] == (
        "1 of 4 groups were always within 1 record; for 2 this is unknown, because their lag was at times unknown."
    )
    assert "2 partitions, the lag is unknown; cause" in told.sentences[1]
    assert told.figures[-2:] == (("always within target", "1", "groups"), ("lag at times unknown", "3", "groups"))


def test_an_age_without_an_upper_bound_is_distinguished_from_one_with():
    ages = {"lag": [5, 7, 0, None], "lower_ms": [1000, 90_000, 0, None], "upper_ms": [2000, None, 0, None]}
    rows = pl.DataFrame({"group_id": ["young", "old", "well", "unread"], "store": "kafka", **ages})
    drawn = svg(ages_of_groups(rows.with_columns(time_lag_ms=pl.col("lower_ms") + 500)))
    assert all(
        text in drawn for text in (">old<", ">young<", ">between both bounds<", (">lower bound of the age<"), ">1 min<")
    )
    assert "well" not in drawn
    assert "unread<" not in drawn


def test_the_latest_groups_are_drawn():
    n = MAX_LINES + 5
    ages = {"lower_ms": range(n), "upper_ms": range(n), "time_lag_ms": range(n)}
    drawn = svg(ages_of_groups(pl.DataFrame({"group_id": [f"g{at:03}" for at in range(n)], **ages}).with_columns(
        store=pl.lit("kafka"), lag=1
    )))  # fmt: skip
    assert f"{MAX_LINES} of {n} groups; those with the oldest unread record come first" in drawn
    assert "g044" in drawn
    assert "g004" not in drawn
