"""Conditions: one class for every rule, one registry, and the tables that store them as before."""

from pkgutil import resolve_name

import pytest

from kit.subjects import merged
from kit.tables import schema
from kit.tables.conditions import ALARM, ASK, BLOCK, INFO, WARN, Condition, Rule


def test_each_place_that_asks_for_rules_registers_each_once_with_a_sentence():
    for where, place in merged("RULES").items():
        rules = resolve_name(place)
        assert rules, where
        assert all(isinstance(each, Rule) and each.check_id and each.holds for each in rules)
        assert len(set(rules)) == len(rules), where


@pytest.mark.parametrize(
    ("severity", "blocks"), [(ALARM, True), (BLOCK, True), (ASK, True), (WARN, False), (INFO, False)]
)
@pytest.mark.parametrize("is_met", [False, None])
def test_an_unmet_or_unknown_check_blocks_by_its_severity(severity, blocks, is_met):
    rule = Rule("x", "It holds.", severity)
    assert rule.found(is_met, "It does not.").is_blocking is blocks
    assert not rule.found(True, "It does.").is_blocking


def test_a_condition_is_described_in_one_line():
    rule = Rule("Z02", "It holds.", source="ZooKeeper")
    found = rule.found(None, "It is not known.", subject="/migration", remedy="Look again.")
    assert found.described == "Z02 (unknown): It is not known. Look again."
    assert (found.source, found.subject, found.holds) == ("ZooKeeper", "/migration", "It holds.")


def test_stored_tables_have_the_columns_that_they_had():
    assert schema.KRAFT_FINDINGS.schema.names == ["check_id", "severity", "subject", "sentence", "remedy"]
    assert schema.PREFLIGHT_FINDINGS.schema.names == [
        *("check_id", "severity", "phase", "subject", "is_met", "sentence", "remedy", "source")
    ]
    row = Condition("A01", BLOCK, "controllers", "cluster", None, "Not known.")
    assert schema.PREFLIGHT_FINDINGS.from_rows([row]).to_pylist()[0]["is_met"] is None
    assert [field.nullable for field in schema.PREFLIGHT_FINDINGS.schema] == [
        name == "is_met" for name in schema.PREFLIGHT_FINDINGS.schema.names
    ]
