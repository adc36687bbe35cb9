"""Groups without members: the class of each, and the sentence with the reason."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from kit import health
from kit.groups import views
from kit.groups.analyze.idle import DAY_MS
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    SnapshotInfo,
    TopicPartition,
)
from kit.text.visible import visible
from tests.generators import hostile
from tests.generators.snapshots import snapshot_of, with_each_group

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)
COUNTED = ("n_members", "n_committed", "n_topics", "n_gone", "lag")


def group(name: str = "g", store: str = KAFKA, error: str | None = None) -> Group:
    return Group(name, store, "Empty" if store == KAFKA else None, None, None, None, None, error)


def member(name: str = "g", store: str = KAFKA) -> Member:
    return Member(name, store, f"{name}-1", "c", *[None] * 6)


def offset(name: str = "g", store: str = KAFKA, topic: str = "t", days: float | None = None) -> CommittedOffset:
    at = None if days is None else NOW - timedelta(days=days)
    return CommittedOffset(name, store, topic, 0, 40, None, None, at, None, None)


def snapshot(groups: list[Any], members: list[Any] = [], offsets: list[Any] = []) -> Any:  # noqa: B006 - only read
    """The topic t is there, with 100 records."""
    rows = {
        "groups": groups,
        "members": members,
        "committed_offsets": offsets,
        "topic_partitions": [TopicPartition("t", 0, False, 1, 0, (1,), (1,))],
        "log_offsets": [LogOffset("t", 0, 0, 100)],
        "snapshots": [SnapshotInfo("c", "id", NOW, NOW, ".*", "1")],
    }
    return snapshot_of(rows, NOW)


def seen(name: str = "g", committed: float | None = None, present: float | None = None) -> pl.DataFrame:
    """Days ago."""
    times = {"committed_ms": committed, "present_ms": present}
    in_ms = {key: None if days is None else NOW_MS - round(days * DAY_MS) for key, days in times.items()}
    row = {"group_id": name, "store": KAFKA, **in_ms}
    return pl.DataFrame([row], schema_overrides=dict.fromkeys(times, pl.Int64))


def found(taken: Any) -> dict[str, Any]:
    (row,) = health.idle_groups(taken, views.lag(taken)).to_dicts()
    return row


def test_the_class_and_its_evidence() -> None:
    cases: dict[str, tuple[Any, pl.DataFrame | None, str | None, str]] = {
        "two-members": (
            snapshot([group()], [member(), member()], [offset()]),
            None,
            "active",
            ("The group has 2 members."),
        ),
        "member-elsewhere": (
            snapshot([group(), group(store=ZOOKEEPER)], [member(store=ZOOKEEPER)], [offset()]),
            seen(committed=100),
            "active",
            "The group has no member in this store, but 1 member in zookeeper.",
        ),
        "commit-unknown": (
            snapshot([group()], offsets=[offset()]),
            None,
            None,
            "The group has no member; the time of the last commit is unknown.",
        ),
        "no-offset": (snapshot([group()]), None, None, "The group has no member; no offset is committed."),
        "yesterday": (
            snapshot([group()], offsets=[offset()]),
            seen(committed=1),
            "idle",
            "The group has no member; the last commit was 24 hours ago.",
        ),
        "long-ago": (
            snapshot([group()], offsets=[offset()]),
            seen(committed=43),
            "dead",
            "The group has no member; the last commit was 43 days ago.",
        ),
        "member-of-late": (
            snapshot([group()], offsets=[offset()]),
            seen(committed=43, present=2),
            "idle",
            "The group has no member; the last commit was 43 days ago; the last member was seen 2 days ago.",
        ),
        "by-the-znode": (
            snapshot([group(store=ZOOKEEPER)], offsets=[offset(store=ZOOKEEPER, days=7)]),
            None,
            "dead",
            "The group has no member; the last commit was 7 days ago.",
        ),
        "topic-gone": (
            snapshot([group()], offsets=[offset(topic="gone")]),
            seen(committed=0.01),
            "dead",
            "The group has no member; the last commit was 14 minutes ago; no topic of its offsets exists any more.",
        ),
        "one-topic-gone": (
            snapshot([group()], offsets=[offset(), offset(topic="gone")]),
            seen(committed=-1),
            "idle",
            "The group has no member; the last commit was 0 minutes ago; of 2 topics, 1 no longer there.",
        ),
        "console-consumer-4711": (
            snapshot([group()], offsets=[offset()]),
            None,
            "random name",
            (
                "The group has no member; the time of the last commit is unknown; its name holds a tool's name "
                "and a number."
            ),
        ),
        "console-consumer-1": (
            snapshot([group()], offsets=[offset()]),
            seen(committed=8),
            "dead",
            "The group has no member; the last commit was 8 days ago; its name holds a tool's name and a number.",
        ),
        "unread": (
            snapshot([group(error="NOT_COORDINATOR")]),
            seen(committed=43),
            None,
            "The group could not be read: kafka: NOT_COORDINATOR",
        ),
        "unread-elsewhere": (
            snapshot([group(), group(store=ZOOKEEPER, error="no rights")], offsets=[offset()]),
            seen(committed=43),
            None,
            "The group could not be read: zookeeper: no rights",
        ),
    }
    taken = with_each_group({name: taken for name, (taken, *_) in cases.items()})
    activity = [rows.with_columns(group_id=pl.lit(name)) for name, (_, rows, *_) in cases.items() if rows is not None]
    found = health.idle_groups(taken, views.lag(taken), pl.concat(activity)).rows(named=True)
    for name, (alone, _, *expected) in cases.items():
        (row,) = [row for row in found if (row["group_id"], row["store"]) == (name, alone.groups["source"][0])]
        assert [row["class"], row["evidence"]] == expected, name


def test_an_unknown_value_is_null_and_a_counted_one_is_not() -> None:
    row = found(snapshot([group()], offsets=[offset(), offset(topic="gone")]))
    assert (row["last_commit_ms"], row["commit_age_ms"], row["last_seen_ms"], row["name_rule"]) == (None,) * 4
    assert [row[name] for name in COUNTED] == [0, 2, 2, 1, 60]
    unread = found(snapshot([group(error="no rights")]))
    assert [unread[name] for name in COUNTED] == [None] * 5


def test_a_history_reports_the_last_commit_and_the_last_member() -> None:
    """The same offset again shows no commit; the member who made it does."""
    looks = [NOW - timedelta(days=days) for days in (30, 20, 10)]
    rows = {"group_id": "g", "topic": "t", "partition": 0, "error": None, "committed_at": None}
    offsets = pl.DataFrame(
        {**rows, "store": KAFKA, "committed_offset": [5, 9, 9], "observed_at": looks},
        schema_overrides={"committed_at": pl.Datetime("us", "UTC"), "error": pl.String},
    )
    members = pl.DataFrame({"group_id": "g", "source": KAFKA, "observed_at": looks})
    (row,) = health.activity_of_history(offsets, members).to_dicts()
    assert [(NOW_MS - row[name]) / DAY_MS for name in ("committed_ms", "present_ms")] == [20, 10]


def test_the_coordinators_topic_reports_them_too_and_a_tombstone_is_neither() -> None:
    def at(days: float) -> datetime:
        return NOW - timedelta(days=days)

    commits = pl.DataFrame(
        {
            "group_id": "g",
            "topic": "t",
            "topic_partition": 0,
            "offset": [1, 2],
            "committed_offset": [5, None],
            "committed_at": [at(9), None],
            "written_at": [at(9), at(1)],
            "is_tombstone": [False, True],
        }
    )
    generations = pl.DataFrame(
        {
            "group_id": ["g", "g", "h"],
            "state_at": [at(8), None, None],
            "written_at": [at(7), at(1), at(3)],
            "is_tombstone": [False, True, False],
        }
    )
    epochs = pl.DataFrame({"group_id": ["k"], "written_at": [at(2)], "is_tombstone": [False]})
    rows = health.activity_of_topic(commits, generations, epochs).sort("group_id").to_dicts()
    ages = [
        (row["group_id"], *(None if row[name] is None else (NOW_MS - row[name]) / DAY_MS for name in TIMES))
        for row in rows
    ]
    assert ages == [("g", 9, 8), ("h", None, 3), ("k", None, 2)]


TIMES = ("committed_ms", "present_ms")


def test_hostile_names_are_groups_like_any_other() -> None:
    names = sorted(set(hostile.GROUPS))
    taken = snapshot([group(name) for name in names], offsets=[offset(name) for name in names])
    rows = health.idle_groups(taken, views.lag(taken))
    assert sorted(rows["group_id"]) == names
    assert all(visible(sentence) == sentence for sentence in rows["evidence"])


@pytest.mark.slow
def test_ten_thousand_groups_take_about_a_second() -> None:
    names = [f"group-{number:05d}" for number in range(10_000)]
    offsets = [CommittedOffset(name, KAFKA, "t", number, 4, *[None] * 5) for name in names for number in range(20)]
    taken = snapshot([group(name) for name in names], offsets=offsets)
    partitions = views.lag(taken)
    begun = time.perf_counter()
    rows = health.idle_groups(taken, partitions)
    took = time.perf_counter() - begun
    assert len(rows) == 10_000
    assert took < 3, f"{took:.2f} s"
