"""Which groups of a snapshot may be toggled, and what the others are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from kit.migrate.fleet.plan import MEMBERS, FleetPlanRequest, fleet, plan_from
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, ZOOKEEPER, Group, Member, ReadTiming
from tests.models.fleet import ToyFleet

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def rows_of(age_s: float, min_stable_s: float) -> dict[str, object]:
    """The row of a group of one MEZKCC that registered so long ago, by two clocks."""
    at = NOW - timedelta(seconds=age_s)
    rows = {
        "groups": [Group("g", ZOOKEEPER, None, None, None, None, None)],
        "members": [Member("g", ZOOKEEPER, "g_1", None, None, None, None, True, at, None)],
        "read_timings": [ReadTiming("metadata", NOW, 1.0, 1)],
    }
    frames = {table.name: pl.DataFrame(table.from_rows(rows.get(table.name, []))) for table in tables.ALL}
    stamped = {name: frame.with_columns(snapshot_id=pl.lit("s"), observed_at=NOW) for name, frame in frames.items()}
    return fleet(Snapshot("s", **stamped), "kafka", min_stable_s).row(0, named=True)


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


def test_groups_that_a_plan_leaves_are_a_risk_and_none_is_not():
    toy = ToyFleet("a", "b", "c")
    request = FleetPlanRequest(KAFKA, wave=1)
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ()
    toy.old = {"b"}
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ("1 of 3 groups are left as they are.",)
