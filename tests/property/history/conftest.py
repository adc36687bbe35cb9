"""Histories of few tables, and a writer of its own process that can be stopped anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kit.history import Upkeep
from kit.tables import schema as tables
from tests.generators.small_snapshots import KEPT, TODAY
from tests.property.history import scenes
from tests.property.history.faults import spark_of_verbs
from tests.property.history.writer import Writer, compiled
from tests.property.small_spark import small_spark

__all__ = ["spark_of_verbs"]


@contextmanager
def only_few_tables() -> Iterator[None]:
    """Snapshots of a few tables: what is held here is held for each table alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ALL", KEPT)
        yield


@pytest.fixture(scope="module")
def few_tables() -> Iterator[None]:
    with only_few_tables():
        yield


@pytest.fixture(scope="session")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("jar"))


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A history as it was appended, and one that was compacted; its tests need ``few_tables``, too."""
    appended = tmp_path_factory.mktemp("begun") / "appended"
    compacted = appended.with_name("compacted")
    with only_few_tables():
        spark = small_spark()
        scenes.begin(spark, appended)
        shutil.copytree(appended, compacted)
        list(Upkeep(spark, str(compacted), lambda: TODAY).compact())
    return {False: appended, True: compacted}


@pytest.fixture(scope="session")
def started() -> Iterator[list[Writer]]:
    """Every writer that was started; the last of them may be alive."""
    writers = list[Writer]()
    yield writers
    for writer in writers:
        writer.kill()


@pytest.fixture
def writer(started: list[Writer], jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """The writer of the test before, unless that test killed it: a Spark takes long to start."""
    if not started or not started[-1].is_alive:
        started.append(Writer(tmp_path_factory.mktemp("writer") / "standing", jar))
    return started[-1]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that kill their writer come last."""
    items.sort(key=lambda item: item.name.startswith("test_killed["))
