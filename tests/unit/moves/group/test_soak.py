"""The verdict of a soak: what isn't known is no pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.moves.group.group_state import OZKCC
from kit.moves.group.soak import verdict
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
    assert problem == "the lag of its partitions is not known, so it is not known whether the OZKCCs keep up"


def test_a_lag_that_grew_where_there_are_no_others_is_reported(looks):
    before, now = looks
    end = max(each.log_end for each in now.offsets.values())
    (problem,) = [problem for problem in verdict(before, with_end(now, end + 100), OZKCC, 10, 0) if "lag" in problem]
    assert problem.endswith(", and there are no other partitions")


def without_commits(state):
    bare = {pair: replace(each, kafka=None, zookeeper=None) for pair, each in state.offsets.items()}
    return replace(state, offsets=bare)


def test_if_nothing_was_ever_committed_and_nothing_came_no_lag_grew(looks):
    before, now = (with_end(without_commits(each), 7) for each in looks)
    assert [problem for problem in verdict(before, now, OZKCC, 10, 0) if "lag" in problem] == []
    (problem,) = [problem for problem in verdict(before, with_end(now, 8), OZKCC, 10, 0) if "lag" in problem]
    assert problem.startswith("the lag of its partitions is not known")


def test_a_first_commit_during_the_soak_is_no_unknown_lag(looks):
    before, now = looks
    assert [problem for problem in verdict(without_commits(before), now, OZKCC, 10, 0) if "lag" in problem] == []
