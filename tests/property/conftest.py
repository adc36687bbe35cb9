"""One small Spark session for all property tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.property.small_spark import small_spark


@pytest.fixture(scope="session")
def stopped_at_last() -> Iterator[None]:
    yield
    last = SparkSession.getActiveSession()
    if last is not None:
        last.stop()


@pytest.fixture(scope="module")
def spark(stopped_at_last: None) -> SparkSession:
    """The one of this process, or another one: tests on servers that ran meanwhile may have stopped it."""
    return small_spark()
