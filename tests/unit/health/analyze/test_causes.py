"""Each cause from rows that hold it and nothing else: when it was first seen, and by which rows."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from kit import analyze
from kit.health import sources as health
from kit.health.analyze.causes import UNKNOWN, Seen
from kit.tables import schema as tables

MINUTE = 60_000
LOOKS = range(40)
BEGIN, ALARM, END = 20, 30, 39
"""The last commit was seen at minute 20; the alarm came at 30."""
INCIDENT = {"group_id": "g", "store": "kafka", "since_ms": BEGIN * MINUTE, "from_ms": ALARM * MINUTE}
BOTH = ("c-1", "c-2")


def seen(
    members=lambda at: BOTH, owner=lambda at: "c-1", end=lambda at: 100 * at, commit=None, partitions=lambda at: 1
):
    """An observation a minute at a group of two members and a topic that gets 100 records a minute."""
    commit = commit or (lambda at: 100 * min(at, BEGIN))
    looks = [(f"s{at}", at * MINUTE) for at in LOOKS]
    rows = {"members": [], "owned": [], "committed": [], "ends": []}
    for at in LOOKS:
        rows["members"] += [(f"s{at}", "g", member) for member in members(at)] + [(f"s{at}", "other", "x")]
        rows["owned"].append((f"s{at}", "g", "t", 0, owner(at)))
        rows["committed"].append((f"s{at}", "g", "kafka", "t", 0, commit(at)))
        rows["ends"] += [(f"s{at}", "t", partition, end(at)) for partition in range(partitions(at))]
    return Seen(
        pl.DataFrame(looks, ["snapshot_id", "at_ms"], orient="row"),
        pl.DataFrame(rows["members"], ["snapshot_id", "group_id", "member_id"], orient="row"),
        pl.DataFrame(
            rows["owned"], ["snapshot_id", "group_id", "topic", "partition", "member_id"], orient="row"
        ).with_columns(is_shared=pl.lit(None, pl.Boolean)),
        pl.DataFrame(
            rows["committed"],
            ["snapshot_id", "group_id", "store", "topic", "partition", "committed_offset"],
            orient="row",
        ),
        pl.DataFrame(rows["ends"], ["snapshot_id", "topic", "partition", "log_end_offset"], orient="row"),
    )


def causes(rows: Seen, findings=None):
    incidents = pl.DataFrame({**INCIDENT, "until_ms": END * MINUTE})
    return analyze.incident_causes(incidents, rows, findings).sort("rank").to_dicts()


CASES = {
    "members left": (
        {"members": lambda at: BOTH if at <= 20 else ("c-1",)}, 21,
        "1 of 2 members left from 1970-01-01 00:20:00 UTC to 1970-01-01 00:21:00 UTC: c-2.",
    ),
    "topic made again": (
        {"end": lambda at: 100 * at if at < 22 else 5 * at}, 22,
        "t-0 ended at 2,100 at 1970-01-01 00:21:00 UTC and at 110 at 1970-01-01 00:22:00 UTC.",
    ),
    "rebalance storm": (
        {"owner": lambda at: f"c-{at % 2}" if at > 20 else "c-1"}, 22,
        "Owners changed at 9 of 12 observations from 1970-01-01 00:22:00 UTC to 1970-01-01 00:30:00 UTC.",
    ),
    "partitions added": (
        {"partitions": lambda at: 1 if at < 21 else 3}, 21,
        "Topic t had 1 partition until 1970-01-01 00:21:00 UTC and 3 from then on.",
    ),
    "owner moved": (
        {"owner": lambda at: "c-1" if at < 23 else "c-2"}, 23,
        "t-0 changed owner between 1970-01-01 00:22:00 UTC and 1970-01-01 00:23:00 UTC: from c-1 to c-2.",
    ),
    "topic's rate rose": (
        {"end": lambda at: 100 * at if at < 20 else 2000 + 900 * (at - 20), "commit": lambda at: 100 * at}, 19,
        "The topics of the group received 13.8 records/s from 1970-01-01 00:19:00 UTC on, and 1.7 before.",
    ),
    "commits stopped, members alive": (
        {}, 20,
        "The committed offset of t-0 stayed at 2,000 from 1970-01-01 00:20:00 UTC to 1970-01-01 00:30:00 UTC, for 10"
        " min, although each of 11 observations saw 2 members or more.",
    ),
    "no members": (
        {"members": lambda at: ()}, 19,
        "The group had no member at any of 12 observations from 1970-01-01 00:19:00 UTC on.",
    ),
    UNKNOWN: (
        {"commit": lambda at: 100 * at - 50}, None,
        "No change was seen in 12 observations around the beginning of the incident.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cause", CASES)
def test_each_cause_is_the_likeliest_with_its_rows(cause):
    changed, minute, evidence = CASES[cause]
    found = causes(seen(**changed))
    assert found[0] == {
        **INCIDENT, "until_ms": END * MINUTE, "rank": 1, "cause": cause, "evidence": evidence,
        "at_ms": None if minute is None else minute * MINUTE, "source": found[0]["source"],
    }  # fmt: skip


def test_events_long_before_or_after_the_alarm_are_no_cause():
    late = seen(members=lambda at: BOTH if at <= ALARM else (), commit=lambda at: 100 * at - 50)
    early = seen(owner=lambda at: "c-1" if at < 18 else "c-2", commit=lambda at: 100 * at - 50)
    for rows in (late, early):
        assert [row["cause"] for row in causes(rows)] == [UNKNOWN]


def test_several_causes_are_ranked():
    rows = seen(members=lambda at: BOTH if at <= 20 else ("c-1",), owner=lambda at: "c-2" if at <= 20 else "c-1")
    assert [row["cause"] for row in causes(rows)] == [
        "members left", "owner moved", "commits stopped, members alive",
    ]  # fmt: skip


def finding(minute, kind, is_utc=True, group="g"):
    return {
        "group_id": group, "finding": kind, "consumer": "c-1", "is_utc": is_utc,
        "at": datetime.fromtimestamp(minute * 60, UTC), "sentence": f"c-1: {kind}",
    }  # fmt: skip


def test_logs_report_what_tables_do_not():
    told = [
        finding(21, "evicted"), finding(3, "storm"), finding(22, "storm", is_utc=False),
        finding(22, "storm", group="h"), finding(22, "long_join"),
    ]  # fmt: skip
    logged = pl.DataFrame(told, schema=pl.DataFrame(tables.LOG_FINDINGS.from_rows([])).schema)
    found = causes(seen(commit=lambda at: 100 * at - 50), logged)
    assert [(row["cause"], row["at_ms"], row["source"]) for row in found] == [
        ("member thrown out", 21 * MINUTE, "logs"), ("long rebalance", 22 * MINUTE, "logs"),
    ]  # fmt: skip
    assert found[0]["evidence"] == "1970-01-01 00:21:00 UTC: c-1: evicted"


def test_incidents_are_reported_by_their_begin_whatever_order_they_came_in():
    """A sum by groups gives them in another order each time."""
    earlier = INCIDENT | {"since_ms": INCIDENT["since_ms"] - 1}
    begun = [earlier | {"group_id": "z"}, INCIDENT | {"group_id": "a"}, INCIDENT | {"group_id": "b"}]
    incidents = pl.DataFrame([each | {"until_ms": END * MINUTE} for each in begun])
    for shuffled in (incidents, incidents.reverse(), incidents[[1, 2, 0]]):
        assert analyze.incident_causes(shuffled, seen())["group_id"].unique(maintain_order=True).to_list() == [
            "z",
            "a",
            "b",
        ]


def test_only_the_observations_around_an_incident_are_read():
    rows = seen()
    ended = pl.from_epoch("at_ms", "ms").dt.replace_time_zone("UTC")
    kept = {
        tables.SNAPSHOTS: rows.looks.select("snapshot_id", ended_at=ended),
        tables.MEMBERS: rows.members,
        tables.OWNERSHIP: rows.ownership,
        tables.COMMITTED_OFFSETS: rows.committed_offsets,
        tables.LOG_OFFSETS: rows.log_offsets,
    }
    incidents = pl.DataFrame({**INCIDENT, "until_ms": END * MINUTE})
    assert health.causes(incidents, kept.__getitem__).equals(analyze.incident_causes(incidents, rows))
    assert health.causes(incidents.clear(), kept.__getitem__).is_empty()


def test_an_end_that_was_not_read_at_one_observation_is_no_fall_and_no_rise():
    """Read as 0, the end made each topic's rate rise after it."""
    told = causes(seen(end=lambda at: None if at == BEGIN else 100 * at))
    assert "topic's rate rose" not in {row["cause"] for row in told}
