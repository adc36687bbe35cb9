"""The preflight's findings are found by a controller's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.kraft.rehearsal_causes import likeness, mentioned
from kit.tables.conditions import Condition

WORDS = 'Error in broker config consumer. Broker was one: java.lang.NumberFormatException: For input string: "one"'


def finding(sentence: str) -> Condition:
    return Condition("Z07", "block", "controllers", "", False, sentence, "", "ZooKeeper")


def test_a_znode_that_the_words_name_goes_before_one_with_more_words_in_common():
    named = likeness(WORDS, finding("/config/brokers/one is of no broker id."), "/config/brokers/one")
    similar = likeness(WORDS, finding("/config/brokers/1: Error, string, config, broker."), "/config/brokers/1")
    assert named > similar


def test_a_part_of_a_name_does_not_name_it_and_a_quoted_name_does():
    assert not likeness("it was alice-2", finding(""), "/kafka-acl/Topic/alice")[0]
    assert likeness("User was al/ice.", finding(""), "/config/users/al%2Fice")[0]


def test_a_name_as_short_as_an_article_is_none():
    assert not likeness("expected a string but got alice", finding(""), "/kafka-acl/Group/a")[0]


@pytest.mark.parametrize(
    ("subject", "znode"),
    [
        ("topic orders", "/brokers/topics/orders"),
        ("/config/brokers/one", "/config/brokers/one"),
        ("user a/b", "/config/users/a%2Fb"),
        ("ACL of TOPIC:PREFIXED:or", "/kafka-acl-extended/prefixed/Topic/or"),
        ("topics", None),
        ("topic ordersx", None),
    ],
)
def test_a_finding_is_of_the_znode_that_its_subject_names(subject, znode):
    """Whatever its sentence says: a name in it may be part of another one's."""
    paths = [
        "/brokers/topics/ord",
        "/brokers/topics/orders",
        "/config/brokers/one",
        "/config/users/a%2Fb",
        "/kafka-acl-extended/prefixed/Topic/or",
    ]
    row = replace(finding("/brokers/topics/ord: it is of orders."), subject=subject)
    assert mentioned(row, paths) == znode
