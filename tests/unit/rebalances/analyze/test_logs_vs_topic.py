"""Logs against the topic, the timeline's stretches, its pictures: on small accounts of one group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from kit.errors import InputError
from kit.groups.show import charts, display
from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.logs_vs_topic import source_differences
from kit.rebalances.analyze.remarks import log_remarks
from kit.rebalances.analyze.spans import generation_spans, member_spans
from kit.rebalances.analyze.stored import topic_rebalances
from kit.rebalances.analyze.story import sentences
from kit.rebalances.show.rebalance_charts import churn_chart, rebalance_timeline
from kit.rebalances.sources import MAX_SENTENCES, Rebalances, read_rebalances
from kit.tables import schema as tables
from kit.terminal.moment import moment
from tests.unit.rebalances.analyze.records import AT, logged, rebalance, stored_generations

NO_EPOCHS = pl.DataFrame(tables.GROUP_EPOCHS.schema.empty_table())


LOGS = logged(*rebalance("a", 0, 1, ["t-0", "t-1"]), *rebalance("a", 10, 2, ["t-0"]), *rebalance("b", 9, 2, ["t-1"]))
TOPIC = stored_generations(("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"a-1": ["t-0"], "b-1": ["t-1"]}))


def found(events: pl.DataFrame, records: pl.DataFrame) -> list[tuple[str, str | None]]:
    return source_differences(events, records, NO_EPOCHS).select("finding", "consumer").rows()


def test_two_sources_that_agree():
    assert found(LOGS, TOPIC) == []


@pytest.mark.parametrize(
    ("records", "differences"),
    [
        (stored_generations(("g", 1, {"a-1": ["t-0", "t-1"]})), [("not_stored", None)]),
        (
            stored_generations(("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"a-1": ["t-1"], "b-1": ["t-0"]})),
            [("other_assignment", "a-1"), ("other_assignment", "b-1")],
        ),
        (
            stored_generations(("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"a-1": ["t-0", "t-1"]})),
            [("unknown_member", "b-1"), ("other_assignment", "a-1")],
        ),
        (
            stored_generations(("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"b-1": ["t-1"], "a-1": ["t-0"]})),
            [("other_leader", None)],
        ),
    ],
)
def test_differences_are_named(records, differences):
    assert found(LOGS, records) == differences
    sentences = source_differences(LOGS, records, NO_EPOCHS)["sentence"].to_list()
    assert all(sentence.startswith("Group g: generation ") for sentence in sentences)


def test_generations_without_a_log_count_between_the_first_and_the_last_that_have_one():
    some = LOGS.filter(pl.col("line").is_in([1, 2, 3, 4]))
    later = logged(*rebalance("a", 0, 1, ["t-0", "t-1"]), *rebalance("a", 30, 3, ["t-0"]))
    three = stored_generations(
        ("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"a-1": []}), ("g", 3, {"a-1": ["t-0"]}), ("g", 4, {"a-1": []})
    )
    assert found(some, three) == []
    assert found(later, three) == [("not_logged", None)]


def test_a_group_of_the_logs_alone_is_compared_with_nothing():
    assert found(LOGS, stored_generations(("other", 1, {"x": ["t-0"]}))) == []


def test_the_stretches_of_a_member():
    spans = member_spans(member_rebalances(LOGS), rebalances(LOGS), until=AT + timedelta(seconds=60))
    mine = spans.filter(member="a").select("generation", "phase", "began_at", "ended_at", "partitions").rows()
    at = [AT + timedelta(seconds=second) for second in (0, 2, 3, 10, 12, 13, 60)]
    assert mine == [
        (1, "joining", at[0], at[1], "t-0, t-1"),
        (1, "syncing", at[1], at[2], "t-0, t-1"),
        (1, "holding", at[2], at[3], "t-0, t-1"),
        (2, "joining", at[3], at[4], "t-0"),
        (2, "syncing", at[4], at[5], "t-0"),
        (2, "holding", at[5], at[6], "t-0"),
    ]


def test_a_member_that_left_holds_nothing_any_more():
    left = ("b", 20, "left", {"member_id": "b-1", "generation": 2})
    lines = [*rebalance("a", 0, 1, ["t-0"]), *rebalance("a", 10, 2, ["t-0"]), *rebalance("b", 10, 2, ["t-1"])]
    events = logged(*lines, left, *rebalance("a", 21, 3, ["t-0", "t-1"]))
    groups = rebalances(events).with_columns(
        left=pl.when(generation=3).then(pl.lit(["b-1"])).otherwise("left"),
    )
    spans = member_spans(member_rebalances(events), groups, until=AT + timedelta(seconds=60))
    (held,) = spans.filter(member="b", phase="holding").select("began_at", "ended_at").rows()
    assert held == (AT + timedelta(seconds=13), AT + timedelta(seconds=20)), "until it left, by its own log"


def test_the_stretches_of_the_topic():
    spans = generation_spans(
        stored_generations(("g", 1, {"a": ["t-0"]}), ("g", 2, {"a": [], "b": ["t-0"]}), ("g", None, {}))
    )
    assert spans.select("member", "generation", "phase", "began_at", "ended_at").rows() == [
        ("a", 1, "holding", AT, AT + timedelta(seconds=1)),
        ("a", 2, "holding nothing", AT + timedelta(seconds=1), AT + timedelta(seconds=2)),
        ("b", 2, "holding", AT + timedelta(seconds=1), AT + timedelta(seconds=2)),
    ]


def test_partitions_that_no_one_fetches():
    """The log shows that one partition's offset was asked for, and nothing of the other one."""
    asked = ("a", 4, "offsets_fetching", {"partitions": ["t-0"]})
    lines = [*rebalance("a", 0, 1, ["t-0", "t-1"]), asked]
    later = rebalance("b", 60, 2, ["t-1"])
    (row,) = log_findings(logged(*lines, *later)).filter(finding="not_fetched").rows(named=True)
    assert "a was assigned t-1 in generation 1 and requested no committed offsets of them" in row["sentence"]
    assert "not_fetched" not in set(log_findings(logged(*lines))["finding"]), "the log ends too early to tell"
    both = [*lines, ("a", 5, "offsets_fetching", {"partitions": ["t-1"]}), *later]
    assert "not_fetched" not in set(log_findings(logged(*both))["finding"])


@pytest.mark.parametrize(("source", "is_found"), [("java", True), ("kafka-python", False)])
def test_kafka_python_continues_where_it_was(source, is_found):
    asked_again = ("a", 15, "offsets_fetching", {"partitions": ["t-1"]})
    revoked = ("a", 10, "revoked", {"partitions": ["t-0"]})
    lines = [*rebalance("a", 0, 1, ["t-0"]), revoked, *rebalance("a", 10, 2, ["t-0", "t-1"]), asked_again]
    events = logged(*lines, *rebalance("b", 60, 3, [])).with_columns(source=pl.lit(source))
    assert ("not_fetched" in set(log_findings(events)["finding"])) == is_found


def test_pictures_show_each_member_phase_and_generation():
    drawn = charts.svg(rebalance_timeline(member_spans(member_rebalances(LOGS), rebalances(LOGS))))
    for text in ("joining", "syncing", "holding", ">a<", ">b<", ">1<", ">2<"):
        assert text in drawn
    churned = charts.svg(churn_chart(rebalances(LOGS)))
    assert "partitions moved" in churned
    assert "members joined" in churned
    assert "nothing to show" in charts.svg(
        rebalance_timeline(member_spans(member_rebalances(LOGS.head(0)), rebalances(LOGS.head(0))))
    )
    assert "nothing to show" in charts.svg(churn_chart(topic_rebalances(TOPIC.head(0))))


OF_NO_ZONE = logged(
    *rebalance("a", 0, 1, ["t-0", "t-1"]),
    *rebalance("a", 10, 3, ["t-0"]),
    *rebalance("b", 10, 3, ["t-1"]),
    ("a", 20, "commit_failed", {}),
).with_columns(observed_at=pl.lit(None, pl.Datetime("us", "UTC")))


def test_times_of_an_unknown_zone_do_not_pass_for_utc():
    members, groups, found = member_rebalances(OF_NO_ZONE), rebalances(OF_NO_ZONE), log_findings(OF_NO_ZONE)
    assert found["finding"].to_list() == ["skipped_generation", "commit_failed"]
    told = sentences(members, groups, log_remarks(OF_NO_ZONE), found)
    assert len(told) == 7
    assert all(each.startswith("2026-11-21 06:30:") and " (as printed) Group g: " in each for each in told)
    shown = display.table(members.select("is_utc", "started_at")).to_html()
    pictures = [charts.svg(rebalance_timeline(member_spans(members, groups))), charts.svg(churn_chart(groups))]
    for each in (shown, *pictures):
        assert "as printed)" in each
        assert "UTC" not in each


def test_a_picture_of_several_days_reports_which():
    days = logged(*rebalance("a", 0, 1, ["t-0"]), *rebalance("a", 3 * 86_400, 2, ["t-0"]))
    drawn = charts.svg(rebalance_timeline(member_spans(member_rebalances(days), rebalances(days))))
    assert "2026-11-23 00:00" in drawn
    same_day = charts.svg(rebalance_timeline(member_spans(member_rebalances(LOGS), rebalances(LOGS))))
    assert "2026-11-21" not in same_day.split("mark-rect")[0]


def test_times_that_are_known_are_utc_beside_those_that_are_not():
    without_a_time = ("c", 6, "coordinator_found", {"observed_at": None, "local_at": None})
    both = pl.concat([OF_NO_ZONE, logged(without_a_time, *rebalance("c", 5, 2, ["t-1"]))])
    members = member_rebalances(both)
    assert set(members.select("consumer", "is_utc").rows()) == {("a", False), ("b", False), ("c", True)}
    assert "time (UTC, or as printed)" in charts.svg(rebalance_timeline(member_spans(members, rebalances(both))))
    shown = display.table(members.select("is_utc", "started_at")).to_html()
    assert "06:30:05 UTC" in shown
    assert "06:30:10 (as printed)" in shown


def test_moments_as_people_write_them():
    assert moment("") is None
    assert moment("2026-11-21T06:30") == AT
    assert moment("2026-11-21T08:30+02:00") == AT
    assert timedelta(minutes=89) < datetime.now(UTC) - moment("90m") < timedelta(minutes=91)
    with pytest.raises(InputError, match="'yesterday' is neither a time such as"):
        moment("yesterday")


def test_nothing_to_read_is_refused():
    with pytest.raises(InputError, match="name what to read"):
        read_rebalances(None)


def test_a_long_story_is_cut_and_keeps_what_is_out():
    many = logged(*(line for number in range(600) for line in rebalance("a", number * 10, number + 1, ["t-0"])))
    findings = source_differences(many, TOPIC, NO_EPOCHS)
    nothing = topic_rebalances(TOPIC.head(0))
    frames = (member_rebalances(many), rebalances(many), nothing, log_remarks(many), findings, pl.DataFrame())
    story = Rebalances(*frames, many, TOPIC, NO_EPOCHS, None, None).describe()
    assert len(story) == MAX_SENTENCES + 1
    assert any("more sentences are left out: name a group, or a shorter time" in each for each in story)
    assert story[-1] == findings["sentence"][-1]
