"""One observation of a cluster, as a frame per table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl

from kit.tables import schema as tables
from kit.tables.polars import as_polars
from kit.tables.spark import in_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Snapshot(Generic[Frame]):
    """One observation of one cluster: a frame per table, each with ``snapshot_id`` and ``observed_at``.

    ``Snapshot[polars.DataFrame]`` for live views, ``Snapshot[pyspark.sql.DataFrame]`` for the pipeline; the analyses
    take either.
    """

    snapshot_id: str
    brokers: Frame
    topic_partitions: Frame
    groups: Frame
    members: Frame
    subscriptions: Frame
    ownership: Frame
    committed_offsets: Frame
    log_offsets: Frame
    migration_states: Frame
    read_errors: Frame
    read_timings: Frame
    snapshots: Frame


def in_polars(snapshot: Snapshot[Any]) -> Snapshot[pl.DataFrame]:
    """The same snapshot as polars DataFrames: Spark plans each join of such tables for a second, polars for none."""
    frames = {table.name: as_polars(getattr(snapshot, table.name)) for table in tables.ALL}
    return Snapshot(snapshot.snapshot_id, **frames)


def in_spark_too(spark: SparkSession, snapshot: Snapshot[pl.DataFrame]) -> Snapshot[DataFrame]:
    """The same snapshot as Spark DataFrames: to append it to a history."""
    rows = {table: getattr(snapshot, table.name).to_arrow().cast(table.stamped_schema) for table in tables.ALL}
    return Snapshot(snapshot.snapshot_id, **{table.name: in_spark(spark, each) for table, each in rows.items()})
