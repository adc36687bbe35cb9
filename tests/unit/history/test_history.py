"""A history that can't be written is reported."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from kit.errors import HistoryError
from kit.history import History

FULL = """Job aborted due to stage failure: Task failed
\tat org.apache.spark.Task.run(Task.scala:147)
Caused by: org.apache.spark.SparkException: writing rows failed
\t... 1 more
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)"""


@pytest.mark.parametrize(
    ("said", "why"), [(FULL, "No space left on device"), ("It is read-only\nat x", "It is read-only")]
)
def test_an_error_of_spark_about_a_write_is_one_sentence(said, why):
    class Full(History):
        def __init__(self):
            self._store = SimpleNamespace(folder="/lake")

        def _append(self, snapshot):
            raise PySparkException(said)

    with pytest.raises(HistoryError) as raised:
        Full().append(None)
    assert str(raised.value) == f"/lake can't be written: {why}"
