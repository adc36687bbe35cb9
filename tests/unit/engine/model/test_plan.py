"""Plans: what is refused, that a digest is one digest, and that nobody edits a file unseen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from kit.engine.model.observation import Observation, differences
from kit.engine.model.plan import load_plan, parse_plan, save_plan
from kit.engine.model.step import Change, Step
from kit.engine.model.values import digest_of, readable
from kit.errors import InputError, NothingToDo, PlanError
from tests.generators.names import SECRET_LIKE
from tests.models.engine import START, make_plan

STEP = {"step_id": "s", "kind": "k", "title": "t", "precondition": "p", "verification": "v", "deadline_s": 1}


def a_step(**changed):
    return Step(**{**STEP, "undo": "write it back", "changes": (Change("mode", "zookeeper", "kafka"),), **changed})


def edited(tmp_path, mend):
    path = tmp_path / "plan.json"
    save_plan(make_plan(parameters={"waves": [1, 2]}, risks=("a pause",)), path)
    data = json.loads(path.read_text())
    mend(data)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"steps": ()}, NothingToDo, "nothing would change"),
        ({"steps": (a_step(changes=()),)}, NothingToDo, "nothing would change"),
        ({"targets": ()}, PlanError, "groups or the cluster it concerns"),
        ({"targets": ("a", "a")}, PlanError, "each once"),
        ({"kind": " "}, PlanError, "its kind"),
        ({"made_by": ""}, PlanError, "its made_by"),
        ({"cluster_id": ""}, PlanError, "its cluster_id"),
        ({"on_failure": "shrug"}, PlanError, "'stop' or 'undo'"),
        ({"steps": (a_step(), a_step())}, PlanError, "same step_id"),
        ({"steps": (a_step(affects=("owners",)),)}, PlanError, "'owners', which was not observed"),
        (
            {"steps": (a_step(undo=None, cannot_be_undone="gone"),), "on_failure": "undo"},
            PlanError,
            "'s' cannot be undone",
        ),
        ({"made_at": datetime(2026, 1, 1)}, InputError, "without a time zone"),
        ({"parameters": {"rate": float("nan")}}, InputError, "JSON can't hold"),
        ({"parameters": {"when": START}}, InputError, "parameters/when is a datetime"),
        ({"parameters": {"name": "\udcff"}}, InputError, "no Unicode"),
    ],
)
def test_a_plan_that_is_refused(changed, error, said):
    with pytest.raises(error, match=said):
        make_plan(**changed)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"undo": None}, "either an undo or a reason why"),
        ({"cannot_be_undone": "gone"}, "either an undo or a reason why"),
        ({"deadline_s": 0}, "deadline of 0"),
        ({"deadline_s": float("inf")}, "deadline of inf"),
        ({"title": ""}, "no title"),
        ({"changes": (Change("a", 1, 2), Change("a", 2, 3))}, "one item twice"),
    ],
)
def test_a_step_that_is_refused(changed, said):
    with pytest.raises(PlanError, match=said):
        a_step(**changed)


def test_a_change_has_to_change_something():
    with pytest.raises(PlanError, match="that is no change"):
        Change("mode", {"a": [1]}, {"a": (1,)})


@pytest.mark.parametrize("name", SECRET_LIKE)
def test_no_name_is_tested_as_a_secret(name):
    """Target, item, observation and key of a mapping may be secrets, with a text as the value."""
    plan = make_plan(
        targets=(name,),
        made_by=name,
        parameters={"groups": {name: "kafka"}, "modes": {name: {name: name}}, "pattern": name},
        observed={name: Observation({name: "zookeeper"})} | {it: Observation(1) for it in ("members", "end", "values")},
        steps=(a_step(changes=(Change(name, "zookeeper", name + "x"),), parameters={"nodes": {name: name}}),),
        risks=(f"{name} is one",),
        overridden={"stable": f"{name} moved"},
    )
    assert parse_plan(json.loads(readable(plan.to_json())), "here") == plan


@pytest.mark.parametrize(
    "mend",
    [
        lambda data: data.update(cluster_id="another"),
        lambda data: data["steps"][0]["changes"][0].update(after="else"),
        lambda data: data["steps"].reverse(),
        lambda data: data["observed"]["members"].update(value=4),
        lambda data: data["observed"]["members"].update(tolerance="ignored"),
        lambda data: data["risks"].clear(),
        lambda data: data["overridden"].update(rule="told"),
        lambda data: data.update(digest="0" * 64),
        lambda data: data.update(note="harmless"),
        lambda data: data["parameters"]["waves"].append(3),
    ],
)
def test_a_file_edited_manually_is_refused(tmp_path, mend):
    with pytest.raises(PlanError, match="was edited after it was made"):
        load_plan(edited(tmp_path, mend))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a plan"),
        ("[]", "is not a plan"),
        ('{"digest": "x", "digest": "y"}', "a key occurs twice"),
        ('{"digest": "x", "format": 99}', "format 99"),
        ('{"digest": NaN}', "NaN is not JSON"),
    ],
)
def test_a_file_that_is_no_plan(tmp_path, text, said):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(PlanError, match=said):
        load_plan(path)
    with pytest.raises(PlanError, match="can't be read"):
        load_plan(tmp_path / "none.json")


def test_a_plan_with_a_right_digest_over_wrong_content_is_refused(tmp_path):
    def forged(**changed):
        def mend(data):
            data.update(changed)
            del data["digest"]
            data["digest"] = digest_of(data)

        return edited(tmp_path, mend)

    for changed, said in (
        ({"steps": [{**STEP, "changes": []}]}, "either an undo"),
        ({"note": "harmless"}, "unexpected keyword argument 'note'"),
        ({"made_at": "2026-11-21T13:00:00+01:00"}, "has a field that no plan has"),
    ):
        with pytest.raises(PlanError, match=said):
            load_plan(forged(**changed))


def test_a_saved_plan_comes_back_with_its_digest(tmp_path):
    plan = make_plan((2, 0, 1), parameters={"größe": [1.5, {"b": None}]}, risks=("a",), overridden={"r": "told"})
    save_plan(plan, tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded == plan
    assert loaded.digest == plan.digest
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_the_digest_is_over_everything_and_not_over_spelling():
    plan = make_plan()
    elsewhere = make_plan(made_at=START.astimezone(timezone(timedelta(hours=5))))
    assert elsewhere.digest == plan.digest
    others = [
        make_plan(kind="x"),
        make_plan(cluster_id="x"),
        make_plan(targets=("x",)),
        make_plan(made_by="x"),
        make_plan(made_at=START + timedelta(microseconds=1)),
        make_plan(ignore=True),
        make_plan((2, 3)),
        make_plan(parameters={"x": 1}),
        make_plan(risks=("x",)),
        make_plan(overridden={"x": "y"}),
        make_plan(on_failure="undo"),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == len(others) + 1


def test_the_digest_is_the_same_in_another_process():
    code = "from tests.models.engine import make_plan; print(make_plan(parameters={'b': 1, 'a': 'ü'}).digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert other.stdout.strip() == make_plan(parameters={"a": "ü", "b": 1}).digest


def test_a_plan_cannot_be_changed_after_it_was_made():
    waves, steps = [1, 2], list(make_plan().steps)
    plan = make_plan(parameters={"waves": waves}, steps=steps)
    waves.append(3)
    steps.clear()
    assert len(plan.steps) == 2
    assert plan.parameters["waves"] == (1, 2)
    with pytest.raises(TypeError):
        plan.parameters["x"] = 1
    with pytest.raises(TypeError):
        plan.observed["x"] = 1
    with pytest.raises(AttributeError):
        plan.kind = "x"


@pytest.mark.parametrize(
    ("planned", "found", "moved"),
    [
        (Observation(3), 3, []),
        (Observation(3), 4, ["it: expected 3 (exact), found 4"]),
        (Observation(3), None, ["it: expected 3 (exact), found null"]),
        (Observation(True), 1, ["it: expected true (exact), found 1"]),
        (Observation("a"), "b", ['it: expected "a" (exact), found "b"']),
        (Observation(3, "may_grow"), 9, []),
        (Observation(3, "may_grow"), 2, ["it: expected 3 (may grow), found 2"]),
        (Observation(None, "may_grow"), 2, ["it: expected null (may grow), found 2"]),
        (Observation(3, "ignored"), "x", []),
        (Observation(10, "within", 2), 8, []),
        (Observation(10, "within", 2), 12.5, ["it: expected 10 (within), found 12.5"]),
        (
            Observation({"t-0": 5, "t-1": 7, "t-2": 1}, "may_grow"),
            {"t-0": 9, "t-1": 6, "t-3": 1},
            [
                "it/t-1: expected 7 (may grow), found 6",
                "it/t-2: expected 1 (may grow), found nothing",
                "it/t-3: expected nothing (may grow), found 1",
            ],
        ),
        (Observation([1, 2]), [1, 3], ["it[1]: expected 2 (exact), found 3"]),
        (Observation([1, 2]), [1], ["it: expected [1,2] (exact), found [1]"]),
    ],
)
def test_moves_beyond_the_tolerance_are_differences(planned, found, moved):
    assert [it.sentence for it in differences({"it": planned}, {"it": found})] == moved


def test_gone_and_new_values_are_differences():
    found = differences({"a": Observation(1), "b": Observation(1, "ignored")}, {"c": 2})
    assert [it.sentence for it in found] == [
        "a: expected 1 (exact), found nothing",
        "c: expected nothing (exact), found 2",
    ]


@pytest.mark.parametrize(
    "wrong", [{"tolerance": "roughly"}, {"within": 2}, {"tolerance": "within"}, {"tolerance": "within", "within": -1}]
)
def test_a_tolerance_that_is_refused(wrong):
    with pytest.raises(InputError):
        Observation(1, **wrong)
