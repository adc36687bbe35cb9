"""Which of the preflight's findings a controller's words are about."""

from __future__ import annotations

from kit.rehearsal import likeness
from kit.tables.preflight import PreflightFinding

WORDS = 'Error in broker config consumer. Broker was one: java.lang.NumberFormatException: For input string: "one"'


def finding(sentence: str) -> PreflightFinding:
    return PreflightFinding("Z07", "block", "controllers", "", False, sentence, "", "ZooKeeper")


def test_a_znode_that_the_words_name_goes_before_one_with_more_words_in_common():
    named = likeness(WORDS, finding("/config/brokers/one is of no broker id."), "/config/brokers/one")
    similar = likeness(WORDS, finding("/config/brokers/1: Error, string, config, broker."), "/config/brokers/1")
    assert named > similar


def test_a_part_of_a_name_does_not_name_it_and_a_quoted_name_does():
    assert not likeness("it was alice-2", finding(""), "/kafka-acl/Topic/alice")[0]
    assert likeness("User was al/ice.", finding(""), "/config/users/al%2Fice")[0]
