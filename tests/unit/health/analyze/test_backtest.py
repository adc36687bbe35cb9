"""Rules judge a night: a consumer that hung, one that died, one that always lags a little."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from kit import analyze
from kit.analyze import AnyRule, BurrowRule, LagRule, SilenceRule
from kit.health.sources import backtest

MINUTE = 60_000
HUNG, DEAD, STEADY = "hung", "dead", "steady"
KEY = {"store": "kafka", "topic": "t", "partition": 0}


def night() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """A record a second for two hours; each group commits each minute.

    From minute 60 to 90 one commits the same offset repeatedly, one commits nothing.
    The third is five records behind all the time.
    """
    commits = []
    for minute in range(120):
        end, is_incident = 60 * minute, 60 <= minute < 90
        for group in (HUNG, DEAD, STEADY):
            if group == DEAD and is_incident:
                continue
            offset = 60 * 60 if group == HUNG and is_incident else end - 5 * (group == STEADY)
            commits.append((group, *KEY.values(), max(0, offset), minute * MINUTE, minute))
    names = {"group_id": pl.String, "store": pl.String, "topic": pl.String, "partition": pl.Int32}
    numbers = dict.fromkeys(("committed_offset", "committed_ms", "order"), pl.Int64)
    ends = {"topic": "t", "partition": 0, "log_end_offset": [30 * at for at in range(240)]}
    incidents = [{"group_id": group, "from_ms": 60 * MINUTE, "until_ms": 90 * MINUTE} for group in (HUNG, DEAD)]
    return (
        pl.DataFrame(commits, schema=names | numbers, orient="row"),
        pl.DataFrame(
            ends | {"sampled_ms": [30_000 * at for at in range(240)]}, schema_overrides={"partition": pl.Int32}
        ),
        pl.DataFrame({"at_ms": [MINUTE * at + 31_000 for at in range(119)]}),
        pl.DataFrame(incidents),
    )


@pytest.fixture(scope="module")
def data():
    return night()


def score(data, rule) -> dict[str, int | None]:
    (row,) = backtest([rule], *data).to_dicts()
    assert row.pop("rule") == repr(rule)
    return row


def test_burrow_catches_both_as_late_as_its_window_is_long(data):
    found = score(data, BurrowRule())
    assert (found["n_incidents"], found["n_caught"], found["n_false_alarms"]) == (2, 2, 0)
    quick = score(data, BurrowRule(intervals=3))
    assert quick["n_caught"] == 2
    assert quick["worst_delay_ms"] < found["worst_delay_ms"]


def test_a_small_steady_lag_is_a_false_alarm_of_its_warnings_unless_it_is_allowed(data):
    assert score(data, BurrowRule(warns=True))["n_false_alarms"] >= 1
    assert score(data, BurrowRule(warns=True, allowed_lag=60))["n_false_alarms"] == 0


def test_a_limit_of_records_is_crossed_when_so_many_came(data):
    """A record a second, 300 allowed: five minutes, to the next observation."""
    found = score(data, LagRule(300))
    assert (found["n_caught"], found["n_false_alarms"]) == (2, 0)
    assert 4 * MINUTE < found["worst_delay_ms"] <= 6 * MINUTE
    later = score(data, LagRule(300, for_ms=3 * MINUTE))
    assert later["worst_delay_ms"] == found["worst_delay_ms"] + 2 * MINUTE
    assert score(data, LagRule(100_000))["n_caught"] == 0


def test_silence_catches_who_died_and_not_who_hangs(data):
    found = score(data, SilenceRule(3 * MINUTE))
    assert (found["n_incidents"], found["n_caught"], found["n_false_alarms"]) == (2, 1, 0)


def one(commits: list[tuple[int, int]], ends: list[tuple[int, int]], *looks: int) -> list[dict[str, Any]]:
    """(offset, minute) of commits, (end, minute) of samples → what silence of half an hour says at these minutes."""
    made = [("g", *KEY.values(), offset, minute * MINUTE, order) for order, (offset, minute) in enumerate(commits)]
    names = ["group_id", *KEY, "committed_offset", "committed_ms", "order"]
    place = {name: KEY[name] for name in ("topic", "partition")}
    sampled = [{**place, "log_end_offset": end, "sampled_ms": minute * MINUTE} for end, minute in ends]
    times = pl.DataFrame({"at_ms": [minute * MINUTE for minute in looks]})
    frames = pl.DataFrame(made, names, orient="row"), pl.DataFrame(sampled), times
    return SilenceRule(30 * MINUTE).verdicts(*frames).sort("at_ms").to_dicts()


def told(rows: list[dict[str, Any]]) -> list[tuple[str | None, int | None]]:
    return [(row["status"], row["since_ms"] and row["since_ms"] // MINUTE) for row in rows]


def test_a_record_after_forty_idle_minutes_is_no_silence():
    """The alarm had begun forty minutes ago, with the last commit, though nothing waited for thirty-nine of them."""
    ends = [(100, minute) for minute in range(40)] + [(101, minute) for minute in range(40, 80)]
    assert told(one([(100, 0)], ends, 39, 40, 69, 70, 79)) == [
        ("OK", None), ("OK", None), (None, None), ("silent", 39), ("silent", 39),
    ]  # fmt: skip


def test_silence_begins_with_the_last_commit_where_records_waited_before():
    ends = [(100 + minute, minute) for minute in range(60)]
    assert told(one([(50, 0), (60, 10)], ends, 39, 40)) == [("OK", None), ("silent", 10)]


def test_a_step_back_makes_records_wait_at_once():
    ends = [(100, minute) for minute in range(60)]
    assert told(one([(100, 0), (40, 10)], ends, 39, 40)) == [("OK", None), ("silent", 10)]


def test_if_ends_were_not_sampled_for_long_it_is_not_known():
    """One end, forty minutes after the commit: the records may have come a second ago."""
    assert told(one([(100, 0)], [(101, 40)], 20, 40, 69, 70)) == [
        ("OK", None),
        (None, None),
        (None, None),
        ("silent", 0),
    ]


def test_a_group_that_reads_all_between_two_observations_begins_again():
    ends = [(100 + minute // 20, minute) for minute in range(80)]
    assert told(one([(100, 0), (101, 25), (102, 45)], ends, 59, 60, 79)) == [("OK", None)] * 3


def test_a_topic_made_again_has_nothing_waiting_until_its_end_passes_the_offset():
    ends = [(100, 0), (5, 1), *((2 * minute, minute) for minute in range(2, 100))]
    assert told(one([(100, 0)], ends, 50, 51, 80, 81)) == [("OK", None), ("OK", None), (None, None), ("silent", 50)]


def test_a_coordinator_whose_clock_was_set_back_is_not_silent():
    """It commits each minute; at minute 60 its clock goes back by forty."""
    commits = [(minute, minute) for minute in range(60)] + [(60 + minute, 20 + minute) for minute in range(20)]
    ends = [(minute + 5, minute) for minute in range(80)]
    assert {status for status, _ in told(one(commits, ends, *range(40, 80)))} == {"OK"}


def test_a_group_that_continues_under_a_new_id_begins_there(data):
    """The old id is an alarm for ever; the new one inherits nothing of it.

    One commit is a window of no length to Burrow, and so a STOP at once: a share of the window is asked for.
    """
    commits, ends, times, _ = data
    renamed = commits.filter(pl.col("group_id") == STEADY).with_columns(
        group_id=pl.when(pl.col("committed_ms") < 60 * MINUTE).then(pl.lit("old")).otherwise(pl.lit("new"))
    )
    for rule in (SilenceRule(3 * MINUTE), LagRule(300), BurrowRule(minimum_complete=0.3)):
        verdicts = rule.verdicts(renamed, ends, times)
        assert verdicts.filter(pl.col("group_id") == "new")["at_ms"].min() > 60 * MINUTE, rule
        alarms = analyze.group_alarms(verdicts)
        assert alarms["group_id"].to_list() == ["old"], rule
        assert alarms["until_ms"].item() == times["at_ms"].max(), rule
        assert 59 * MINUTE <= alarms["since_ms"].item() < alarms["from_ms"].item(), rule


def test_retention_that_was_shortened_changes_no_verdict(data):
    """Rules count from the end: what was deleted unread counts as lag, as Burrow has it. The outlook shows the loss."""
    commits, ends, times, _ = data
    cut = ends.with_columns(log_start_offset=pl.col("log_end_offset") - 1)
    for rule in (SilenceRule(3 * MINUTE), LagRule(300), BurrowRule()):
        found, expected = (rule.verdicts(commits, each, times) for each in (cut, ends))
        assert found.sort("group_id", "at_ms").equals(expected.sort("group_id", "at_ms")), rule


def test_an_alarm_reports_since_when(data):
    """The last commit before the silence, the first of the equal ones that had a lag, the last observation that was
    fine.
    """
    commits, ends, times, _ = data
    begin = 60 * MINUTE
    for rule, group, since_ms in [
        (BurrowRule(), DEAD, begin - MINUTE),
        (BurrowRule(), HUNG, begin + MINUTE),
        (SilenceRule(3 * MINUTE), DEAD, begin - MINUTE),
        (AnyRule((BurrowRule(), SilenceRule(3 * MINUTE))), DEAD, begin - MINUTE),
    ]:
        alarms = analyze.group_alarms(rule.verdicts(commits, ends, times))
        (alarm,) = alarms.filter(pl.col("group_id") == group).to_dicts()
        assert alarm["since_ms"] == since_ms < alarm["from_ms"], (rule, group)
    alarms = analyze.group_alarms(LagRule(300).verdicts(commits, ends, times))
    assert (alarms["from_ms"] - alarms["since_ms"]).to_list() == [MINUTE, MINUTE]


def test_any_of_one_rule_is_that_rule_with_its_mere_warnings_as_ok(data):
    commits, ends, times, _ = data
    one = BurrowRule().verdicts(commits, ends, times).sort("group_id", "at_ms")
    found = AnyRule((BurrowRule(),)).verdicts(commits, ends, times).sort("group_id", "at_ms")
    assert "WARN" in one["status"].to_list()
    assert found["status"].to_list() == one["status"].replace("WARN", "OK").to_list()
    assert found.drop("status").equals(one.drop("status"))


def test_a_search_puts_first_what_catches_all_without_a_false_alarm_and_soonest(data):
    rules = [BurrowRule(intervals, allowed, warns=True) for intervals in (3, 10) for allowed in (0, 60, 100_000)]
    found = backtest([*rules, LagRule(3000)], *data)
    assert found["rule"][0] == repr(BurrowRule(3, 60, warns=True))
    assert found["n_caught"].to_list() == sorted(found["n_caught"], reverse=True)
    assert found["n_caught"][-1] == 0


def test_spans_are_whole_and_follow_each_other(data):
    commits, ends, times, _ = data
    rows = analyze.partition_health(commits, ends, times)
    spans = analyze.verdict_spans(rows).sort("group_id", "from_ms")
    for (_,), each in spans.group_by("group_id"):
        assert each["from_ms"].to_list()[1:] == each["until_ms"].to_list()[:-1]
        assert all(one != other for one, other in zip(each["status"], each["status"][1:]))
    hung = spans.filter(pl.col("group_id") == HUNG)["status"].to_list()
    assert hung[0] == "OK"
    assert "STALL" in hung
    assert hung[-1] == "OK"
    assert "STOP" in spans.filter(pl.col("group_id") == DEAD)["status"].to_list()


def test_an_alarm_that_was_on_before_is_no_delay_and_one_elsewhere_is_false():
    times = {"from_ms": [0, 90, 10], "until_ms": [20, 95, 11], "since_ms": 0, "n_partitions": 1, "max_lag": 1}
    alarms = pl.DataFrame({"group_id": ["a", "a", "b"], "store": "kafka", **times})
    incidents = pl.DataFrame({"group_id": ["a", "c"], "from_ms": [10, 10], "until_ms": [30, 30]})
    outcomes = analyze.incident_outcomes(alarms, incidents).sort("group_id").to_dicts()
    assert [(each["is_caught"], each["delay_ms"]) for each in outcomes] == [(True, 0), (False, None)]
    false = analyze.false_alarms(alarms, incidents).sort("group_id").rows()
    assert [row[:4] for row in false] == [("a", "kafka", 90, 95), ("b", "kafka", 10, 11)]


def test_nothing_is_no_alarm(data):
    commits, ends, times, incidents = data
    (row,) = backtest([BurrowRule()], commits.clear(), ends, times, incidents).to_dicts()
    assert (row["n_incidents"], row["n_caught"], row["worst_delay_ms"], row["n_false_alarms"]) == (2, 0, None, 0)
    assert backtest([], commits, ends, times, incidents).is_empty()


def test_an_alarm_while_no_lag_was_known_reports_it():
    looks = {**KEY, "group_id": "g", "at_ms": [0, MINUTE], "is_alarm": True, "since_ms": 0, "lag": [None, None]}
    alarms = analyze.group_alarms(pl.DataFrame(looks, schema_overrides={"lag": pl.Int64}))
    assert alarms["max_lag"].to_list() == [None]
