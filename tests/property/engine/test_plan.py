"""Plans of any values: the way through a file keeps them and their digest, and no edit of it goes unseen."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings, strategies as st

from kit.engine.model.observation import Observation, differences
from kit.engine.model.plan import parse_plan
from kit.engine.model.values import parse_json, readable
from kit.errors import InputError, PlanError
from tests.models.engine import make_plan

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))


def plan_of(parameters):
    try:
        return make_plan((1,), parameters=parameters)
    except InputError:
        assume(False)


def places(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(text, values, max_size=3))
def test_through_a_file_a_plan_stays_what_it_is(parameters):
    plan = plan_of(parameters)
    loaded = parse_plan(parse_json(readable(plan.to_json())), "here")
    assert loaded == plan
    assert loaded.digest == plan.digest


@settings(max_examples=80, deadline=None)
@given(parameters=st.dictionaries(text, values, max_size=3), new=leaves, data=st.data())
def test_no_edit_of_a_file_goes_unseen(parameters, new, data):
    edited = json.loads(readable(plan_of(parameters).to_json()))
    *way, last = data.draw(st.sampled_from([place for place in places(edited) if place]))
    inner = edited
    for key in way:
        inner = inner[key]
    assume(json.dumps(inner[last]) != json.dumps(new))
    inner[last] = new
    with pytest.raises(PlanError):
        parse_plan(edited, "here")


@settings(max_examples=60, deadline=None)
@given(value=values, other=values)
def test_nothing_differs_from_itself_and_a_difference_is_seen_from_both_sides(value, other):
    assert differences({"it": Observation(value)}, {"it": value}) == ()
    there = differences({"it": Observation(value)}, {"it": other})
    back = differences({"it": Observation(other)}, {"it": value})
    assert {(it.item, it.expected, it.found) for it in there} == {(it.item, it.found, it.expected) for it in back}
