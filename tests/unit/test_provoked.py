"""Every check of a move to KRaft is provoked by a test on real servers that ``make test`` runs, or ``make soak``."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from kit.kraft.analyze import contradictions, kafka_config, kafka_role_rules, kafka_rules, node_lint, preflight
from tests.servers import provoked
from tests.servers.preflight_story import FACTS
from tests.servers.provoked_cases import CASES, TRAPS

SERVERS = Path(__file__).parents[1] / "servers"


def ids_of_the_code() -> set[str]:
    """Return the ids of the preflight, of the linter, and those that the status alone has."""
    asked = (*preflight.RULES, *contradictions.RULES, *node_lint.RULES)
    return {each.check_id for each in asked} - {"N00"}  # Nothing is wrong.


def test_no_check_is_without_a_case_and_no_case_without_a_check():
    assert {each.check_id for each in CASES} == ids_of_the_code()
    assert len(ids_of_the_code()) > 50


def test_each_rule_of_the_status_is_provoked_by_a_status():
    of_status = {each.check_id for each in contradictions.RULES}
    assert of_status == {each.check_id for each in CASES if each.look == provoked.STATUS}


def test_each_id_in_the_code_is_of_a_registered_rule():
    sources = {contradictions: "[A-Z]", node_lint: "N", kafka_config: "N", kafka_role_rules: "N", kafka_rules: "N"}
    registered = {each.check_id for module in (contradictions, node_lint) for each in module.RULES}
    for module, letter in sources.items():
        assert set(re.findall(rf'"({letter}\d\d)"', inspect.getsource(module))) <= registered


@pytest.mark.parametrize("test", sorted({each.test for each in CASES}))
def test_each_file_runs_its_cases_on_servers_without_being_asked_to(test):
    text = (SERVERS / test).read_text(encoding="utf-8")
    looks = {each.look for each in CASES if each.test == test}
    names = {name: getattr(provoked, name) for name in ("STATUS", "PREFLIGHT", "EDITED")}
    run = re.findall(r"cases_of\(\S+, (\w+)\)", text)
    assert {names[name] for name in run} == looks
    assert text.count("hold(case, ") == len(run)
    assert ("tests.soak" in text) == (test == TRAPS)  # A trap of each kind of observation is in the short form, too.


def test_each_edit_of_what_was_read_is_there():
    assert {each.facts for each in CASES if each.facts} == set(FACTS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_reports_whom_it_concerns_and_what_to_do(case):
    assert case.subject
    assert case.says
    assert case.remedy or case.is_met, "what is met needs no remedy"
