"""Epochs that a coordinator stored of KIP-848 groups → who came, who went, which partitions moved; who held what."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from kit.rebalances.analyze.epochs import epoch_rebalances
from kit.rebalances.analyze.spans import epoch_spans
from kit.tables import schema as tables
from tests.unit.rebalances.analyze.records import (
    ALONE,
    AT,
    JOINED,
    LEFT,
    computed,
    epoch,
    gone,
    member,
    stored_epochs,
    target,
)


def told(frame: pl.DataFrame, *columns: str) -> list[tuple]:
    return frame.select(columns).rows()


def test_members_that_come_and_go():
    found = epoch_rebalances(stored_epochs(*ALONE, *JOINED, *LEFT, *gone("b"), *epoch(4)))
    assert found.schema == pl.DataFrame(tables.REBALANCES.schema.empty_table()).schema
    assert told(found, "generation", "members", "joined", "left") == [
        (1, ["a"], None, None),
        (2, ["a", "b"], ["b"], []),
        (3, ["b"], [], ["a"]),
    ]
    assert told(found, "moved", "kept", "partitions_without_known_owner") == [
        (None, None, []),
        (["t-1"], ["t-0"], []),
        (["t-0"], ["t-1"], []),
    ]
    assert [at - AT for at in found["ended_at"]] == [timedelta(seconds=n) for n in (3, 9, 19)]
    assert found["leader_id"].null_count() == found["started_at"].null_count() == found["assignor"].null_count() == 3


def test_partitions_that_no_one_shall_have_any_more():
    shrunk = [*epoch(2), target("a", "t-0"), computed(2)]
    assert epoch_rebalances(stored_epochs(*ALONE, *shrunk))["partitions_without_known_owner"].to_list() == [[], ["t-1"]]


def test_the_assignor_is_the_one_that_members_ask_for():
    first = [member("a", "uniform"), member("b"), *epoch(1), computed(1)]
    found = epoch_rebalances(stored_epochs(*first, member("c", "range"), *epoch(2), computed(2)))
    assert found["assignor"].to_list() == ["uniform", None]


def test_members_whose_own_records_are_older_than_the_first():
    """Read since the second epoch, and since the third: who has had an epoch before, or goes, was there."""
    since = [*epoch(2), target("b", "t-1"), computed(2), *JOINED[5:], *LEFT]
    assert told(epoch_rebalances(stored_epochs(member("b"), *since)), "generation", "members", "joined", "left") == [
        (2, ["a", "b"], None, None),
        (3, ["b"], [], ["a"]),
    ]
    assert told(epoch_rebalances(stored_epochs(*LEFT)), "members", "moved", "kept") == [(["b"], None, None)]
    passing = [member("c"), *epoch(5), *gone("c"), *epoch(6), computed(6)]
    assert told(epoch_rebalances(stored_epochs(computed(4), *passing)), "members", "joined") == [([], None), ([], [])]


def test_a_group_that_was_deleted_starts_again():
    deleted = {"kind": "group_epoch", "is_tombstone": True}
    again = [member("c"), *epoch(1), target("c", "t-0"), computed(1)]
    found = epoch_rebalances(stored_epochs(*ALONE, *gone("a"), deleted, *again))
    assert told(found, "generation", "members", "joined", "moved") == [(1, ["a"], None, None), (1, ["c"], None, None)]


def test_groups_are_kept_apart_and_a_value_that_cant_be_read_is_no_rebalance():
    unread = {"kind": "target_epoch", "error": "the value ends too early"}
    frame = pl.concat([stored_epochs(*ALONE, group="h"), stored_epochs(*ALONE[:3], unread)])
    assert told(epoch_rebalances(frame), "group_id", "generation", "members") == [("h", 1, ["a"])]


def test_nothing_stored_gives_no_rows():
    nothing = pl.DataFrame(tables.GROUP_EPOCHS.schema.empty_table())
    assert epoch_rebalances(nothing).is_empty()
    assert epoch_spans(nothing).is_empty()


def test_the_stretches_of_members():
    spans = epoch_spans(stored_epochs(*ALONE, *JOINED, *LEFT))
    seconds = [
        (*row[:3], *((at - AT).total_seconds() for at in row[3:5]), row[5])
        for row in spans.select("member", "generation", "phase", "began_at", "ended_at", "partitions").rows()
    ]
    assert seconds == [
        ("a", 1, "holding", 4, 11, "t-0, t-1"),
        ("a", 1, "holding", 11, 12, "t-0"),
        ("a", 2, "holding", 12, 14, "t-0"),
        ("b", 2, "holding nothing", 10, 13, "no partition"),
        ("b", 2, "holding", 13, 20, "t-1"),
        ("b", 3, "holding", 20, 20, "t-0, t-1"),
    ]
