"""brod's records have several lines: they are read as one, and no list of partitions in part."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from kit.rebalances.analyze.attempts import member_rebalances
from kit.rebalances.analyze.story import story
from kit.rebalances.logs.brod_records import joined
from tests.unit.rebalances.logs.pasted import read

NEW = "2024-05-01 10:00:0{}.386 [info] Group member (orders,coor=#PID<0.{}.0>,cb=#PID<0.9.0>,generation={}):"
OLD = "[info] group coordinator (groupId=orders,memberId=foo@host/<0.7.0>-1a,generation={},pid=#PID<0.7.0>):"
LIST = [
    *(
        "assignments received:",
        "  clicks:",
        "    partition=0 begin_offset=undefined",
        "    partition=10 begin_offset=7",
    ),
    *("  a.b-c:", "    partition=3 begin_offset=1"),
]
PARTITIONS = ["a.b-c-3", "clicks-0", "clicks-10"]
FAILED = [NEW.format(1, 7, 18), "failed to join group", "reason: :unknown_member_id"]
JOINED = [NEW.format(2, 7, 20), "elected=true"]


def test_a_member_that_failed_and_then_joined(tmp_path):
    log = [*FAILED, NEW.format(2, 7, 18), "re-joining group, reason::unknown_member_id", *JOINED, NEW.format(3, 7, 20)]
    events = read(tmp_path, *log, *LIST).events
    (row,) = member_rebalances(events).rows(named=True)
    assert (row["group_id"], row["generation"], row["is_leader"], row["owned"]) == ("orders", 20, True, PARTITIONS)
    assert (row["outcome"], row["failure"], row["reason"]) == ("assigned", "unknown_member_id", "unknown_member_id")
    assert "generation 20" in " ".join(story(events))


def test_the_failure_before_a_success_is_described(tmp_path):
    first, *_ = story(read(tmp_path, *FAILED, *JOINED, NEW.format(3, 7, 20), *LIST).events)
    assert "failed before: unknown_member_id" in first
    assert "not through" not in first


def test_two_members_of_one_file_are_distinguished(tmp_path):
    events = read(tmp_path, *JOINED, NEW.format(3, 8, 20), "elected=false").events
    rows = member_rebalances(events).select("consumer", "generation", "is_leader").rows()
    assert rows == [("<0.7.0>", 20, True), ("<0.8.0>", 20, False)]


def test_an_old_release_names_its_member(tmp_path):
    events = read(
        tmp_path, OLD.format(75), "re-joining group, reason::RebalanceInProgress", OLD.format(76), "elected=true"
    ).events
    assert events.select("kind", "member_id", "generation", "reason").rows() == [
        ("join_reason", "foo@host/<0.7.0>-1a", 75, "RebalanceInProgress"), ("joined", "foo@host/<0.7.0>-1a", 76, None),
    ]  # fmt: skip


def test_each_line_may_have_a_prefix(tmp_path):
    log = [*FAILED, *JOINED, NEW.format(3, 7, 20), *LIST]
    bare = read(tmp_path, *log).events
    prefixed = read(tmp_path, *(f"1:52:0{number % 10} PM app.1 |  {line}" for number, line in enumerate(log))).events
    told = ("kind", "group_id", "client_id", "generation", "partitions", "reason")
    assert prefixed.select(told).rows() == bare.select(told).rows()


def test_half_a_record_is_read(tmp_path):
    (event,) = read(tmp_path, "re-joining group, reason:unknown_member_id").events.rows(named=True)
    assert (event["kind"], event["reason"], event["group_id"]) == ("join_reason", "unknown_member_id", None)


@pytest.mark.parametrize("portion", [1, 2, 3, 4, 7])
def test_it_does_not_matter_where_a_portion_ends(portion):
    texts = ["another line", *FAILED, "another line", NEW.format(3, 7, 20), *LIST, *JOINED]
    files = [pl.DataFrame({"value": texts}).select(file=pl.lit(name), line=pl.int_range(pl.len()) + 1, value="value")
             for name in ("a", "b")]  # fmt: skip
    lines = pl.concat(files)
    whole = pl.concat(joined([lines]))
    assert len(whole) == 2 * 5
    assert "partition=3 begin_offset=1" in whole["value"][3]
    assert_frame_equal(pl.concat(joined(lines.iter_slices(portion))), whole)


@pytest.mark.parametrize("n_lines", [1, 2, 3])
def test_a_log_that_is_one_record_or_a_part_of_one_is_read(tmp_path, n_lines):
    kinds = read(tmp_path, *FAILED[:n_lines]).events["kind"].to_list()
    assert kinds == (["join_failed"] if n_lines > 1 else [])


def test_lines_that_do_not_follow_are_no_part(tmp_path):
    text = [
        NEW.format(1, 7, 18),
        "re-joining group, reason::timeout",
        "  other:",
        "reason: something else",
        "elected=true",
    ]
    assert read(tmp_path, *text).events["reason"].to_list() == ["timeout"]
