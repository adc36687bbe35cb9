"""One small Spark session for all property tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kit.spark.archive import java_options
from kit.spark.java import java_home


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(java_home())
    java = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *java_options())
    builder = SparkSession.builder.master("local[2]").appName("offramp-property-tests")
    session = (
        builder.config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", " ".join(java))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling a plan costs more than running it on so few rows
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()
