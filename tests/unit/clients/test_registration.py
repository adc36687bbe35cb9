"""Registrations as real old consumers write them, and those that would stop a group."""

from __future__ import annotations

import time

import pytest

from kit.clients.registration import parse_registration

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
def test_values_that_other_members_can_not_use_are_refused(data, said):
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


def test_a_pattern_that_backtracks_is_matched_in_linear_time() -> None:
    registration = parse_registration(b'{"version":1,"pattern":"white_list","subscription":{"(a+)+b":1}}')
    began = time.monotonic()
    assert registration.topics(["a" * 28, "a" * 200, "aab"]) == {"aab": 1}
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("regex", ["(?!x).*", "(a)\\\\1", "a*+", "[a-z&&[^b]]", "[a-z[0-9]]", "a)|(b"])
def test_a_pattern_unknown_to_re2_is_the_registrations_problem(regex: str) -> None:
    payload = '{"version":1,"pattern":"black_list","subscription":{"REGEX":1}}'.replace("REGEX", regex)
    registration = parse_registration(payload.encode())
    assert "can't be resolved here" in str(registration.problem)
    assert not registration.is_usable
    assert registration.topics(["a", "x"]) == {}


@pytest.mark.parametrize("regex", ["\\\\[a[b]", "[a-z]+[0-9]", "[\\\\[a]", "a|b", "(?i)A"])
def test_brackets_side_by_side_or_escaped_are_no_union(regex: str) -> None:
    assert parse_registration(
        ('{"version":1,"pattern":"white_list","subscription":{"REGEX":1}}'.replace("REGEX", regex)).encode()
    ).is_usable
