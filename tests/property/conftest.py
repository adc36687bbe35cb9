"""One small Spark session for all property tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.property.small_spark import small_spark


@pytest.fixture(scope="module")
def spark(pytestconfig: pytest.Config) -> SparkSession:
    """The one of this process, or another one: tests on servers that ran meanwhile may have stopped it."""
    session = small_spark()
    pytestconfig.add_cleanup(session.stop)  # Nothing happens to one that is stopped already.
    return session
