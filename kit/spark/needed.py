"""A Spark session, or what starts one: started by who needs it, for its start takes longer than small reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, Union

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spark: TypeAlias = Union["SparkSession", Callable[[], "SparkSession"]]


def is_started(spark: Spark | None) -> bool:
    """Return whether there is a session already: then it reads, however little there is."""
    return spark is not None and not callable(spark)


def started(spark: Spark) -> SparkSession:
    """The session. Raises as ``kit.spark.session.spark_session``."""
    return spark() if callable(spark) else spark
