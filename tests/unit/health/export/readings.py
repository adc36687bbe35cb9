"""Readings of a cluster that are exported, and the samples of an exported page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kit.health.export.readings import Reading

__all__ = ["parse_openmetrics", "parse_text", "reading", "row", "samples"]


def row(**values: Any) -> dict[str, Any]:
    """A partition of a reading, with changes."""
    known = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0, "lag": 5, "committed_offset": 1}
    known |= {"beyond_end": 0}
    times = {"time_lag_ms": 1500, "close_ms": None, "is_never_closed": True, "deletion_lower_ms": 2000}
    return {**known, "log_end_offset": 6, "status": "STOP", **times, "is_never_deleted": False, **values}


def reading(rows: list[dict[str, Any]], **values: Any) -> Reading:
    """A reading of these partitions, with changes."""
    partitions = pl.DataFrame(rows)
    groups = partitions.group_by("group_id", "store", maintain_order=True).agg(
        pl.sum("lag"), n_partitions=pl.len(), n_unknown=pl.col("lag").null_count()
    )
    parts = {
        "at": datetime(2026, 11, 21, tzinfo=UTC),
        "took_s": 0.5,
        "n_requests": 12,
        "partitions": partitions,
        "groups": groups,
        "others": groups.clear(),
        "stages": groups.select("group_id", stage=pl.lit("all KC")),
        "moves": {("g", "kafka"): 2},
        "n_unread": 0,
        "unknown_times": partitions.clear(),
        "error": "",
        "snapshot": None,
    }
    return Reading(**{**parts, **values})


def samples(text: str, parse: Any) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples of a page by their name and by the values of their labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in parse(text):
        for each in family.samples:
            found.setdefault(each.name, {})[tuple(value for _, value in sorted(each.labels.items()))] = each.value
    return found
