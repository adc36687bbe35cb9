"""Excerpts of public threads are understood. Their texts are read from a folder of this machine, if there is one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kit.rebalances.logs.wordings import BY_SOURCE, CONTEXT
from kit.rebalances.sources import read_rebalances
from tests import excerpts
from tests.excerpts import Facts, all_facts, digest, normal, told

FACTS = all_facts()
FOLDER = excerpts.folder()
ABSENT = pytest.param(
    None,
    marks=pytest.mark.skip(
        f"The texts of the {len(FACTS)} excerpts are not in the repository: ${excerpts.FOLDER} names no folder of them."
    ),
)
EXACT = ("events", "groups", "members", "generations", "not_understood", "findings")
_THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+|[A-Z].+ \(an article of .+\)")
_FAMILIES = (
    *("Java", "Spring", "Connect", "Logstash", "broker", "librdkafka", "kafka-python", "aiokafka", "sarama"),
    *("franz-go", "kafka-go", "kafkajs", "ruby-kafka", "ZooKeeper consumer", "pykafka"),
)
_FINDINGS = re.findall(r"^\| `(\w+)`", Path("docs/rebalances.md").read_text(), re.MULTILINE)
_KINDS = {each.kind for table in BY_SOURCE.values() for each in table} - {CONTEXT}


@pytest.mark.parametrize("facts", FACTS if FOLDER else [ABSENT], ids=lambda facts: facts and facts["file"])
def test_the_case_is_reported_correctly(facts: Facts, tmp_path: Path) -> None:
    assert FOLDER is not None
    text = (FOLDER / facts["file"]).read_text()
    assert digest(text) == facts["sha256"], f"{facts['file']} is another text than the one that the facts are of"
    lines = normal(text).splitlines()
    assert (len(lines), lines[0].strip()[: len(facts["first"])]) == (facts["n_lines"], facts["first"])
    assert lines[-1].strip().startswith(facts["last"])
    log = tmp_path / "pasted.log"
    log.write_text(text)
    found = told(read_rebalances(None, str(log)))
    assert [part for part in facts["says"] if part not in found["said"]] == [], found["said"]
    assert [part for part in facts["never"] if part in found["said"]] == [], found["said"]
    expected: dict[str, Any] = {name: facts[name] for name in EXACT} | {"began": facts.get("began")}
    assert {name: found[name] for name in expected} == expected, found["said"]


def test_there_are_enough_of_enough_clients() -> None:
    assert len(FACTS) >= 30
    families = {name for name in _FAMILIES if any(facts["family"].startswith(name) for facts in FACTS)}
    assert families == set(_FAMILIES)
    assert len({facts["thread"] for facts in FACTS}) >= 30


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts["file"])
def test_the_facts_are_whole(facts: Facts) -> None:
    assert _THREAD.fullmatch(facts["thread"])
    assert facts["where"]
    assert facts["family"]
    assert re.fullmatch(r"[\w.-]+\.log", facts["file"])
    assert re.fullmatch("[0-9a-f]{64}", facts["sha256"])
    assert set(facts["events"]) <= _KINDS
    assert all(count > 0 for count in facts["events"].values())
    assert set(facts["findings"]) <= set(_FINDINGS)
    n_told = sum(facts["events"].values()) + facts["not_understood"]
    assert n_told <= facts["n_lines"]
    assert n_told or facts["never"], "of a text that holds nothing, what must not be reported"
    assert facts["never"] or facts["says"] or not facts["findings"]
    for name in ("groups", "members", "generations", "findings"):
        assert facts[name] == sorted(facts[name])


def test_no_line_of_a_thread_is_kept() -> None:
    beginnings = [facts[name] for facts in FACTS for name in ("first", "last")]
    assert max(map(len, beginnings)) <= 40
    assert len({facts["file"] for facts in FACTS}) == len(FACTS)


def test_a_copy_with_other_spaces_is_the_same_text() -> None:
    assert normal("\n a  b \t\n\nc\r\n\n") == " a  b\n\nc\n"
    assert digest("a\n") == digest("a \r\n\n") != digest("b\n")


def test_reported_texts_are_compared_whole(tmp_path: Path) -> None:
    log = tmp_path / "pasted.log"
    log.write_text(
        "2021-02-03T04:05:06.007Z INFO [Consumer clientId=c, groupId=g] Successfully joined group with generation 7\n"
        "2021-02-03T04:05:07.007Z INFO about a rebalance that nobody knows\n"
    )
    found = told(read_rebalances(None, str(log)))
    assert found.pop("said").startswith("2021-02-03 04:05:06 UTC Group g: c joined generation 7")
    assert found == {
        "events": {"joined": 1}, "groups": ["g"], "members": [], "generations": [7], "not_understood": 1,
        "began": datetime(2021, 2, 3, 4, 5, 6, 7000, tzinfo=UTC), "findings": ["unfinished"],
    }  # fmt: skip
