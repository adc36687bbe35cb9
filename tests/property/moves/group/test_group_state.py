"""The state of many groups, reported for one snapshot, is what each group's own rows show."""

from __future__ import annotations

import polars as pl
from hypothesis import Phase, given, settings, strategies as st

from kit.errors import ConnectError, NotFound
from kit.groups.snapshot import Snapshot, of_group
from kit.moves.group.group_state import GroupState, group_states, readable_group_states
from tests.generators.random_snapshots import Names, Rows, nothing, snapshots
from tests.generators.snapshots import snapshot_of
from tests.soak import IS_SOAK


def alone(snapshot: Snapshot[pl.DataFrame], group: str) -> GroupState | str:
    try:
        return group_states(of_group(snapshot, group), [group])[0]
    except (ConnectError, NotFound) as error:
        return str(error)


def several(n_snapshots: int) -> tuple[Rows, list[str]]:
    """Random snapshots put together, and their groups: each group has more of the others beside it."""
    together, groups = nothing(), list[str]()

    @settings(max_examples=n_snapshots, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        number = len(groups) // 2
        for name, rows in data.draw(snapshots(number)).items():
            together[name] += rows
        groups.extend(Names.of(number).groups)

    collect()
    assert len(groups) >= 2 * n_snapshots
    return together, groups


def test_a_group_has_the_same_stage_among_others_and_alone() -> None:
    rows, groups = several(40 if IS_SOAK else 8)
    snapshot = snapshot_of(rows)
    states, unread = readable_group_states(snapshot, groups)
    found: dict[str, GroupState | str] = {**{state.group_id: state for state in states}, **unread}
    assert found == {group: alone(snapshot, group) for group in groups}
    for state in states:
        subscribed = {row.topic for row in rows["subscriptions"] if row.group_id == state.group_id}
        assert state.subscribed.keys() == subscribed
        assert {name for name, _ in state.offsets} <= {row.topic for row in rows["committed_offsets"]}
        assert sum(state.counts.values()) == len(state.members)
