"""Where many groups stand, told of one snapshot, is what each is told of its own rows alone."""

from __future__ import annotations

import polars as pl
from hypothesis import HealthCheck, given, settings

from kit.errors import ConnectError, NotFound
from kit.migrate.group.group_state import GroupState, group_states, readable_group_states
from kit.snapshot import Snapshot, of_group
from tests.generators.random_snapshots import Names, Rows, snapshots
from tests.generators.snapshots import snapshot_of


def alone(snapshot: Snapshot[pl.DataFrame], group: str) -> GroupState | str:
    try:
        return group_states(of_group(snapshot, group), [group])[0]
    except (ConnectError, NotFound) as error:
        return str(error)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_among_others_a_group_stands_where_it_stands_alone(rows: Rows) -> None:
    snapshot, groups = snapshot_of(rows), Names.of(0).groups
    states, unread = readable_group_states(snapshot, groups)
    found: dict[str, GroupState | str] = {**{state.group_id: state for state in states}, **unread}
    assert found == {group: alone(snapshot, group) for group in groups}
    for state in states:
        subscribed = {row.topic for row in rows["subscriptions"] if row.group_id == state.group_id}
        assert state.subscribed.keys() == subscribed
        assert {name for name, _ in state.offsets} <= {row.topic for row in rows["committed_offsets"]}
        assert sum(state.counts.values()) == len(state.members)
