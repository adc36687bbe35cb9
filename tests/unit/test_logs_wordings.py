"""The table of wordings: each fits itself, none is hidden behind another, heads find what a Java client prints."""

from __future__ import annotations

import re

import pytest

from kit.logs import wordings
from kit.logs.wordings import BY_SOURCE, CONTEXT, Wording

ALL = [(source, known) for source, table in BY_SOURCE.items() for known in table]


def fits(wording: Wording, message: str) -> bool:
    return message.startswith(wording.head) and (
        wording.pattern is None or re.match(wording.pattern, message) is not None
    )


def kind(source: str, message: str) -> str | None:
    return next((known.kind for known in BY_SOURCE[source] if fits(known, message)), None)


@pytest.mark.parametrize(("source", "known"), ALL, ids=lambda value: getattr(value, "template", value))
def test_a_wording_is_not_hidden_behind_one_of_another_kind(source, known):
    message = known.template.replace("{}", "X") + " and so on"
    assert fits(known, message)
    found = kind(source, message)
    hidden_ok = source == wordings.PYTHON and known in BY_SOURCE[wordings.JAVA]
    assert found == known.kind or hidden_ok, f"{message!r} is taken for {found}"


def test_versions_are_said():
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
        ("zookeeper", "c_h-1-2 begins to do what it never did", None),
        ("librdkafka", 'Group "g" is rebalancing (EAGER) in state up (join-state steady)', "rebalancing"),
    ],
)  # fmt: skip
def test_known_messages(source, message, expected):
    assert kind(source, message) == expected
