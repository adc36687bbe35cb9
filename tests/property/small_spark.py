"""Spark as small as it gets: what the property tests run on, and the processes that they start."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from kit.spark.archive import java_options
from kit.spark.java import spark_java_home


def small_spark(**more: str) -> SparkSession:
    """Its time zone is UTC; ``more`` are settings, with ``__`` for each point."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(spark_java_home())
    java = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *java_options())
    builder = SparkSession.builder.master("local[2]").appName("offramp-property-tests")
    builder = (
        builder.config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", " ".join(java))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling a plan costs more than running it on so few rows
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for name, value in more.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()
