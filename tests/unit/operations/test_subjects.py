"""Each subject registers what it has in one file of its own; the frame names no subject."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import kit
from kit import subjects
from kit.errors import PlanError
from kit.operations import frames
from kit.operations.kinds import all_recipes, kind_of, plan_kinds
from kit.subjects import Verb
from tests.models.engine import make_plan


def test_every_registration_is_in_the_list():
    files = Path(kit.__file__).parent.rglob("subject.py")
    there = {".".join(file.relative_to(Path(kit.__file__).parent).parts[:-1]) for file in files}
    assert there == set(subjects.SUBJECTS)


def test_every_place_that_is_registered_is_there():
    verbs = [verb for name in ("VERBS", "PLAN_VERBS") for verb in subjects.merged(name).values()]
    locks = [kind.lock for kind in plan_kinds()]
    places = [
        *(verb.home for verb in verbs),
        *(place for kind in plan_kinds() for place in (kind.recipes, kind.performer)),
        *(place for lock in locks for place in (lock.lock, lock.refusal) if place is not None),
        *subjects.merged("FRAMES").values(),
    ]
    assert [place for place in places if pkgutil.resolve_name(place) is None] == []
    assert [import_module(name).__all__ for name in subjects.registered("ANALYSES")]
    assert len(all_recipes()) == sum(len(kind.load_recipes()) for kind in plan_kinds())


@pytest.mark.parametrize("kind", ["group migration", "fleet toggle", "protocol migration", "deletion", "move to KRaft"])
def test_a_plan_is_of_one_kind(kind):
    plan = replace(make_plan(), kind=kind)
    assert [each.executes(plan) for each in plan_kinds()].count(True) == 1
    assert kind_of(plan).executes(plan)


def test_a_plan_of_no_kind_or_of_two_is_refused():
    plan = make_plan()
    offsets = replace(plan.steps[0], kind="kafka_offsets")
    for forged in (replace(plan, kind="x"), replace(plan, kind="group migration", steps=(offsets,))):
        with pytest.raises(PlanError, match="can't be executed by this version"):
            kind_of(forged)


def test_two_subjects_cannot_register_one_name(monkeypatch):
    first = {"lag": Verb("a:app", "A."), "own": Verb("a:app", "A.")}
    monkeypatch.setattr(subjects, "SUBJECTS", ("health", "rebalances"))
    monkeypatch.setattr(import_module("kit.health.subject"), "VERBS", first)
    monkeypatch.setattr(import_module("kit.rebalances.subject"), "VERBS", {"lag": Verb("b:app", "B.")})
    with pytest.raises(ValueError, match="two subjects register 'lag' in VERBS"):
        subjects.merged("VERBS")


def test_a_frame_that_no_subject_registered_is_none():
    with pytest.raises(AttributeError, match="no attribute 'no_such_frame'"):
        _ = frames.no_such_frame
