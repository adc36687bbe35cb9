"""The page of a run answers a reviewer first, in sentences, and shows when what was done."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from kit.engine.model.event import at
from kit.engine.model.plan import Consent, Observation
from kit.engine.rendering.pages import record_html
from kit.engine.rendering.review import answers, heading, stood_still
from kit.engine.rendering.text import change_sentence, worded, worded_json
from kit.engine.rendering.timeline import timeline_svg
from kit.operations import evidence
from tests.models.engine import ModelRun
from widgets.run import html


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    world = ModelRun(tmp_path_factory.mktemp("review"), (2, 1), made_by="Ann")
    world.run.act()
    return world.run.record


def test_person_action_and_duration_come_first(record):
    told = dict(answers(record))
    assert list(told) == ["Who", "What", "How long", "Consumption stopped", "Lost, twice"]
    assert re.match(r"Ann planned it at .* UTC\. Bob approved it at .* UTC\. offramp act began on ", told["Who"])
    assert told["What"].endswith("Of 3 changes: 3 CONFIRMED.")
    assert told["Consumption stopped"] == "Not measured: the run verified no toggle."
    page = record_html(record)
    assert page.index("Ann planned it") < page.index("<svg") < page.index("<h2>Approval")


@pytest.mark.parametrize(
    ("observed", "parameters", "consent", "told"),
    [
        ({"stage": "OZKCC"}, {"to_stage": "canary MEZKCC"}, None, "g0: OZKCC → canary MEZKCC"),
        ({"stage": "classic"}, {"to_protocol": "consumer"}, None, "g0: classic → consumer"),
        ({"stage": {"g0": "classic"}}, {"to_protocol": "consumer"}, None, "g0: model"),
        (
            {"phase": "dual write"},
            {"to_phase": "kraft", "cluster": "production"},
            Consent("move to kraft production"),
            "production: dual write → kraft",
        ),
    ],
)
def test_the_heading_names_the_way_and_the_state(record, observed, parameters, consent, told):
    seen = {name: Observation(value) for name, value in observed.items()}
    plan = replace(
        record.plan,
        kind="model",
        targets=("g0",),
        observed={**record.plan.observed, **seen},
        parameters=parameters,
        consent=consent,
    )
    moved = replace(record, plan=plan)
    assert heading(moved) == f"{told} – VERIFIED"
    assert f"<h1>{told} – VERIFIED</h1>" in record_html(moved)


@pytest.mark.parametrize(
    ("changed", "longest", "watched", "told"),
    [
        (4, 0, "every 200 ms", "4 partitions got another owner znode; no partition was seen without an owner (read "
         "every 200 ms: shorter changes may have been missed)."),
        (1, 1200, "each change", "1 partition got another owner znode; the longest time that a partition was "
         "seen without an owner is 1,200 ms, from the notice of a deletion to the next creation (ZooKeeper "
         "reported each "
         "change)."),
        (0, None, "with interruptions", "no owner znode was seen to change (the connection to ZooKeeper broke: changes "
         "may have been missed)."),
        (2, 0, None, "2 partitions got another owner znode; no partition was seen without an owner (an earlier "
         "release of offramp did not record how the changes were observed)."),
        (None, None, None, "not measured, because this process did not watch the owner znodes."),
    ],
)  # fmt: skip
def test_the_time_for_which_partitions_were_stalled_is_reported_as_it_was_measured(
    record, changed, longest, watched, told
):
    """The 0 ms of a watch say what was seen, not how long nobody owned a partition."""
    found = {"partitions_that_changed_hands": changed, "longest_unowned_ms": longest, "owners_watched": watched}
    event = next(event for event in record.events if event.event == "verified")
    of_toggle = replace(record, events=(replace(event, step_id="toggle", details=json.dumps(found)),))
    assert stood_still(of_toggle) == [f"toggle: {told}"]
    assert "<p>toggle: " in html.verdict(of_toggle)


def test_the_picture_has_a_line_per_step_and_per_item_of_several(record):
    svg = timeline_svg(record)
    labels = re.findall(r'<text class="" [^>]*>([^<]+)</text>', svg)
    assert labels == [f"1. {record.plan.steps[0].title}", "i00", "i01", f"2. {record.plan.steps[1].title}"]
    assert "url(" not in svg


def test_the_outcome_of_an_item_is_a_sentence(record):
    page = record_html(record)
    assert "<td>Before: old. Now: new.</td>" in page
    assert change_sentence("UNCHANGED", None, '"kafka"') == "Nothing was written. The value is kafka."
    assert change_sentence("REFUSED", None, '"kafka"') == "Nothing was written. The value was absent."
    assert change_sentence("UNKNOWN", "5", None) == "Before: 5. The present value is not known."


def test_lost_and_twice_are_counted_where_records_were_written_down_else_it_is_reported(record, tmp_path):
    assert dict(answers(record))["Lost, twice"].startswith("Not measured by the run")
    assert evidence.lost_and_twice(record)[0].startswith("Not measured: name the folders")
    during = round(at(record.events[0]).timestamp() * 1000) + 1
    write(tmp_path / "produced", "p", [(during - 60_000, 0), *((during, offset) for offset in (1, 2, 3))])
    write(tmp_path / "consumed", "shop_a", [(during, 0), (during + 1, 1), (during + 2, 2), (during + 9, 2)])
    write(tmp_path / "consumed", "other", [(during, 3)])
    folders = (tmp_path / "consumed", tmp_path / "produced")
    (first, *_) = evidence.lost_and_twice(record, *folders, "shop_.*")
    assert re.match(r"Of 3 records produced from .* UTC: lost 0, delivered twice 1\.", first)
    write(tmp_path / "consumed", "shop_b", [(during + 20, 4)])
    (first, *more) = evidence.lost_and_twice(record, *folders, "shop_.*")
    assert "lost 1, delivered twice 1." in first
    assert any("acknowledged and never delivered: 1." in sentence for sentence in more)


def write(folder, who, rows):
    folder.mkdir(exist_ok=True)
    known = {"consumer": who, "producer": who, "topic": "t", "partition": 0}
    lines = [json.dumps({**known, "at_ms": when, "offset": offset, "number": offset}) for when, offset in rows]
    (folder / f"{who}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_values_are_words():
    assert worded({"OZKCC": ["a", "b"], "KC": [], "x": {"y": 1}}) == "OZKCC: a, b; KC: none; x: (y: 1)"
    member = {"flavour": "KC", "member": "m-1", "host": "h", "said": "m-0 stopped"}
    assert worded_json(json.dumps(member)) == "KC m-1 on h; the deployer reported: m-0 stopped"
    assert [worded_json(text) for text in (None, "null", '"kafka"', "true", "not JSON")] == [
        None,
        "–",
        "kafka",
        "yes",
        "not JSON",
    ]
