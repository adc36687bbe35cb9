"""The time for which partitions had no owner znode, by what a watch saw of them."""

from __future__ import annotations

import pytest

from kit.moves.group.toggle import handovers_of
from kit.tables.groups import ZnodeLife


def owner(partition: int, from_ms: int, until_ms: int | None) -> ZnodeLife:
    return ZnodeLife("g", "owner", "t", partition, None, "m-0", from_ms, False, until_ms, None, from_ms, None)


def watch(ended_by: str | None) -> ZnodeLife:
    return ZnodeLife("g", "watch", None, None, None, None, 0, False, 99, ended_by, None, None)


def test_a_partition_counts_once_however_often_its_znode_was_made_again():
    rows = [owner(0, 0, 10), owner(0, 15, 20), owner(0, 20, None), owner(1, 0, None), watch("stopped")]
    assert handovers_of(rows) == {
        "partitions_that_changed_hands": 1,
        "longest_unowned_ms": 5,
        "owners_watched": "each change",
    }


@pytest.mark.parametrize(
    ("watches", "how"),
    [
        ([], "every 200 ms"),
        (["stopped"], "each change"),
        (["missed"], "with interruptions"),
        (["missed", "stopped"], "with interruptions"),
    ],
)
def test_it_reports_how_it_was_seen(watches, how):
    assert handovers_of([owner(0, 0, None), *map(watch, watches)]) == {
        "partitions_that_changed_hands": 0,
        "longest_unowned_ms": None,
        "owners_watched": how,
    }
