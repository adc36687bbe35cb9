"""A disk that is really full under a folder of runs, at any page that a run writes: one sentence, nothing half, and on.

The disk is a small tmpfs: mounting it needs root; else this test is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.engine.execution.run import Run
from kit.engine.model.states import RunState
from kit.errors import EvidenceError
from tests.models.engine import ModelRun
from tests.soak import IS_SOAK

PAGE, PAGES = 4096, 1024
ROOM = range(0, 90, 3) if IS_SOAK else (0, 3, 40)
LITTLE = 2
"""The number of pages that is never enough."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("disk")
    size = f"size={PAGES * PAGE}"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, n_pages_left: int) -> None:
    room = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (room.f_bavail - n_pages_left) * room.f_frsize)


def refusal(run: Run, verb: str) -> str | None:
    """None: there was room for all."""
    try:
        getattr(run, verb)()
    except EvidenceError as error:
        return str(error)
    return None


@pytest.mark.parametrize("verb", ["act", "undo"])
@pytest.mark.parametrize("n_pages", ROOM)
def test_a_run_whose_disk_is_full_reports_it_in_one_line_and_continues_once_there_is_room(disk, n_pages, verb):
    """The disk is full in the midst of the first step, but for so many pages."""
    world = ModelRun(disk / "runs", (40, 40))
    if verb == "undo":
        world.run.act().raise_unless()
    world.hazard.arm(30, lambda name: fill(disk, n_pages))
    told = refusal(world.process(), verb)
    again = refusal(world.process(), "resume") if told is not None else None
    assert all("No space left on device" in each and "\n" not in each for each in (told, again) if each is not None)
    assert told is not None or n_pages >= LITTLE
    (disk / "ballast").unlink()
    ended = RunState.VERIFIED if verb == "act" else RunState.UNDONE
    if world.run.record.state != ended or world.run.record.lacks_verdict:
        assert world.process().resume().state == ended
    assert world.is_all_done if verb == "act" else world.is_all_back
    assert (world.cluster.wrongs, world.run.record.notes) == ([], ())
    assert [each.name for each in (disk / "runs").rglob(".*")] == []
    shutil.rmtree(disk / "runs")
