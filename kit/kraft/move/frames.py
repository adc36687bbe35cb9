"""Represent what a run of a move found as small polars frames, for the cells of a notebook."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.engine.model.progress import evidence
from kit.engine.model.record import RunRecord


def stays(record: RunRecord | None) -> pl.DataFrame:
    """Return what stays in ZooKeeper after a move's end, as a run found it: kind, count, read_by, may_delete. None
    before that.
    """
    verified = [it for it in (record.events if record else ()) if it.event == "verified"]
    kept = [evidence(it).get("stays") for it in verified]
    rows: list[Any] = [row for each in kept if isinstance(each, list | tuple) for row in each]
    schema: dict[str, Any] = {"kind": pl.String, "count": pl.Int64, "read_by": pl.String, "may_delete": pl.String}
    return pl.DataFrame(rows, schema=schema)
