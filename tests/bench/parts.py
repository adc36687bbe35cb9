"""Writes a history as `offramp history compact` leaves it, of whatever columns a bench cares for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pyspark.sql import DataFrame, SparkSession, functions as F

from kit.history.in_order import save
from kit.history.names import ABOUT, DAYS
from kit.history.store import ABOUT_SCHEMA
from kit.tables import schema as tables


def write_day(spark: SparkSession, frames: Mapping[tables.Table, DataFrame], folder: str, day: date) -> None:
    """One day in one part; columns that a frame lacks are null."""
    spark.createDataFrame([(tables.SCHEMA_VERSION,)], ABOUT_SCHEMA).write.parquet(f"{folder}/{ABOUT}")
    for table, rows in frames.items():
        schema = spark.createDataFrame([], table.spark_schema.replace(" NOT NULL", "")).schema
        filled = {f.name: F.lit(None).cast(f.dataType) for f in schema if f.name not in rows.columns}
        known = [name for name in rows.columns if name in {*schema.names, "compacted_at"}]
        save(rows.select(*known).withColumns(filled), f"{folder}/{DAYS}/{table.name}/date={day}/part=bench")
