"""Columns' names → headings for people, with their units. A name that is not listed becomes words."""

from __future__ import annotations

import re

_HEADINGS = {
    "age": "age of the oldest unread record",
    "attention": "needs attention",
    "assign_ms": "to assign, ms",
    "beyond_end": "commit beyond the end, records",
    "closed_in": "caught up in",
    "committed_before": "committed before",
    "discover_ms": "time to find the coordinator, ms",
    "effective_mode": "mode in effect",
    "error": "why it is unknown",
    "days_since_commit": "last commit, days ago",
    "expired_unread": "expired unread, records",
    "fair_share": "fair share, partitions",
    "first_at": "first seen",
    "from_at": "from",
    "group_id": "group",
    "has_no_commit": "no commit",
    "is_open": "not ended in the last observation",
    "is_utc": "time is UTC",
    "join_ms": "to join, ms",
    "join_spread_ms": "first to last join, ms",
    "kafka_lag": "lag in Kafka, records",
    "kafka_owner": "owner in Kafka",
    "kafka_state": "state in Kafka",
    "lag": "lag, records",
    "lag_retained": "lag whose records still exist, records",
    "lag_before": "lag before, records",
    "last_at": "last seen",
    "last_lags": "recent lag, oldest first",
    "longest_unowned_ms": "longest seen without an owner, ms",
    "max_over_mean": "largest share ÷ mean",
    "member_id": "member",
    "migration_mode": "toggle",
    "max_lag": "records behind, at most",
    "mode": "toggle",
    "n_beyond_end": "commits beyond the end",
    "n_blockers": "blockers",
    "name_rule": "found in the name",
    "n_ekc": "embedded (EKC)",
    "n_idle": "members without work",
    "n_kc": "Kafka consumers (KC)",
    "n_mezkcc": "migration-enabled (MEZKCC)",
    "n_ozkcc": "old consumers (OZKCC)",
    "n_unknown": "unknown",
    "n_unowned": "partitions without an owner",
    "n_without_age": "age unknown",
    "offsets_ms": "time to find positions, ms",
    "produced": "produced, records",
    "remedy": "what to do",
    "sentence": "in words",
    "share_ratio": "share ÷ fair share",
    "skew_percent": "skew, %",
    "sync_ms": "to sync, ms",
    "stale_store": "left over in",
    "unread_deleted_in": "unread records deleted in",
    "until_at": "until",
    "unassigned_ms": "without partitions, ms",
    "zookeeper_lag": "lag in ZooKeeper, records",
    "zookeeper_owner": "owner in ZooKeeper",
    "zookeeper_thread": "thread in ZooKeeper",
}
_CODES = {"finding", "kind", "blocker", "verdict"}
"""Columns that hold names of ours: codes for programs, words for people."""
_PLAIN = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_UNITS = ("ms", "s", "percent")
_PROPER = {"kafka": "Kafka", "kraft": "KRaft", "zookeeper": "ZooKeeper", "utc": "UTC"}


def heading(name: str) -> str:
    """The heading of a column.

    >>> heading("n_unowned"), heading("duration_ms"), heading("n_missing_in_kafka")
    ('partitions without an owner', 'duration, ms', 'missing in Kafka')
    """
    if name in _HEADINGS:
        return _HEADINGS[name]
    if not _PLAIN.fullmatch(name):
        return name
    words = name.removeprefix("n_").removeprefix("is_").split("_")
    unit = words.pop() if len(words) > 1 and words[-1] in _UNITS else ""
    label = " ".join(_PROPER.get(word, word) for word in words if word)
    return f"{label}, {unit}" if unit else label or name


def worded(name: str, value: str) -> str:
    """A value of the column, for people.

    >>> worded("finding", "owned_twice"), worded("group_id", "a_b")
    ('owned twice', 'a_b')
    """
    return value.replace("_", " ") if name in _CODES else value
