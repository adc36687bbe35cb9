"""The stage of a group in a snapshot is the one that ``kit.protocol.stage`` gives to the same members."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kit import analyze
from kit.groups import views
from kit.protocol.stage import stage_of
from kit.tables import schema as tables
from kit.tables.groups import CommittedOffset, Group, LogOffset, Member, TopicPartition
from kit.tables.polars import rows_of
from tests.generators.snapshots import snapshot_of


def stage(group_type: str | None, protocols: list[str | None], error: str | None = None) -> str | None:
    key = {"group_id": "g", "source": "kafka"}
    groups = rows_of(tables.GROUPS, **key, group_type=group_type, error=error)
    names = [f"m{number}" for number in range(len(protocols))]
    members = rows_of(tables.MEMBERS, **key, member_id=names, member_type=protocols).head(len(protocols))
    return analyze.protocol_stages(groups, members)["protocol_stage"].item()


@pytest.mark.parametrize("group_type", ["classic", "consumer", None])
def test_the_rule_is_the_one_of_a_described_group(group_type):
    for n_members in range(4):
        for protocols in itertools.product(["classic", "consumer", None], repeat=n_members):
            known = protocols if group_type == "consumer" else [each or "classic" for each in protocols]
            assert stage(group_type, list(protocols)) == stage_of(group_type, known), (group_type, protocols)


def test_a_group_that_was_not_read_is_unknown_and_a_share_group_has_no_stage():
    assert stage("classic", ["classic"], "refused") == "unknown"
    assert stage("share", [None]) is None


def test_a_group_of_zookeeper_has_no_stage():
    groups = rows_of(tables.GROUPS, group_id="g", source="zookeeper")
    members = rows_of(tables.MEMBERS, group_id="g", source="zookeeper", member_id="m")
    assert analyze.protocol_stages(groups, members).is_empty()


GROUP = Group("g", "kafka", "Empty", "consumer", "consumer", "uniform", 1)
MEMBER = Member("g", "kafka", "m", None, None, None, None, None, None, None, member_type="consumer")
ROWS = {
    "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
    "committed_offsets": [CommittedOffset("g", "kafka", "t", 0, 5, None, None, None, None, None)],
    "log_offsets": [LogOffset("t", 0, 0, 5)],
}


def summary(group: Group, members: list[Member], **rows) -> dict:
    (row,) = views.summary(snapshot_of({"groups": [group], "members": members, **ROWS, **rows})).to_dicts()
    return row


def test_offsets_of_a_consumer_group_without_members_may_expire():
    row = summary(GROUP, [])
    assert (row["protocol_stage"], row["attention"]) == ("empty", "offsets may expire")
    assert summary(replace(GROUP, group_type="classic"), [])["attention"] is None
    assert summary(replace(GROUP, state="Stable"), [MEMBER])["attention"] != "offsets may expire"
    assert summary(GROUP, [], committed_offsets=[], log_offsets=[])["attention"] is None


def test_records_that_no_one_reads_come_before_offsets_that_may_expire():
    assert summary(GROUP, [], log_offsets=[LogOffset("t", 0, 0, 9)])["attention"] == "no active members"


def test_a_snapshot_of_an_older_version_has_unknown_protocols():
    old = snapshot_of({"groups": [replace(GROUP, state="Stable")], "members": [replace(MEMBER, member_type=None)]})
    assert views.protocol_stages(old)["protocol_stage"].to_list() == ["unknown"]
