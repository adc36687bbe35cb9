"""Lives of a group: its numbers begin again, and a number means one generation of each life."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from kit.groups.show import charts
from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.spans import generation_spans, member_spans
from kit.rebalances.analyze.stored import topic_rebalances
from kit.rebalances.analyze.story import story
from kit.rebalances.show.rebalance_charts import rebalance_timeline
from tests.unit.rebalances.analyze.records import stored_generations
from tests.unit.rebalances.analyze.test_attempts import log, rebalancing, stable, state


def joins(*numbers: int, client: str = "a", since: int = 0, every: int = 100) -> pl.DataFrame:
    """A classic consumer that joins these generations, one after the other, and has partition t-0 in each."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for place, number in enumerate(numbers):
        at = since + every * place
        rows += [("joining", {"at": at}), ("joined", {"at": at + 3, "generation": number, "member_id": f"{client}-1"})]
        rows.append(("assigned", {"at": at + 4, "partitions": ["t-0"]}))
    return log(*rows, client=client)


def lives(*logs: pl.DataFrame) -> list[tuple[int, int, int | None]]:
    return rebalances(pl.concat(logs)).select("life", "generation", "duration_ms").rows()


def test_a_consumer_s_numbers_that_go_back_begin_another_life():
    assert lives(joins(1, 2, 1)) == [(1, 1, 4000), (1, 2, 4000), (2, 1, 4000)]
    assert member_rebalances(joins(1, 2, 1))["life"].to_list() == [1, 1, 2]


def test_another_consumer_s_number_that_is_long_past_begins_another_life():
    assert lives(joins(1, 2), joins(1, client="b", since=3700)) == [(1, 1, 4000), (1, 2, 4000), (2, 1, 4000)]


def test_a_host_that_prints_a_little_later_is_in_the_same_life():
    rows = rebalances(pl.concat([joins(1, 2, every=10), joins(1, 2, client="b", since=12, every=10)]))
    assert rows.select("life", "generation", "members").rows() == [(1, 1, ["a-1", "b-1"]), (1, 2, ["a-1", "b-1"])]


def test_consumers_of_two_runs_in_step_have_two_lives():
    first, second = [joins(1, 2, client=name) for name in "ab"], [joins(1, 2, client=f"{n}2", since=9100) for n in "ab"]
    rows = rebalances(pl.concat([*first, *second]))
    assert rows.select("life", "generation", pl.col("members").list.len()).rows() == [
        (1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("n_lives", [1, 2, 3])
def test_a_member_that_left_is_counted_in_the_life_that_it_left(n_lives):
    """Host b goes before generation 3 of each life, and begins the next life as another member."""
    stays, goes = ([], [])
    for life in range(n_lives):
        since = 10_000 * life
        stays.append(joins(1, 2, 3, client="a", since=since).with_columns(member_id=_of_life("a", life)))
        left = log(("leaving", {"at": since + 150, "member_id": f"b-{life}"}), client="b")
        goes += [joins(1, 2, client="b", since=since).with_columns(member_id=_of_life("b", life)), left]
    events = pl.concat([_one_file(stays), _one_file(goes)])
    rows = rebalances(events).filter(generation=3).select("life", "left").rows()
    assert rows == [(life + 1, [f"b-{life}"]) for life in range(n_lives)]


def _of_life(client: str, life: int) -> pl.Expr:
    return pl.when(pl.col("member_id").is_not_null()).then(pl.lit(f"{client}-{life}"))


def _one_file(parts: list[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).with_columns(line=pl.int_range(pl.len()) + 1)


def test_a_consumer_that_left_and_came_back_was_not_rebalancing_meanwhile():
    events = pl.concat([joins(1), log(("leaving", {"at": 50}), ("left", {"at": 51}), client="a"), joins(2, since=900)])
    events = events.with_columns(line=pl.int_range(pl.len()) + 1)
    assert lives(events) == [(1, 1, 4000), (1, 2, 4000)]


@pytest.mark.parametrize("after", [0, 1])
def test_dead_ends_a_life(after):
    dead = ("group_dead", {"generation": 1, "text": ""})
    again = [rebalancing(after, "Adding new member b", member_id="b"), stable(after + 1)]
    events = log(rebalancing(0, "x"), stable(1), dead, *again, source="broker")
    assert rebalances(events).select("life", "generation").rows() == [(1, 1), (2 - after, 1 + after)]


def test_a_member_s_old_epoch_is_no_other_life():
    events = pl.concat(
        [
            log(
                state(7, "RECONCILING", "STABLE", at=0), ("reconciling", {"owned_after": ["t-0"], "at": 0}), client="a"
            ),
            log(state(3, "RECONCILING", "STABLE", at=500), ("reconciling", {"owned_after": [], "at": 500}), client="b"),
        ]
    )
    assert set(member_rebalances(events)["life"]) == {1}


def test_an_epoch_that_a_broker_quotes_is_no_other_life():
    fenced = ("member_fenced", {"generation": 2, "member_id": "m"})
    events = log(("epoch_bumped", {"generation": 7}), fenced, ("epoch_bumped", {"generation": 8}), source="broker")
    assert set(rebalances(events)["life"]) == {1}


def test_one_partition_in_two_lives_is_not_owned_twice():
    events = pl.concat([joins(1, 2), joins(1, client="b", since=3700)])
    assert "owned_twice" not in log_findings(events)["finding"].to_list()
    told = story(events)
    assert any("joined generation 1 of life 2" in sentence for sentence in told)
    assert not any("life" in sentence for sentence in story(joins(1, 2)))


def test_a_timeline_has_a_mark_for_each_life():
    events = joins(1, 2, 1)
    spans = member_spans(member_rebalances(events), rebalances(events))
    assert spans.filter(phase="holding").select("life", "generation").rows() == [(1, 1), (1, 2), (2, 1)]
    drawn = charts.svg(rebalance_timeline(spans))
    assert all(f"{number} (life {life})" in drawn for life, number in ((1, 1), (1, 2), (2, 1)))


def test_a_topic_has_lives_too():
    stored = stored_generations(("g", 1, {"a": ["t-0"]}), ("g", None, {}), ("g", 1, {"b": ["t-0"]}))
    assert topic_rebalances(stored).select("life", "generation", "members").rows() == [(1, 1, ["a"]), (2, 1, ["b"])]
    assert generation_spans(stored).select("life", "member").rows() == [(1, "a"), (2, "b")]
