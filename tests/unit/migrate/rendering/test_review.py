"""The page of a run answers a reviewer first, in sentences, and shows when what was done."""

from __future__ import annotations

import json
import re

import pytest

from kit.migrate.rendering.pages import record_html
from kit.migrate.rendering.review import answers
from kit.migrate.rendering.text import worded, worded_json
from kit.migrate.rendering.timeline import timeline_svg
from tests.models.engine import World


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("review"), (2, 1), made_by="Ann")
    world.run.act()
    return world.run.record


def test_who_what_and_how_long_stand_first(record):
    told = dict(answers(record))
    assert list(told) == ["Who", "What", "How long", "Stood still", "Lost, twice"]
    assert re.match(r"Ann planned it at .* UTC\. Bob approved it at .* UTC\. offramp act began on ", told["Who"])
    assert told["What"].endswith("Of 3 changes: 3 CONFIRMED.")
    assert told["Stood still"] == "Not measured: the run verified no toggle."
    page = record_html(record)
    assert page.index("Ann planned it") < page.index("<svg") < page.index("<h2>Approval")


def test_the_picture_has_a_line_per_step_and_per_item_of_several(record):
    svg = timeline_svg(record)
    labels = re.findall(r'<text class="" [^>]*>([^<]+)</text>', svg)
    assert labels == [f"1. {record.plan.steps[0].title}", "i00", "i01", f"2. {record.plan.steps[1].title}"]
    assert "url(" not in svg


def test_values_are_words():
    assert worded({"OZKCC": ["a", "b"], "KC": [], "x": {"y": 1}}) == "OZKCC: a, b; KC: none; x: (y: 1)"
    member = {"flavour": "KC", "member": "m-1", "host": "h", "said": "m-0 stopped"}
    assert worded_json(json.dumps(member)) == "KC m-1 on h; the deployer said: m-0 stopped"
    assert [worded_json(text) for text in (None, "null", '"kafka"', "true", "not JSON")] == [
        None,
        "–",
        "kafka",
        "yes",
        "not JSON",
    ]
