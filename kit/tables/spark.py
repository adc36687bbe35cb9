"""Arrow tables as Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.tables.schema import spark_ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def in_spark(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """An Arrow table as Spark's.

    In one piece: of a table of several, Spark 4 drops all that is behind a piece without rows; of none it makes
    nothing.
    """
    import pyarrow as pa

    whole = pa.concat_tables([rows.schema.empty_table(), rows]).combine_chunks()
    return spark.createDataFrame(whole, spark_ddl(rows.schema))
