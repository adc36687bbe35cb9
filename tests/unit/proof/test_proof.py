"""A proof about a stretch of time is about the records written in it, whenever they were delivered."""

from __future__ import annotations

import polars as pl

from kit.proof.verify import handed_out_of


def test_a_record_delivered_before_its_producer_heard_of_it_counts():
    produced = pl.DataFrame(
        {"topic": ["t", "t", "t"], "partition": [0, 0, 1], "offset": [7, 8, 3], "at_ms": [10, 11, 12]}
    )
    handed_out = [("t", 0, 6, 8), ("t", 0, 7, 9), ("t", 0, 8, 10), ("t", 1, 3, 9), ("t", 2, 1, 50), ("u", 0, 9, 50)]
    members = pl.DataFrame(handed_out, schema=["topic", "partition", "offset", "at_ms"], orient="row")
    assert handed_out_of(members, produced).rows() == [("t", 0, 7, 9), ("t", 0, 8, 10), ("t", 1, 3, 9)]
