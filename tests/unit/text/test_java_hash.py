from __future__ import annotations

import pytest

from kit.text.java_hash import offsets_partition


@pytest.mark.parametrize(
    ("group_id", "partition"), [("orders", 1008770331 % 50), ("a", 97 % 50), ("", 0), ("polygenelubricants", 0)]
)
def test_the_partition_of_a_group_is_that_of_its_coordinator(group_id: str, partition: int) -> None:
    """``Utils.abs(groupId.hashCode()) % 50``; the hash of "orders" is −1008770331, that of the last the smallest."""
    assert offsets_partition(group_id, 50) == partition
