"""Dual write is watched, whatever the clocks of ZooKeeper, controllers and this machine say."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from kit.errors import ConnectError
from kit.kraft import status as kraft
from kit.kraft.analyze.contradictions import SILENT, findings
from kit.kraft.analyze.phase import Facts
from kit.kraft.metadata_log.image import Image, Value
from kit.kraft.move.cluster_state import ClusterState, contradictions
from kit.kraft.status import Readers, watched
from tests.kraft_records import AT, SOUND, WAITING, control
from tests.unit.kraft.move.move_plans import PROFILE
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

AHEAD = replace(SOUND, control=control(read_at=AT + timedelta(hours=1)))
"""This machine's clock is an hour ahead of ZooKeeper's."""


class Moving(ZookeeperInMemory):
    """``/migration`` holds each of these offsets for one read; the last offset stays. A read begins with a sync."""

    def __init__(self, *offsets: int) -> None:
        super().__init__()
        self.offsets = list(offsets)

    def sync_async(self, path: str) -> Any:
        offset = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        ids = {"kraft_controller_id": 3000, "kraft_controller_epoch": 1, "kraft_metadata_epoch": 1}
        self.put("/migration", json.dumps({"version": 0, "kraft_metadata_offset": offset, **ids}).encode())
        return super().sync_async(path)


class Gone(ZookeeperInMemory):
    def sync_async(self, path: str) -> Any:
        raise TimeoutError


@pytest.fixture
def watch():
    """Return the function by which a plan watches, with a clock that only sleep moves."""
    at = [0.0]
    return partial(watched, monotonic=lambda: at[0], sleep=lambda seconds: at.append(at.pop() + seconds))


def test_one_that_moves_while_it_is_watched_is_well_by_any_clock(watch):
    seen = watch(Moving(79, 79, 80), AHEAD)
    assert 0 < seen.stood_still_s < 1
    assert findings(seen) == []


def test_a_checkpoint_that_does_not_move_while_it_is_watched_is_stalled_by_any_clock(watch):
    behind = replace(SOUND, control=control(read_at=AT - timedelta(hours=1)))
    for facts in (SOUND, AHEAD, behind):
        seen = watch(Moving(79), facts)
        assert seen.stood_still_s > SILENT.total_seconds()
        assert [each.check_id for each in findings(seen)] == ["P02"]


def test_a_quorum_that_writes_nothing_is_not_asked_to_move(watch):
    """With metadata.max.idle.interval.ms=0 that may be so for hours."""
    at_rest, zookeeper = replace(SOUND, has_moved_on=False), Moving(79)
    assert watch(zookeeper, at_rest) == at_rest
    assert zookeeper.asked == []
    assert findings(replace(at_rest, behind=2 * SILENT)) == []
    behind = watch(zookeeper, replace(SOUND, has_moved_on=True))
    assert [each.check_id for each in findings(behind)] == ["P02"]


@pytest.mark.parametrize(
    "facts", [WAITING, replace(SOUND, zk_state="POST_MIGRATION"), replace(SOUND, behind=2 * SILENT)]
)
def test_only_dual_write_that_may_continue_is_watched(facts: Facts):
    zookeeper = Moving(79)
    assert watched(zookeeper, facts) == facts
    assert zookeeper.asked == []
    assert watched(None, SOUND) == SOUND


@pytest.mark.parametrize(("moved_to", "is_late"), [(99, False), (50, True)])
def test_figures_of_the_log_are_no_older_than_the_read_of_the_log(moved_to, is_late):
    """A record a second. Nodes that are silent, and a big log, take longer than dual write may is stalled."""
    items = pl.DataFrame({"kind": ["migration"], "value": ["MIGRATION"]})
    image = Image(migration_state=Value({}, 5))
    log = SimpleNamespace(
        behind=lambda offset: timedelta(seconds=99 - offset),
        has_moved_on=lambda offset: offset < 99,
        image=image,
        items=items,
        types={},
    )
    readers = Readers(lambda *given: list(SOUND.nodes), lambda controllers: log)
    cluster = SimpleNamespace(zookeeper=Moving(50, moved_to), profile=PROFILE, cluster_id="abc")
    found = findings(kraft.read_facts(cluster, {1: "host:9092"}, readers))
    assert [each.check_id for each in found] == (["P02"] if is_late else [])


def test_a_zookeeper_that_stops_answering_meanwhile_is_an_error_of_a_fact():
    seen = watched(Gone(), SOUND)
    assert (seen.control, seen.control_error) == (None, "ZooKeeper fake:1 stopped answering: TimeoutError()")


def test_a_plan_does_not_continue_where_zookeeper_stops_answering_while_it_is_watched():
    held = ClusterState(SOUND, {1: "host:9092"})
    with pytest.raises(ConnectError, match="could not be read: ZooKeeper fake:1 stopped answering"):
        contradictions(SimpleNamespace(zookeeper=Gone()), held)


def test_facts_that_forbid_a_plan_are_watched_too(watch):
    held = ClusterState(AHEAD, {1: "host:9092"})
    silent, moving = (SimpleNamespace(zookeeper=Moving(offset)) for offset in (79, 80))
    assert [each.check_id for each in contradictions(silent, held, watch)] == ["P02"]
    assert contradictions(moving, held, watch) == []
