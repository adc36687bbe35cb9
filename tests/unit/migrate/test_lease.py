"""Names, marks and places of the locks in Kafka."""

from __future__ import annotations

import pytest

from kit.migrate.kafka_lock import WHOLE_CLUSTER, lock_group, target_of
from kit.migrate.lease import Mark, offsets_partition, parse_mark


def test_each_group_has_a_lock_of_its_own_and_none_is_the_whole_clusters():
    names = ["orders", "orders ", "a/b", "", ".", "..", "%", ":cluster", "ü" * 100, "x" * 300, "x" * 301]
    locks = [lock_group(name) for name in names]
    assert len({*locks, WHOLE_CLUSTER}) == len(names) + 1
    assert max(map(len, locks)) <= 249
    assert [target_of(lock) for lock in locks[:3]] == names[:3]


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[1]", "7", "[" * 100_000, '{"run_id": "r"}', '{"run_id": "r", "x": 1}']
)
def test_a_mark_of_another_shape_is_nobodys(text):
    assert parse_mark(text) is None


def test_a_mark_comes_back_as_it_was_written():
    mark = Mark("run-1", "host", "ann", "2026-01-31T12:00:00+00:00", is_held=False, changed_by="run-0")
    assert parse_mark(mark.to_text()) == mark


def test_the_partition_of_a_group_is_javas():
    """``Math.abs("orders".hashCode()) % 50`` and others, by jshell."""
    assert [offsets_partition(name, 50) for name in ("orders", "a", "")] == [
        (-1008770331 & 0x7FFFFFFF) % 50,
        97 % 50,
        0,
    ]
