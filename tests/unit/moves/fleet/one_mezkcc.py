"""Snapshots of group g, whose only member is a MEZKCC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from kit.groups.snapshot import Snapshot
from kit.tables.groups import ZOOKEEPER, CommittedOffset, Group, Member, ReadTiming
from tests.generators.snapshots import snapshot_of

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def one_mezkcc(age_s: float, read_ms: float = 1.0, **offsets: int) -> Snapshot[pl.DataFrame]:
    """The group as it is when its member registered ``age_s`` seconds ago and each store holds an offset of t-0."""
    rows = {
        "groups": [Group("g", ZOOKEEPER, None, None, None, None, None)],
        "members": [Member("g", ZOOKEEPER, "g_1", None, None, None, None, True, NOW - timedelta(seconds=age_s), None)],
        "committed_offsets": [
            CommittedOffset("g", store, "t", 0, offset, None, None, None, None, None)
            for store, offset in offsets.items()
        ],
        "read_timings": [ReadTiming("metadata", NOW, read_ms, 1)],
    }
    return snapshot_of(rows, NOW)
