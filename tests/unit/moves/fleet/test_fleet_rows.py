"""The groups of a snapshot that may be toggled, and the reasons of the rest."""

from __future__ import annotations

import polars as pl

from kit.moves.fleet.plan import BLOCKER, MEMBERS, FleetPlanRequest, fleet, plan_from, with_later_offsets
from kit.operations import frames
from kit.tables.groups import KAFKA
from tests.generators.snapshots import with_each_group
from tests.models.fleet import ToyFleet
from tests.unit.moves.fleet.one_mezkcc import one_mezkcc

AGES_S = {
    700: None,
    5: "the newest member registered 5 s ago",
    -30: "the newest member registered 30 s in the future: set ZooKeeper's clock or this one",
}


def test_the_age_of_members_is_known():
    rows = fleet(with_each_group({str(age_s): one_mezkcc(age_s) for age_s in AGES_S}), "kafka", 600.0)
    told = {row["group_id"]: (row["not_ready_code"], row["not_ready_reason"]) for row in rows.to_dicts()}
    assert told == {str(age_s): (reason and MEMBERS, reason) for age_s, reason in AGES_S.items()}


def test_if_no_age_is_asked_for_clocks_that_differ_hinder_nothing():
    assert fleet(one_mezkcc(-30), "kafka", 0.0)["not_ready_reason"].to_list() == [None]


LATER_OFFSETS: dict[str, tuple[dict[str, int], str | None]] = {
    "the commit that Kafka's read met has reached ZooKeeper": ({"zookeeper": 10, "kafka": 15}, None),
    "ZooKeeper is beyond it": ({"zookeeper": 12, "kafka": 15}, None),
    "ZooKeeper is before it": ({"zookeeper": 9, "kafka": 15}, BLOCKER),
    "neither moved": ({"zookeeper": 5, "kafka": 10}, BLOCKER),
    "ZooKeeper has none": ({"kafka": 10}, BLOCKER),
}


def test_a_commit_between_the_reads_of_the_two_stores_is_no_blocker():
    at_first = with_each_group(dict.fromkeys(LATER_OFFSETS, one_mezkcc(700, zookeeper=5, kafka=10)))
    assert fleet(at_first, "kafka", 0.0)["not_ready_code"].to_list() == [BLOCKER] * len(LATER_OFFSETS)
    later = with_each_group({name: one_mezkcc(700, **offsets) for name, (offsets, _) in LATER_OFFSETS.items()})
    mended = fleet(with_later_offsets(at_first, later, LATER_OFFSETS), "kafka", 0.0)
    told = dict(mended.select("group_id", "not_ready_code").iter_rows())
    assert told == {name: code for name, (_, code) in LATER_OFFSETS.items()}


def test_only_the_groups_that_were_read_again_are_replaced():
    at_first = one_mezkcc(700, zookeeper=5, kafka=10)
    kept = with_later_offsets(at_first, one_mezkcc(700, zookeeper=10), ["other"])
    assert kept.committed_offsets.equals(at_first.committed_offsets)


def test_groups_that_a_plan_leaves_are_a_risk_and_none_is_not():
    toy = ToyFleet("a", "b", "c")
    request = FleetPlanRequest(KAFKA, wave=1)
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ()
    toy.old = {"b"}
    assert plan_from(toy.scan(), "toy", request, "ann").risks == ("Not changed: 1 of 3 groups.",)


def test_in_a_notebook_those_that_are_ready_come_first_then_reason_by_reason():
    reasons = {"a": "the group's stage is OZKCC", "b": "a blocker", "c": "the group's stage is OZKCC", "d": None}
    rows = pl.DataFrame({"group_id": list(reasons), "not_ready_reason": list(reasons.values())})
    shown = frames.groups(rows.with_columns(stage=pl.lit("s"), mode=pl.lit("m"), n_members=1))
    assert shown["group_id"].to_list() == ["d", "b", "a", "c"]
    assert shown["ready"].to_list()[:2] == ["✓ yes", "✗ no"]
