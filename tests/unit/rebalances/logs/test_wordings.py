"""The table of wordings: each fits itself, none is hidden behind another, heads find what a Java client prints."""

from __future__ import annotations

import re

import polars as pl
import pytest

from kit.rebalances.logs import fields, wordings
from kit.rebalances.logs.wordings import BY_SOURCE, CONTEXT, LogTemplate

ALL = [(source, known) for source, table in BY_SOURCE.items() for known in table]


def fits(wording: LogTemplate, message: str) -> bool:
    return message.startswith(wording.head) and (
        wording.pattern is None or re.match(wording.pattern, message) is not None
    )


def kind(source: str, message: str) -> str | None:
    return next((known.kind for known in BY_SOURCE[source] if fits(known, message)), None)


@pytest.mark.parametrize("source", BY_SOURCE)
def test_a_wording_is_not_hidden_behind_one_of_another_kind(source):
    messages = [(known, known.template.replace("{}", "X") + " and so on") for known in BY_SOURCE[source]]
    assert [message for known, message in messages if not fits(known, message)] == []
    found = {message: (kind(source, message), known) for known, message in messages}
    wrong = {message: taken for message, (taken, known) in found.items() if taken != known.kind}
    if source == wordings.PYTHON:
        wrong = {
            message: taken for message, taken in wrong.items() if found[message][1] not in BY_SOURCE[wordings.JAVA]
        }
    assert wrong == {}, "a message is taken for another kind"


def test_versions_are_reported():
    assert all(re.match(r"\d+\.\d+", known.versions) for _, known in ALL)


@pytest.mark.parametrize(
    ("source", "message", "expected"),
    [
        ("java", "Attempt to heart beat failed since the group is rebalancing, try to re-join", "heartbeat_failed"),
        ("java", "Marking the coordinator 2147483645 dead.", "coordinator_lost"),
        ("java", "Group coordinator k:9092 (id: 2147483645 rack: null) is unavailable or invalid due to cause: null."
         "isDisconnected: true. Rediscovery will be attempted.", "coordinator_lost"),
        ("java", "Member m with epoch 3 transitioned from STABLE to FENCED.", "state_change"),
        ("java", "Member m with epoch 3 won't send leave group request because it is in FATAL state", CONTEXT),
        ("java", "Group g has no committed offset for partition t-0", "offset_missing"),
        ("broker", "Member m in group g has left, removing it from the group", "member_left"),
        ("broker", "[GroupId g] Member m left the consumer group.", "member_left"),
        ("broker", "[GroupId g] Static member m with instance id i left the consumer group.", "member_left"),
        ("broker", "[GroupId g] Static member m with instance id i temporarily left the consumer group.", CONTEXT),
        ("broker", "[GroupId g] Dynamic member m has left group through explicit `LeaveGroup` request",
         "member_left"),
        ("broker", "[GroupId g] Converted the classic group to a consumer group.", "group_converted"),
        ("broker", "[GroupId g] Converted the empty consumer group to a classic group.", CONTEXT),
        ("broker", "[GroupId g][MemberId m] Member joins the streams group.", "member_joining"),
        ("java", "Member AAAA received heartbeat interval 5000ms from the group coordinator", "context"),
        ("java", "Completed leaving the group", "left"),
        ("zookeeper", "c_h-1-2 begins to do what it never did", None),
        ("librdkafka", 'Group "g" is rebalancing (EAGER) in state up (join-state steady)', "rebalancing"),
        # librdkafka has put the commit back into its queue and sends it again.
        ("librdkafka", "OffsetCommit for 4 partition(s) in join-state steady: cgrp auto commit timer:"
         " returned: Local: Operation in progress", CONTEXT),
        ("librdkafka", "OffsetCommit for 4 partition(s) in join-state steady: cgrp auto commit timer:"
         " returned: Broker: Unknown member", "commit_failed"),
    ],
)  # fmt: skip
def test_known_messages(source, message, expected):
    assert kind(source, message) == expected


@pytest.mark.parametrize(
    ("message", "member"),
    [
        ("[GroupId g] Member m-1 joins the consumer group using the consumer protocol.", "m-1"),
        ("[GroupId g] Dynamic member with unknown member id joins the consumer group. Created a new member id m-2 and "
         "requesting the member to rejoin with this id.", "m-2"),
        ("[GroupId g] Static member with instance id i re-joins the consumer group using the classic protocol. Created "
         "a new member m-3 to replace the existing member m-2.", "m-3"),
    ],
)  # fmt: skip
def test_the_member_that_a_coordinator_names(message, member):
    assert pl.select(fields.member_of(pl.lit(message))).item() == member
