"""Disks that are full, writers that end, and file systems that Spark's tasks do not share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameWriter, SparkSession

from kit.health.hours import Hours
from kit.history import History


@contextmanager
def writing(write: Callable[..., Any]) -> Iterator[None]:
    """Let Spark write each frame by this function, as a method of ``DataFrameWriter``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataFrameWriter, "parquet", write)
        yield


def full(self: DataFrameWriter, path: str, *arguments: Any, **named: Any) -> None:
    raise PySparkException("Caused by: java.io.IOException: No space left on device")


def elsewhere(kept: History | Hours) -> Any:
    """The same history as one whose folder is on no disk of this machine."""
    kept._store.local = None
    return kept


@pytest.fixture
def spark_of_verbs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verbs of the command line use the session of the tests; each makes one by itself otherwise."""
    monkeypatch.setattr("kit.spark.session.spark_session", lambda profile: spark)
