"""The old consumer's assignors against vectors seen with real JVM members, and KIP-125's split over threads."""

from __future__ import annotations

import pytest

from kit.consumer.zookeeper.assignors import assign_range, assign_roundrobin, partition_hash, split_over_threads
from kit.consumer.zookeeper.config import HASH_0_8_2, HASH_1_0
from kit.consumer.zookeeper.roundrobin_hash import other_hash_form
from kit.errors import InputError
from kit.text.java_hash import java_hash

LONG_NAMES = {"clickstream": range(12), "audit_log": range(4)}


def order(form: str) -> list[str]:
    """All partitions in the order in which one member with one thread would be dealt them."""
    dealt = assign_roundrobin({"g_a": {"clickstream": 1, "audit_log": 1}}, LONG_NAMES, form)
    return [f"{topic}-{partition}" for topic, partition in dealt]


def test_range_gives_the_first_threads_one_more() -> None:
    assignment = assign_range({"g_a": {"t": 2}}, {"t": range(7)})
    assert [assignment["t", partition] for partition in range(7)] == ["g_a-0"] * 4 + ["g_a-1"] * 3


def test_threads_are_ordered_as_text() -> None:
    assignment = assign_range({"g_a": {"t": 12}}, {"t": range(12)})
    assert [assignment["t", partition].rpartition("-")[2] for partition in range(12)] == (
        ["0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"]
    )


def test_range_leaves_spare_threads_and_unwanted_topics_without() -> None:
    assignment = assign_range({"g_a": {"t": 1}, "g_b": {"t": 2, "missing": 1}}, {"t": [0, 1], "u": [0]})
    assert assignment == {("t", 0): "g_a-0", ("t", 1): "g_b-0"}


def test_the_two_orders_of_roundrobin() -> None:
    assert order(HASH_0_8_2)[:6] == [f"clickstream-{partition}" for partition in range(6)]
    assert order(HASH_1_0)[:6] == [
        "clickstream-10",
        "clickstream-11",
        "audit_log-0",
        "audit_log-1",
        "audit_log-2",
        "audit_log-3",
    ]


def test_java_hash() -> None:
    assert java_hash("") == 0
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("😀") == 1772899
    assert partition_hash("Aa", 0, HASH_0_8_2) == partition_hash("BB", 0, HASH_0_8_2) == -1626752098


def test_partitions_of_one_hash_are_refused() -> None:
    with pytest.raises(InputError, match="Aa-0 and BB-0 have the same Java hash"):
        assign_roundrobin({"g_a": {"Aa": 1, "BB": 1}}, {"Aa": [0], "BB": [0]}, HASH_0_8_2)


def test_a_thread_that_does_not_want_the_topic_loses_its_turn() -> None:
    members = {"g_a": {"t": 1}, "g_b": {"t": 1, "u": 1}}
    assignment = assign_roundrobin(members, {"t": [0, 1, 2], "u": [0]}, HASH_1_0)
    assert assignment == {("t", 0): "g_a-0", ("t", 1): "g_b-0", ("t", 2): "g_a-0", ("u", 0): "g_b-0"}


def test_the_split_over_threads_deals_sorted_partitions_topic_by_topic() -> None:
    assigned = {("b", 7), ("a", 9), ("a", 10), ("a", 2), ("not mine", 0)}
    assert split_over_threads("g_m", {"a": 2, "b": 2}, assigned) == {
        ("a", 2): "g_m-0",
        ("a", 9): "g_m-1",
        ("a", 10): "g_m-0",
        ("b", 7): "g_m-1",
    }


def test_members_of_the_other_order_are_distinguished() -> None:
    members = {name: {"clickstream": 1, "audit_log": 1} for name in ("g_a", "g_b", "g_me")}
    owners = {
        pair: thread
        for pair, thread in assign_roundrobin(members, LONG_NAMES, HASH_0_8_2).items()
        if not thread.startswith("g_me")
    }
    assert other_hash_form(HASH_1_0, "g_me", members, LONG_NAMES, owners) == HASH_0_8_2
    assert other_hash_form(HASH_0_8_2, "g_me", members, LONG_NAMES, owners) is None
    assert other_hash_form(HASH_1_0, "g_me", members, LONG_NAMES, {}) is None
