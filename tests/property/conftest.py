"""One small Spark session for all property tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.property.small_spark import small_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = small_spark()
    yield session
    session.stop()
