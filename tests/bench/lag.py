"""The lag of every partition: polars beside Spark, the same function on the same rows."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import functions as F

from kit.analyze import partition_lag
from kit.snapshot import observe
from kit.spark.session import spark_session
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, Site

_INPUTS = ("committed_offsets", "log_offsets", "ownership", "subscriptions", "topic_partitions", "groups")


def compared(site: Site) -> Iterator[Row]:
    """For information. Spark's job computes every row and hands none back, which is kind to it."""
    with site.connect(BROKERS_ONLY) as cluster:
        snapshot = observe(cluster)
    frames = {name: getattr(snapshot, name) for name in _INPUTS}
    say("lag: starting Spark")
    spark = spark_session(app_name="bench")
    try:
        in_spark = {name: spark.createDataFrame(frame.to_arrow()) for name, frame in frames.items()}
        by_polars, by_spark = partition_lag(**frames), partition_lag(**in_spark)
        (summed,) = by_spark.agg(F.count("*"), F.sum("lag")).collect()
        expect("rows and lag by Spark", tuple(summed), (by_polars.height, by_polars["lag"].sum()))
        expect("rows of lag", by_polars.height, site.sizes.committed)
        name = f"partition_lag of {site.sizes.committed:,} rows: polars vs Spark"
        job = timed(lambda: partition_lag(**in_spark).write.format("noop").mode("overwrite").save())
        yield compare(name, timed(lambda: partition_lag(**frames)), job, None)
    finally:
        spark.stop()
