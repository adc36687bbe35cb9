"""The verdict of a soak: what isn't known is no pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.migrate.group.group_state import OZKCC
from kit.migrate.group.soak import verdict
from tests.models.operations import GROUP, ToyGroup


@pytest.fixture
def looks():
    toy = ToyGroup()
    return toy.look(GROUP), toy.look(GROUP)


def with_end(state, end):
    return replace(state, offsets={pair: replace(each, log_end=end) for pair, each in state.offsets.items()})


def test_lags_that_stay_are_well(looks):
    assert [problem for problem in verdict(*looks, OZKCC, 10, 0) if "lag" in problem] == []


def test_a_lag_of_which_nothing_is_known_is_no_pass(looks):
    before, now = looks
    (problem,) = [problem for problem in verdict(before, with_end(now, None), OZKCC, 10, 0) if "lag" in problem]
    assert problem == "of none of its partitions the lag is known, so nothing says whether the OZKCCs keep up"


def test_a_lag_that_grew_where_there_are_no_others_is_told(looks):
    before, now = looks
    end = max(each.log_end for each in now.offsets.values())
    (problem,) = [problem for problem in verdict(before, with_end(now, end + 100), OZKCC, 10, 0) if "lag" in problem]
    assert problem.endswith("that of the others is not known")
