"""One small Spark session for all property tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.property.small_spark import small_spark


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """The one of this process, or another one: tests on servers that ran meanwhile may have stopped it."""
    return small_spark()
