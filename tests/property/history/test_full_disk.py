"""A disk that is really full, at any page: what can't be written is one sentence, what is there stays, then it
continues.

The disk is a small tmpfs: mounting it needs root; else these tests are left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kit.errors import HistoryError
from tests.property.history import scenes
from tests.property.history.scenes import NEW, SCENES, InterruptedWrite
from tests.property.history.standing import fresh
from tests.soak import IS_SOAK, report

pytestmark = [pytest.mark.usefixtures("few_tables"), pytest.mark.xdist_group("histories")]

PAGE = 4096
DISK_BYTES = 1 << 20
ROOM: dict[str, Sequence[int]] = {"append": [3]}
if IS_SOAK:
    ROOM = dict.fromkeys(["first append", "append", "compact", "hours"], range(40))
SCENE = {scene.name: scene for scene in SCENES}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, n_pages_left: int) -> Path:
    """A file that leaves so many pages."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - n_pages_left * PAGE)
    return ballast


def refusal(spark: SparkSession, folder: Path, scene: InterruptedWrite) -> str | None:
    """None: there was room for all."""
    try:
        scenes.again(spark, folder, scene)
    except HistoryError as error:
        return str(error)
    return None


@pytest.mark.timeout(3600 if IS_SOAK else 900)
@pytest.mark.parametrize(("name", "pages"), ROOM.items())
def test_a_full_disk(spark, disk, begun, name, pages, record_property):
    """It is found full at each page of what is written, up to where all has room."""
    scene, folder = SCENE[name], disk / "history"
    refusals = list[str | None]()
    for n_pages in pages:
        fresh(folder, begun, scene)
        ballast = fill(disk, n_pages)
        refusals.append(refusal(spark, folder, scene))
        there = scenes.found(spark, folder)
        assert scene.held <= there <= scene.allowed
        assert refusals[-1] is not None or scene.verb != "append" or NEW in there
        scenes.hours(spark, folder)
        ballast.unlink()
        scenes.check(spark, folder, scene)
    told = [each for each in refusals if each is not None]
    report(record_property, f"{name}: {len(told)} of {len(refusals)} full disks were refused")
    assert told == refusals[: len(told)], "a fuller disk had room"
    assert all(each.endswith("No space left on device") and "\n" not in each for each in told), told
    assert told
    assert len(told) < len(refusals) or not IS_SOAK
