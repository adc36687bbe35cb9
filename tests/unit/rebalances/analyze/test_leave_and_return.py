"""A consumer that leaves on its own and comes back: the time between is of no rebalance, and it starts with nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kit.rebalances.analyze.attempts import member_rebalances
from kit.rebalances.analyze.story import story
from tests.unit.rebalances.analyze.test_attempts import log

ADDING = "[Consumer ] Adding newly assigned partitions: "


def way(at: int, generation: int, member: str, *added: str) -> list[tuple[str, dict[str, Any]]]:
    """A rebalance of Java 2.4 and later, which lists what is added."""
    joined = {"generation": generation, "member_id": member, "at": at + 1}
    return [
        ("joining", {"at": at}),
        ("joined", joined),
        ("assigned", {"partitions": [*added], "text": ADDING, "at": at + 2}),
    ]


LEAVES = [
    ("revoked", {"partitions": ["t-0"], "at": 59}),
    ("leaving", {"at": 60, "reason": "the consumer is being closed"}),
]


def test_the_time_between_is_of_no_rebalance():
    events = log(*way(0, 3, "m-1", "t-0"), *LEAVES, *way(600, 5, "m-2", "t-1"))
    before, after = member_rebalances(events).rows(named=True)
    assert (after["ended_at"] - after["started_at"]).total_seconds() == 2
    assert before["left_at"] is not None
    assert (after["revoked"], after["owned"], after["reason"]) == (None, ["t-1"], None)
    told = " ".join(story(events))
    assert "gave up partitions (t-0); began to leave the group: the consumer is being closed." in told


@pytest.mark.parametrize(
    "between", [LEAVES[1:], []], ids=["it leaves without a line of its partitions", "its process dies"]
)
def test_another_member_starts_without_the_partitions_of_the_one_before(between):
    events = log(*way(0, 3, "m-1", "t-0"), *between, *way(600, 5, "m-2", "t-1"))
    assert member_rebalances(events)["owned"].to_list() == [["t-0"], ["t-1"]]


def test_the_same_member_keeps_its_partitions():
    events = log(*way(0, 3, "m-1", "t-0"), *way(600, 4, "m-1", "t-1"))
    assert member_rebalances(events)["owned"].to_list() == [["t-0"], ["t-0", "t-1"]]


def test_a_member_that_was_thrown_out_has_its_leaving_as_reason():
    why = {
        "at": 60,
        "text": "Member m-1 sending LeaveGroup request due to consumer poll timeout has expired",
        "reason": "slow",
    }
    events = log(*way(0, 3, "m-1", "t-0"), ("leaving", why), *way(90, 5, "m-2", "t-1"))
    assert member_rebalances(events)["reason"].to_list() == [None, "slow"]
