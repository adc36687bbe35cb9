"""One line per group: a count without rows is 0, a count of a group that could not be read is unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from kit import analyze
from kit.groups import views
from kit.tables import schema as tables
from kit.tables.groups import (
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    Ownership,
    ReadError,
    Subscription,
    TopicPartition,
)
from kit.tables.polars import rows_of
from tests.generators.snapshots import snapshot_of


def test_a_group_that_could_not_be_read_has_unknown_counts():
    groups = rows_of(
        tables.GROUPS, group_id=["broken", "quiet"], source="kafka", state=[None, "Empty"], error=["refused", None]
    )
    counted = ("n_partitions", "n_unowned", "n_unknown", "n_without_commit", "n_beyond_end", "n_upper_bounds")
    counted += ("lag", "lag_retained")
    none = {"group_id": pl.String, "store": pl.String, **dict.fromkeys(counted, pl.Int64)}
    rows = analyze.group_summary(
        groups=groups,
        readiness=pl.DataFrame(
            {
                "group_id": ["broken", "quiet"],
                "stage": ["unknown", "empty"],
                "effective_mode": [None, None],
                "n_blockers": [1, 0],
            },
            schema_overrides={"effective_mode": pl.String},
        ),
        group_lag=pl.DataFrame(schema=none),
        group_balance=pl.DataFrame(schema={"group_id": pl.String, "n_members": pl.Int64, "n_idle": pl.Int64}),
        ownership_findings=pl.DataFrame(schema={"group_id": pl.String, "finding": pl.String}),
        partition_owners=pl.DataFrame(
            schema={"group_id": pl.String, "is_subscribed": pl.Boolean, "n_owners": pl.Int64}
        ),
    )
    broken, quiet = rows.sort("group_id").to_dicts()
    counts = ("n_members", "n_idle", "n_partitions", "n_unowned", "n_unknown", "n_findings")
    assert [broken[name] for name in counts] == [None] * 6
    assert [quiet[name] for name in counts] == [0] * 6
    assert broken["n_blockers"] == 1
    assert broken["error"] == "refused"
    assert (broken["attention"], quiet["attention"]) == ("could not be read", None)


def lags(**values: int | None) -> pl.DataFrame:
    counted = ("n_partitions", "n_unowned", "n_unknown", "n_without_commit", "n_beyond_end", "n_upper_bounds")
    counted += ("lag", "lag_retained")
    row = {"group_id": "g", "store": "kafka", **dict.fromkeys(counted, 0), **values}
    return pl.DataFrame([row], schema_overrides=dict.fromkeys(counted, pl.Int64))


def summary_of(group_lag: pl.DataFrame, member_error: str | None = None) -> dict[str, Any]:
    key = {"group_id": "g", "source": "kafka"}
    text = {"group_id": pl.String}
    (row,) = analyze.group_summary(
        groups=rows_of(tables.GROUPS, **key, state="Empty"),
        readiness=pl.DataFrame({"group_id": "g", "stage": "empty", "effective_mode": ["kafka"], "n_blockers": 0}),
        group_lag=group_lag,
        group_balance=pl.DataFrame(schema=text | {"n_members": pl.Int64, "n_idle": pl.Int64}),
        ownership_findings=pl.DataFrame(schema=text | {"finding": pl.String}),
        partition_owners=pl.DataFrame(schema=text | {"is_subscribed": pl.Boolean, "n_owners": pl.Int64}),
        members=rows_of(tables.MEMBERS, **key, member_id="m", error=[member_error]),
    ).to_dicts()
    return row


def test_partitions_without_an_owner_are_those_of_the_lag():
    assert summary_of(lags(n_partitions=200, n_unowned=200))["n_unowned"] == 200


@pytest.mark.parametrize(
    ("group_lag", "member_error", "is_unreadable"),
    [
        (lags(n_partitions=2, n_unknown=1, n_without_commit=1), None, False),
        (lags(n_partitions=2, n_unknown=2, n_without_commit=1), None, True),
        (lags(n_partitions=2), "the registration is not JSON", True),
        (lags(n_partitions=2), None, False),
    ],
    ids=["no commit", "an offset", "a registration", "all read"],
)
def test_a_group_of_which_something_is_unreadable_needs_attention(group_lag, member_error, is_unreadable):
    row = summary_of(group_lag, member_error)
    assert row["is_unreadable"] is is_unreadable
    assert (row["attention"] == "could not be read") is is_unreadable


@pytest.mark.parametrize(("committed", "needs"), [(9, None), (10, "commit beyond the end")])
def test_a_commit_beyond_the_end_needs_attention(committed: int, needs: str | None) -> None:
    rows = {
        "groups": [Group("g", "kafka", "Empty", *[None] * 4)],
        "committed_offsets": [CommittedOffset("g", "kafka", "t", 0, committed, *[None] * 5)],
        "log_offsets": [LogOffset("t", 0, 0, 9)],
        "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
    }
    (row,) = views.summary(snapshot_of(rows)).to_dicts()
    assert (row["attention"], row["n_beyond_end"], row["lag"]) == (needs, committed - 9, 0)


def test_a_znode_whose_name_is_not_understood_makes_its_group_unreadable():
    """The offset in it may be one of a partition with records to read."""
    rows = {
        "groups": [Group(name, "zookeeper", *[None] * 5) for name in "gh"],
        "committed_offsets": [CommittedOffset(name, "zookeeper", "t", 0, 9, *[None] * 5) for name in "gh"],
        "log_offsets": [LogOffset("t", 0, 0, 9)],
        "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
        "read_errors": [ReadError("zookeeper", "g", "t/partition_1", "consumers/g/offsets/t/partition_1", "no number")],
    }
    found = {row["group_id"]: row["attention"] for row in views.summary(snapshot_of(rows)).to_dicts()}
    assert found == {"g": "could not be read", "h": None}


def test_an_owner_znode_without_a_registration_is_no_member():
    rows = {
        "groups": [Group("g", "zookeeper", *[None] * 5)],
        "committed_offsets": [CommittedOffset("g", "zookeeper", "t", 0, 4, *[None] * 5)],
        "log_offsets": [LogOffset("t", 0, 0, 9)],
        "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
    }
    owned = {session: Ownership("g", "zookeeper", "t", 0, "g_m", "g_m-0", session, 9) for session in (7, 0)}
    for session, finding in ((7, "owner_not_registered"), (0, "persistent_owner")):
        snapshot = snapshot_of(rows | {"ownership": [owned[session]]})
        (row,) = views.summary(snapshot).to_dicts()
        assert (row["attention"], row["n_members"]) == ("no active members", 0)
        assert views.findings(snapshot)["finding"].to_list() == [finding]
    (blocker,) = views.blockers(snapshot).to_dicts()
    assert blocker["blocker"] == "persistent_znodes"
    assert blocker["sentence"].endswith("offramp plan delete-znodes GROUP.")
    assert views.readiness(snapshot)["next_step"][0] == "Clear 1 blocker before a consumer is started."


def test_a_persistent_registration_is_found_and_is_no_member():
    member = Member("g", "zookeeper", "g_m", None, None, None, "static", False, None, 0)
    rows = {"groups": [Group("g", "zookeeper", *[None] * 5)], "members": [member]}
    for session, n_members, n_idle, stage in ((0, 0, 0, "empty"), (5, 1, 1, "OZKCC"), (None, 1, 1, "OZKCC")):
        (row,) = views.summary(snapshot_of(rows | {"members": [replace(member, session_id=session)]})).to_dicts()
        assert (row["n_members"], row["n_idle"], row["stage"]) == (n_members, n_idle, stage)
    (found,) = views.findings(snapshot_of(rows)).to_dicts()
    assert (found["finding"], found["topic"], found["member_id"]) == ("persistent_member", None, "g_m")
    assert views.findings(snapshot_of(rows | {"members": [replace(member, session_id=5)]})).is_empty()


@pytest.mark.parametrize(("group_type", "needs"), [("classic", "read twice"), ("share", None)])
def test_several_owners_are_right_in_a_share_group_alone(group_type: str, needs: str | None) -> None:
    is_share = group_type == "share"
    members = [Member("g", "kafka", name, "c", "h", *[None] * 5) for name in "ab"]
    rows = {
        "groups": [Group("g", "kafka", "Stable", group_type, group_type, None, 1)],
        "members": members,
        "ownership": [Ownership("g", "kafka", "t", 0, each.member_id, *[None] * 4, is_share) for each in members],
        "subscriptions": [Subscription("g", "kafka", each.member_id, "t", 1) for each in members],
        "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
        "committed_offsets": [CommittedOffset("g", "kafka", "t", 0, 5, *[None] * 6, 2 if is_share else None)],
        "log_offsets": [LogOffset("t", 0, 0, 9)],
    }
    snapshot = snapshot_of(rows)
    (row,) = views.summary(snapshot).to_dicts()
    assert (row["attention"], row["n_idle"], row["lag"]) == (needs, 0, 2 if is_share else 4)
    assert views.findings(snapshot).is_empty() == is_share
    assert views.shares(snapshot)["fair_share"].to_list() == ([None, None] if is_share else [0.5, 0.5])
