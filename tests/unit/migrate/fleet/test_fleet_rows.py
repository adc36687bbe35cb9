"""Which groups of a snapshot may be toggled, and what the others are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from kit.migrate import frames
from kit.migrate.fleet.plan import BLOCKER, MEMBERS, FleetPlanRequest, fleet, plan_from, with_later_offsets
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, ZOOKEEPER, CommittedOffset, Group, Member, ReadTiming
from tests.models.fleet import ToyFleet

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def snapshot_of(age_s: float, **offsets: int) -> Snapshot[pl.DataFrame]:
    """A group of one MEZKCC that registered so long ago, by two clocks, and what each store holds."""
    at = NOW - timedelta(seconds=age_s)
    rows = {
        "groups": [Group("g", ZOOKEEPER, None, None, None, None, None)],
        "members": [Member("g", ZOOKEEPER, "g_1", None, None, None, None, True, at, None)],
        "committed_offsets": [
            CommittedOffset("g", store, "t", 0, offset, None, None, None, None, None)
            for store, offset in offsets.items()
        ],
        "read_timings": [ReadTiming("metadata", NOW, 1.0, 1)],
    }
    frames = {table.name: pl.DataFrame(table.from_rows(rows.get(table.name, []))) for table in tables.ALL}
    stamped = {name: frame.with_columns(snapshot_id=pl.lit("s"), observed_at=NOW) for name, frame in frames.items()}
    return Snapshot("s", **stamped)


def rows_of(age_s: float, min_stable_s: float) -> dict[str, object]:
    """The group's row."""
    return fleet(snapshot_of(age_s), "kafka", min_stable_s).row(0, named=True)


@pytest.mark.parametrize(
    ("age_s", "told"),
    [
        (700, None),
        (5, "its newest member registered 5 s ago"),
        (-30, "its newest member registered 30 s in the future: set ZooKeeper's clock or this one"),
    ],
)
def test_how_long_members_are_there(age_s, told):
    row = rows_of(age_s, 600.0)
    assert (row["not_ready_code"], row["not_ready_reason"]) == (told and MEMBERS, told)


def test_where_no_age_is_asked_for_clocks_that_differ_hinder_nothing():
    assert rows_of(-30, 0.0)["not_ready_reason"] is None


@pytest.mark.parametrize(
    ("later", "not_ready_code"),
    [
        ({"zookeeper": 10, "kafka": 15}, None),  # the commit that Kafka's read met has reached ZooKeeper
        ({"zookeeper": 12, "kafka": 15}, None),
        ({"zookeeper": 9, "kafka": 15}, BLOCKER),
        ({"zookeeper": 5, "kafka": 10}, BLOCKER),
        ({"kafka": 10}, BLOCKER),
    ],
)
def test_a_commit_between_the_reads_of_the_two_stores_is_no_blocker(later, not_ready_code):
    at_first = snapshot_of(700, zookeeper=5, kafka=10)
    assert fleet(at_first, "kafka", 0.0)["not_ready_code"].to_list() == [BLOCKER]
    mended = with_later_offsets(at_first, snapshot_of(700, **later), ["g"])
    assert fleet(mended, "kafka", 0.0)["not_ready_code"].to_list() == [not_ready_code]


def test_only_the_groups_that_were_read_again_are_replaced():
    at_first = snapshot_of(700, zookeeper=5, kafka=10)
    kept = with_later_offsets(at_first, snapshot_of(700, zookeeper=10), ["other"])
    assert kept.committed_offsets.equals(at_first.committed_offsets)


def test_groups_that_a_plan_leaves_are_a_risk_and_none_is_not():
    toy = ToyFleet("a", "b", "c")
    request = FleetPlanRequest(KAFKA, wave=1)
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ()
    toy.old = {"b"}
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ("Not changed: 1 of 3 groups.",)


def test_in_a_notebook_those_that_are_ready_come_first_then_reason_by_reason():
    reasons = {"a": "its stage is OZKCC", "b": "a blocker", "c": "its stage is OZKCC", "d": None}
    rows = pl.DataFrame({"group_id": list(reasons), "not_ready_reason": list(reasons.values())})
    shown = frames.groups(rows.with_columns(stage=pl.lit("s"), mode=pl.lit("m"), n_members=1))
    assert shown["group_id"].to_list() == ["d", "b", "a", "c"]
    assert shown["ready"].to_list()[:2] == ["✓ yes", "✗ no"]
