"""ConsumerGroupDescribe (API 69) as bytes, and what becomes of it."""

from __future__ import annotations

import pytest

from kit.groups.read import consumer_group_describe, coordinator
from kit.groups.read.consumer_group_describe import ConsumerGroupDescribeResponse as Response
from kit.groups.read.coordinator import ListedGroup, _Collected

# Group "g" manually after the protocol guide, version 0, flexible: lengths are one more than they count.
ANSWER = bytes.fromhex(
    "00000000" "02"  # throttled for 0 ms, one group
    "0000" "00" "0267" "0a41737369676e696e67"  # no error, no message, "g", "Assigning"
    "00000003" "00000002" "08756e69666f726d" "02"  # epochs 3 and 2, "uniform", one member
    "026d" "00" "00" "00000002" "0263" "0b2f3132372e302e302e31"  # "m", no instance, no rack, epoch 2, "c", "/127.0.0.1"
    "020274" "00"  # topic "t" by name, no pattern
    "02" "000102030405060708090a0b0c0d0e0f" "0274" "030000000000000004" "00" "00"  # holds t-0 and t-4
    "01" "00" "00"  # shall hold nothing; end of the member
    "80000000" "00" "00"  # operations not asked for; end of the group, end
)  # fmt: skip


@pytest.fixture
def group():
    decoded = Response.decode(ANSWER, version=0)
    ((group_id, code, described),) = coordinator.described(decoded)
    assert (group_id, code) == ("g", 0)
    return described


def test_the_request_as_bytes():
    request = consumer_group_describe.describe_request(["a", "bc"])
    assert request.encode(version=0) == bytes.fromhex("03" "0261" "036263" "00" "00")  # fmt: skip


def test_the_answer_becomes_rows(group):
    (member,) = consumer_group_describe.members(group)
    assert (member.member_id, member.client_id, member.client_host) == ("m", "c", "127.0.0.1")
    assert (member.group_instance_id, member.pattern, member.error) == (None, None, None)
    assert [(each.member_id, each.topic) for each in consumer_group_describe.subscriptions(group)] == [("m", "t")]
    assert [(each.topic, each.partition) for each in consumer_group_describe.ownership(group)] == [("t", 0), ("t", 4)]


def test_the_state_has_kafkas_spelling(group):
    collected = _Collected(listed={"g": ListedGroup(1, "consumer", "Stable", "consumer")})
    collected.take_consumer_group("g", group)
    (row,) = collected.result({}).groups.arrow().to_pylist()
    assert (row["state"], row["protocol"], row["group_type"], row["error"]) == (
        "Assigning",
        "uniform",
        "consumer",
        None,
    )


def test_groups_of_other_types_report_that_their_members_are_not_read():
    collected = _Collected(listed={"s": ListedGroup(1, "new", "Stable", "new")})
    (row,) = collected.result({}).groups.arrow().to_pylist()
    assert row["error"] == "members of a group of type 'new' are not read"
    assert collected.coordinators("classic") == collected.coordinators("consumer") == {}


def test_a_pattern_subscribes_to_what_the_broker_gave(group):
    (member,) = group.members
    member.subscribed_topic_names, member.subscribed_topic_regex = [], "t.*"
    (topic,) = member.assignment.topic_partitions
    target = type(topic)(topic_id=topic.topic_id, topic_name="t2", partitions=[0])
    member.target_assignment.topic_partitions = [target]
    assert [each.topic for each in consumer_group_describe.subscriptions(group)] == ["t", "t2"]
    assert consumer_group_describe.members(group)[0].pattern == "t.*"
