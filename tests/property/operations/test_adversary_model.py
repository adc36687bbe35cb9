"""The adversary's model reports a group what kit's own analysis reports the rows that a read of it would give."""

from __future__ import annotations

import random

import pytest

from kit.moves.fleet.plan import fleet
from kit.moves.group.group_state import FLAVOURS, group_states
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary.plans import fleet_rows, snapshot_of
from tests.adversary.process import Sight
from tests.adversary.walk import BEGINNINGS
from tests.adversary.world import ContestedCluster


@pytest.mark.parametrize("seed", range(12))
def test_a_read_of_the_model_is_what_kit_makes_of_its_rows(tmp_path, seed):
    rng = random.Random(seed)
    flavours = tuple(rng.choice(FLAVOURS) for _ in range(rng.randint(1, 5)))
    world = ContestedCluster(
        tmp_path, [("a", flavours, rng.choice((None, KAFKA, ZOOKEEPER))), ("b", ("OZKCC",), None)], seed
    )
    if seed % 3:
        world.settle()
    told = world.look("a")
    (found,) = group_states(snapshot_of(list(world.groups.values()), world.now()), ["a"])
    for name in ("stage", "effective_mode", "mode", "mode_version", "members", "owners", "kafka_state", "embedded"):
        assert getattr(found, name) == getattr(told, name), name
    for name in ("threads", "subscribed", "offsets"):
        assert dict(getattr(found, name)) == dict(getattr(told, name)), name
    assert (found.is_settled, found.follows_kafka, found.assignor) == (
        told.is_settled,
        told.follows_kafka,
        told.assignor,
    )
    assert ("unsafe_mix" in found.blockers) == ("unsafe_mix" in told.blockers)


@pytest.mark.parametrize("to", [KAFKA, ZOOKEEPER])
@pytest.mark.parametrize("seed", range(6))
def test_a_fleet_of_the_model_is_what_kit_makes_of_its_rows(tmp_path, seed, to):
    rng = random.Random(seed)
    beginnings = [rng.choice(BEGINNINGS) for _ in range(3)]
    world = ContestedCluster(tmp_path, [(name, *each) for name, each in zip("abc", beginnings)], seed)
    world.settle()
    told = fleet_rows(Sight({name: world.look(name) for name in "abc"}), to, 0)
    found = fleet(snapshot_of(list(world.groups.values()), world.now()), to, 0).select(told.columns)
    assert found.rows() == told.rows()
