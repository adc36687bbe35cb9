"""Histories of few tables, and a writer of its own process that can be stopped anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.history import Upkeep
from kit.tables import schema as tables
from tests.generators.small_snapshots import KEPT, TODAY
from tests.property.history import scenes
from tests.property.history.writer import Writer, compiled


@pytest.fixture(scope="module")
def few_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ALL", KEPT)
        yield


@pytest.fixture(scope="session")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("jar"))


@pytest.fixture(scope="session")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A history as it was appended, and one that was compacted; its tests need ``few_tables``, too."""
    appended = tmp_path_factory.mktemp("begun") / "appended"
    compacted = appended.with_name("compacted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ALL", KEPT)
        scenes.begin(spark, appended)
        shutil.copytree(appended, compacted)
        list(Upkeep(spark, str(compacted), lambda: TODAY).compact())
    return {False: appended, True: compacted}


@pytest.fixture(scope="session")
def writer(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    with Writer(tmp_path_factory.mktemp("writer") / "standing", jar) as started:
        yield started
