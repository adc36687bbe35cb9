"""Rules for moving a group: what isn't known blocks as well as what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.errors import UnsafePlan
from kit.migrate.checks import raise_if_unsafe
from kit.migrate.group_rules import GROWN_BY, Limits, findings
from tests.unit.toy_desk import GROUP, ToyGroup


@pytest.fixture
def looks():
    toy = ToyGroup()
    return toy.look(GROUP), toy.look(GROUP)


def found(looks, name):
    (rule,) = [each for each in findings(*looks, "canary MEZKCC", Limits()) if each.rule.name == name]
    return rule


def with_end(standing, end):
    return replace(standing, positions={pair: replace(each, log_end=end) for pair, each in standing.positions.items()})


def test_a_lag_that_stands_still_is_well(looks):
    assert found(looks, "lag").is_met is True


def test_a_lag_that_is_not_known_blocks(looks):
    before, now = looks
    lag = found((before, with_end(now, None)), "lag")
    assert lag.is_met is None
    assert "The lag of 6 partitions is not known." in lag.sentence
    with pytest.raises(UnsafePlan, match="lag"):
        raise_if_unsafe([lag], ())
    assert "lag" in raise_if_unsafe([lag], ["lag"])


def test_a_lag_that_grows_blocks(looks):
    before, now = looks
    end = max(position.kafka or position.zookeeper for position in now.positions.values()) + GROWN_BY
    assert found((before, with_end(now, end)), "lag").is_met is False


def test_a_member_that_came_between_two_looks_is_not_stable(looks):
    before, now = looks
    fewer = replace(before, members=before.members[1:])
    stable = found((fewer, now), "stable")
    assert (stable.is_met, stable.sentence) == (False, "A member came or went between the two looks.")
