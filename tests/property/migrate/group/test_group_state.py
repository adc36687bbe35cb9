"""Where many groups stand, told of one snapshot, is what each is told of its own rows alone."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
from hypothesis import HealthCheck, given, settings

from kit.errors import ConnectError, NotFound
from kit.migrate.group.group_state import GroupState, group_states
from kit.snapshot import Snapshot, of_group
from kit.tables import schema as tables
from tests.generators.random_snapshots import Names, Rows, snapshots

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def snapshot_of(rows: Rows) -> Snapshot[pl.DataFrame]:
    frames = {table.name: pl.DataFrame(table.from_rows(rows.get(table.name, []))) for table in tables.ALL}
    stamped = {name: frame.with_columns(snapshot_id=pl.lit("s"), observed_at=NOW) for name, frame in frames.items()}
    return Snapshot("s", **stamped)


def told(snapshot: Snapshot[pl.DataFrame], group: str) -> GroupState | str:
    try:
        return group_states(snapshot, [group])[0]
    except (ConnectError, NotFound) as error:
        return str(error)


def alone(snapshot: Snapshot[pl.DataFrame], group: str) -> GroupState | str:
    try:
        return told(of_group(snapshot, group), group)
    except NotFound as error:
        return str(error)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_among_others_a_group_stands_where_it_stands_alone(rows: Rows) -> None:
    snapshot = snapshot_of(rows)
    for group in Names.of(0).groups:
        found = told(snapshot, group)
        assert found == alone(snapshot, group)
        if isinstance(found, GroupState):
            subscribed = {row.topic for row in rows["subscriptions"] if row.group_id == group}
            assert found.subscribed.keys() == subscribed
            assert {name for name, _ in found.offsets} <= {row.topic for row in rows["committed_offsets"]}
            assert sum(found.counts.values()) == len(found.members)
