"""Every check of a move to KRaft is provoked by a test on real servers that ``make test`` runs, or ``make soak``."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from kit.kraft.analyze import contradictions, kafka_config, kafka_rules, node_lint
from kit.kraft.analyze.preflight import CHECKS
from tests.servers import provoked
from tests.servers.preflight_story import FACTS
from tests.servers.provoked_cases import CASES, TRAPS

SERVERS = Path(__file__).parents[1] / "servers"


def ids_of_the_code() -> set[str]:
    """Of the preflight, of the linter, and those that the status alone has."""
    of_status = set(re.findall(r'"([A-Z]\d\d)"', inspect.getsource(contradictions)))
    rules = "".join(inspect.getsource(each) for each in (node_lint, kafka_config, kafka_rules))
    of_files = set(re.findall(r'"(N\d\d)"', rules)) - {"N00"}  # Nothing is wrong.
    return {each.check_id for each in CHECKS} | of_status | of_files


def test_no_check_is_without_a_case_and_no_case_without_a_check():
    assert {each.check_id for each in CASES} == ids_of_the_code()
    assert len(ids_of_the_code()) > 50


def test_each_rule_of_the_status_is_provoked_by_a_status():
    of_status = set(re.findall(r'"([A-Z]\d\d)"', inspect.getsource(contradictions)))
    assert of_status == {each.check_id for each in CASES if each.look == provoked.STATUS}


@pytest.mark.parametrize("test", sorted({each.test for each in CASES}))
def test_each_file_runs_its_cases_on_servers_without_being_asked_to(test):
    text = (SERVERS / test).read_text(encoding="utf-8")
    looks = {each.look for each in CASES if each.test == test}
    names = {name: getattr(provoked, name) for name in ("STATUS", "PREFLIGHT", "EDITED")}
    run = re.findall(r"cases_of\(\S+, (\w+)\)", text)
    assert {names[name] for name in run} == looks
    assert text.count("hold(case, ") == len(run)
    assert ("tests.soak" in text) == (test == TRAPS)  # A trap of each kind of look is in the short form, too.


def test_each_edit_of_what_was_read_is_there():
    assert {each.facts for each in CASES if each.facts} == set(FACTS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_says_whom_it_concerns_and_what_to_do(case):
    assert case.subject
    assert case.says
    assert case.remedy or case.is_met, "what is met needs no remedy"
