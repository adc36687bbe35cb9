"""Registrations as real old consumers write them, and those that would stop a group."""

from __future__ import annotations

import pytest

from kit.read.registration import parse_registration

TOPICS = ["__consumer_offsets", "audit_log", "cc1", "clickstream", "s1", "t1", "t2"]


def test_a_static_registration():
    data = b'{"version":1,"subscription":{"t8":2},"pattern":"static","timestamp":"1795236385109"}'
    registration = parse_registration(data)
    assert (registration.pattern, dict(registration.streams), registration.problem) == ("static", {"t8": 2}, None)
    assert registration.topics(TOPICS) == {"t8": 2}


@pytest.mark.parametrize(
    ("pattern", "regex", "topics"),
    [
        ("white_list", "t1,t2", ["t1", "t2"]),
        ("white_list", "t1|t2", ["t1", "t2"]),
        ("white_list", "t", []),
        ("white_list", ".*", ["audit_log", "cc1", "clickstream", "s1", "t1", "t2"]),
        ("white_list", ' "c.*" ', ["cc1", "clickstream"]),
        ("black_list", "(cc1|s.*|t1)", ["audit_log", "clickstream", "t2"]),
        ("black_list", "c", ["audit_log", "cc1", "clickstream", "s1", "t1", "t2"]),
    ],
)
def test_wildcards_match_whole_names_and_no_internal_topic(pattern, regex, topics):
    import json

    data = json.dumps({"version": 1, "subscription": {regex: 2}, "pattern": pattern, "timestamp": "1"}).encode()
    assert parse_registration(data).topics(TOPICS) == dict.fromkeys(topics, 2)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "is empty"),
        (b"", "is empty"),
        (b"t1", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b'{"version":1,"pattern":"static"}', "no 'subscription'"),
        (b'{"version":1,"subscription":{"t1":"2"},"pattern":"static"}', "no 'subscription'"),
        (b'{"version":1,"subscription":{"t1":2}}', "no 'pattern'"),
        (
            b'{"version":1,"subscription":{"t1":2},"pattern":"static","timestamp":1795236694925}',
            "'timestamp' is the num",
        ),
        (b'{"version":1.0,"subscription":{"t1":2},"pattern":"static"}', "'version' is the number 1.0"),
        (b'{"version":1,"subscription":{"(":2},"pattern":"white_list"}', "can't be resolved"),
    ],
)
def test_what_other_members_can_not_live_with(data, said):
    registration = parse_registration(data)
    assert said in registration.problem
    assert set(registration.topics(TOPICS)) <= {"t1"}


def test_a_number_that_fits_32_bits_harms_no_one():
    data = b'{"version":2,"subscription":{"t1":2},"pattern":"static","timestamp":1795236694}'
    assert parse_registration(data).problem is None


def test_a_wildcard_without_a_topic_is_static_and_empty():
    registration = parse_registration(b'{"version":1,"subscription":{},"pattern":"white_list","timestamp":"1"}')
    assert registration.problem is None
    assert registration.topics(TOPICS) == {}
