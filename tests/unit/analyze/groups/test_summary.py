"""One line per group: a count without rows is 0, a count of a group that could not be read is unknown."""

from __future__ import annotations

import polars as pl

from kit import analyze


def test_a_group_that_could_not_be_read_has_unknown_counts():
    groups = pl.DataFrame(
        {"group_id": ["broken", "quiet"], "source": ["kafka"] * 2, "state": [None, "Empty"], "error": ["refused", None]}
    )
    counted = ("n_partitions", "n_unknown", "n_without_commit", "n_beyond_end", "lag", "lag_retained")
    none = {"group_id": pl.String, "store": pl.String, **dict.fromkeys(counted, pl.Int64)}
    rows = analyze.group_summary(
        groups=groups,
        readiness=pl.DataFrame(
            {
                "group_id": ["broken", "quiet"],
                "stage": ["unknown", "empty"],
                "effective_mode": [None, None],
                "n_blockers": [1, 0],
            },
            schema_overrides={"effective_mode": pl.String},
        ),
        group_lag=pl.DataFrame(schema=none),
        group_balance=pl.DataFrame(schema={"group_id": pl.String, "n_members": pl.Int64, "n_idle": pl.Int64}),
        ownership_findings=pl.DataFrame(schema={"group_id": pl.String, "finding": pl.String}),
        partition_owners=pl.DataFrame(
            schema={"group_id": pl.String, "is_subscribed": pl.Boolean, "n_owners": pl.Int64}
        ),
    )
    broken, quiet = rows.sort("group_id").to_dicts()
    counts = ("n_members", "n_idle", "n_partitions", "n_unowned", "n_unknown", "n_findings")
    assert [broken[name] for name in counts] == [None] * 6
    assert [quiet[name] for name in counts] == [0] * 6
    assert broken["n_blockers"] == 1
    assert broken["error"] == "refused"
    assert (broken["attention"], quiet["attention"]) == ("could not be read", None)
