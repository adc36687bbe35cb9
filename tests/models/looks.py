"""Examines groups that are made up: what a monitor needs of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import polars as pl

from kit.errors import ConnectError
from kit.health.live import Poll
from kit.tables import schema
from kit.tables.polars import rows_of

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class ToyLooks:
    """Groups with a number in their names; from observation to observation their logs grow by ten, and the even ones
    read.
    """

    def __init__(self, n_groups: int = 50, n_partitions: int = 2, names: Callable[[int], str] = "group-{:05d}".format):
        self.n_groups, self.n_partitions, self.name = n_groups, n_partitions, names
        self.number, self.failure = 0, ""
        self.read_errors = rows_of(schema.READ_ERRORS)

    def take(self) -> Poll:
        if self.failure:
            raise ConnectError(self.failure)
        self.number += 1
        snapshot: Any = SimpleNamespace(read_errors=self.read_errors, snapshots=pl.DataFrame(), snapshot_id="s")
        return Poll(self.number, START, snapshot, self._partitions(), 0.25, 14, 1_200)

    def _partitions(self) -> pl.DataFrame:
        rows = [
            (self.name(group), partition, 10 * self.number if group % 2 == 0 else 5)
            for group in range(self.n_groups)
            for partition in range(self.n_partitions)
        ]
        frame = pl.DataFrame(
            rows, schema={"group_id": str, "partition": pl.Int32, "committed_offset": pl.Int64}, orient="row"
        )
        lag = 10 + 10 * self.number - pl.col("committed_offset")
        texts = {"store": "kafka", "topic": "t", "member_id": "m"}
        return frame.with_columns(
            **{name: pl.lit(text) for name, text in texts.items()},
            **dict.fromkeys(("lag", "lag_retained"), lag),
            beyond_end=pl.lit(0, pl.Int64),
            log_start_offset=pl.lit(0),
            log_end_offset=pl.lit(10 + 10 * self.number),
            expired_unread=pl.lit(0),
            has_no_commit=pl.lit(False),
            is_stale=pl.lit(False),
            is_upper_bound=pl.lit(False),
            error=pl.lit(None, pl.String),
            at_ms=pl.lit(10_000 * self.number),
        )
