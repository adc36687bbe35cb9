"""What changed between two snapshots."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT


@nw.narwhalify
def lag_change(before: FrameT, after: FrameT) -> FrameT:
    """Two ``group_lag`` frames → group_id, store, lag_before, lag, change (records; null where either is unknown).

    A group that only one snapshot knows has a row with the other's lag null.
    """
    keys = nw.concat([frame.select("group_id", "store") for frame in (before, after)]).unique()
    rows = keys.join(before.select("group_id", "store", lag_before="lag"), on=["group_id", "store"], how="left")
    rows = rows.join(after.select("group_id", "store", "lag"), on=["group_id", "store"], how="left")
    return rows.select("group_id", "store", "lag_before", "lag", change=nw.col("lag") - nw.col("lag_before"))
