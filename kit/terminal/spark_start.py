"""The start of Spark, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kit.terminal.progress import waiting
from kit.terminal.terminal import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kit.profile import Profile


def started_spark(profile: Profile | None) -> SparkSession:
    """Says so; raises as ``kit.spark.session.spark_session``."""
    from kit.spark.session import spark_session

    say("starting Spark …")
    with waiting("starting Spark"):
        return spark_session(profile)


def spark_when_needed(profile: Profile | None) -> Callable[[], SparkSession]:
    """Return what starts Spark, and reports it, for a reader that decides by what there is to read."""

    def start() -> SparkSession:
        from kit.spark.session import spark_session

        say("starting Spark …")
        return spark_session(profile)

    return start
