"""An hour of a group in a row: what is unknown of it stays unknown."""

from __future__ import annotations

import polars as pl

from kit import analyze

PLACE = {"topic": "t", "partition": 0}


def test_rates_are_unknown_where_no_end_was_read():
    looks = analyze.looks_of_hours(pl.DataFrame({"snapshot_id": ["a", "b"], "at_ms": [0, 60_000]}), [0])
    at = {"snapshot_id": ["a", "b"], "at_ms": [0, 60_000]}
    commits = pl.DataFrame(
        {"group_id": "g", "store": "kafka", **PLACE, **at, "committed_offset": [5, None]}
    ).with_columns(written_ms=pl.lit(None, pl.Int64))
    ends = pl.DataFrame({**PLACE, **at, "log_end_offset": [None, 9]})
    ownership = dict.fromkeys(("snapshot_id", "group_id", "source", "topic", "member_id"), pl.String)
    nobody = pl.DataFrame(schema=ownership | {"partition": pl.Int64, "is_shared": pl.Boolean})
    (hour,) = analyze.group_hours(commits, ends, nobody, looks).to_dicts()
    assert (hour["n_read"], hour["n_written"], hour["n_partitions"]) == (None, None, 1)
