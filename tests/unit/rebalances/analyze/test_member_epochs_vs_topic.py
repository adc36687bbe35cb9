"""Logs of members of KIP-848 groups against the topic: only what can't be otherwise is a difference."""

from __future__ import annotations

import polars as pl
import pytest

from kit.rebalances.analyze.logs_vs_topic import source_differences
from kit.tables import schema as tables
from tests.unit.rebalances.analyze.records import (
    ALONE,
    JOINED,
    LEFT,
    computed,
    current,
    epoch,
    gone,
    logged,
    member,
    rebalance,
    stored_epochs,
    stored_generations,
    target,
)

NO_GENERATIONS = pl.DataFrame(tables.GROUP_GENERATIONS.schema.empty_table())


def reconciled(client: str, second: int, number: int, *partitions: str, member_id: str | None = None) -> list[tuple]:
    said = {"generation": number, "member_id": member_id or client, "owned_after": list(partitions)}
    return [(client, second, "reconciling", said), (client, second + 1, "assigned", {"partitions": list(partitions)})]


LOGS = [
    *reconciled("a", 0, 1, "t-0", "t-1"),
    *reconciled("a", 9, 1, "t-0"),
    *reconciled("b", 8, 2),
    *reconciled("b", 12, 2, "t-1"),
    *reconciled("b", 20, 3, "t-0", "t-1"),
]
TOPIC = [*ALONE, *JOINED, *LEFT]


def found(lines: list[tuple], records: list[dict]) -> list[tuple[str, str | None]]:
    differences = source_differences(logged(*lines), NO_GENERATIONS, stored_epochs(*records))
    assert all(sentence.startswith("Group g: epoch ") for sentence in differences["sentence"])
    return differences.select("finding", "consumer").rows()


def test_two_sources_that_agree():
    assert found(LOGS, TOPIC) == []


def test_a_member_that_hears_only_of_the_newest_is_no_difference():
    assert found(reconciled("b", 20, 3, "t-0", "t-1"), TOPIC) == []
    assert found([*reconciled("a", 0, 1), *reconciled("a", 9, 2, "t-0")], TOPIC) == []


def test_partitions_other_than_those_stored():
    lines = [*LOGS, *reconciled("b", 30, 3, "t-0")]
    assert found(lines, TOPIC) == [("other_assignment", "b")]
    (sentence,) = source_differences(logged(*lines), NO_GENERATIONS, stored_epochs(*TOPIC))["sentence"]
    assert sentence == "Group g: epoch 3 gives b t-0, t-1 in the topic, but t-0 in the member's log."


def test_partitions_on_a_members_way_are_no_difference():
    """It resolves the names of topics one after another."""
    assert found([*reconciled("a", 0, 1, "t-0"), *reconciled("a", 2, 1, "t-0", "t-1")], TOPIC) == []


def test_an_epoch_that_is_not_in_the_topic():
    assert found([*LOGS, *reconciled("b", 30, 7, "t-0")], TOPIC) == [("not_stored", None)]
    assert found([*LOGS, *reconciled("b", 30, 7)], TOPIC) == []
    without = [row for row in TOPIC if (row["kind"], row.get("epoch")) != ("current_assignment", 3)]
    assert found(LOGS, without) == [("not_stored", "b")]


def test_a_member_of_whom_there_is_no_record():
    stranger = reconciled("x", 20, 3, "t-0")
    assert found([*LOGS, *stranger], TOPIC) == [("unknown_member", "x")]
    assert found([*LOGS, *stranger, *reconciled("x", 30, 3, "t-1")], TOPIC) == [("unknown_member", "x")]


def test_records_that_may_be_compacted_away_are_no_difference():
    """An older epoch's records of a member are compacted to the newest, and none of a member that is gone is left."""
    left = [*epoch(3), target("b", "t-0", "t-1"), computed(3), member("b"), current("b", 3, 3, "t-1")]
    assert found(reconciled("b", 20, 3, "t-0", "t-1"), left) == []
    assert found(reconciled("x", 20, 3, "t-0"), left) == []
    assert found(reconciled("b", 20, 2, "t-0"), [*left, {"kind": "group_epoch", "epoch": 2}]) == []


BACK = [current("a", 2, 1, "t-0"), current("a", 3, 2, "t-0", "t-1")]
RETURNED = [*ALONE, *epoch(2), computed(2), BACK[0], *epoch(3), computed(3), BACK[1]]


@pytest.mark.parametrize(
    ("after", "records", "differences"),
    [
        (("t-0", "t-1"), RETURNED, [("not_logged", "a")]),
        (("t-0",), [*RETURNED[:-1], current("a", 3, 2, "t-0")], []),
        (("t-0", "t-1"), [*RETURNED[:-3], current("a", 2, 2), *RETURNED[-3:]], [("not_logged", "a")]),
        (("t-0", "t-1"), [*ALONE, *epoch(2), current("a", 2, 1), *epoch(3), computed(3), BACK[1]], []),
        (("t-0", "t-1"), [*ALONE, *gone("a"), member("a"), *epoch(2), BACK[0], *epoch(3), computed(3), BACK[1]], []),
    ],
    ids=["taken and given back", "taken for good", "emptied meanwhile", "emptied alone", "thrown out meanwhile"],
)
def test_news_that_a_member_must_have_heard_are_compared(after, records, differences):
    """The log reports epochs 1 and 3."""
    assert found([*reconciled("a", 0, 1, "t-0", "t-1"), *reconciled("a", 20, 3, *after)], records) == differences


def test_a_topic_that_was_deleted_is_compared_with_nothing():
    by_id = "q5lkP79-TwqdLRt6PF5_kA-0"
    assert found(reconciled("a", 0, 1, "u-0"), [*ALONE[:-1], current("a", 1, 0, by_id)]) == []
    again = [*reconciled("a", 0, 1, "t-0", "t-1"), *reconciled("a", 20, 3, "t-0", "t-1")]
    assert found(again, [*RETURNED[:-4], current("a", 2, 1, by_id), *RETURNED[-3:]]) == []


def test_a_record_that_cant_be_decoded_leaves_its_group_uncompared():
    unread = {"kind": "current_assignment", "member_id": "b", "error": "the value ends too early"}
    assert found([*LOGS, *reconciled("b", 30, 7, "t-0")], [*TOPIC, unread]) == []


def test_groups_of_one_source_alone():
    assert found(LOGS, []) == []
    others = stored_epochs(*TOPIC, group="other")
    assert source_differences(logged(*LOGS), NO_GENERATIONS, others).is_empty()


def test_a_group_that_came_over_from_the_classic_protocol():
    """Its generations continue as epochs, and it may go back; a classic member is compared in what is an epoch."""
    stored_before = stored_generations(
        ("g", 1, {"a-1": ["t-0", "t-1"]}), ("g", 2, {"a-1": ["t-0"]}), ("g", 3, {"a-1": ["t-5"]})
    )
    lines = [
        *rebalance("a", 0, 1, ["t-0", "t-1"]),
        *rebalance("a", 20, 2, ["t-0"]),
        *reconciled("b", 20, 2, "t-1"),
        *rebalance("a", 40, 3, ["t-0", "t-1"]),
    ]
    converted = [member("a-1"), *epoch(1), computed(1), current("a-1", 1, 1, "t-0", "t-1"), member("b"), *epoch(2)]
    two = [*converted, computed(2), current("b", 2, 0, "t-1")]

    def differing(*records):
        found = source_differences(logged(*lines), stored_before, stored_epochs(*two, *records))
        return [sentence.partition(" gives a-1 ")[0] for sentence in found["sentence"]]

    assert differing(current("a-1", 2, 1, "t-0")) == ["Group g: generation 3"]
    assert differing(current("a-1", 2, 1, "t-9")) == ["Group g: generation 3", "Group g: epoch 2"]
