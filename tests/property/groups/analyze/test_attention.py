"""Groups that need attention: the report names each group that the listing names, and says why in its own kinds."""

from __future__ import annotations

import polars as pl
from hypothesis import HealthCheck, given, settings

from kit.groups.show import brief
from tests.generators.random_snapshots import ANALYSES, Rows, polars_frames, snapshots
from tests.soak import IS_SOAK


@settings(max_examples=200 if IS_SOAK else 40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_the_report_names_each_group_that_the_listing_names(rows: Rows) -> None:
    frames = polars_frames(rows)
    summary, findings = ANALYSES["group_summary"](frames), ANALYSES["ownership_findings"](frames)
    stalled = pl.DataFrame(schema={"group_id": pl.String, "store": pl.String})
    changes = stalled.with_columns(change=pl.lit(None, pl.Int64), lag=pl.lit(None, pl.Int64))
    needing = brief.attention(summary, findings, stalled, changes)
    listed = summary.drop_nulls("attention").select("group_id", "attention")
    unnamed = listed.join(needing, on="group_id", how="anti")
    assert unnamed.is_empty(), unnamed.rows()
