"""A writer that is ended at any change of a file leaves a history that is whole, and the next run ends clean.

A process of its own is stalled before each change that it makes to the file system: nothing moves meanwhile, so a
copy of the folder is what SIGKILL leaves there. Some are killed by it indeed.
``make soak`` goes through all changes of all scenes (about 350), else a compaction is killed once.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.property.history import scenes
from tests.property.history.scenes import SCENES
from tests.property.history.standing import fresh, moments, told
from tests.soak import IS_SOAK, first, report, soak_only

pytestmark = [
    pytest.mark.usefixtures("few_tables"),
    pytest.mark.xdist_group("histories"),
    pytest.mark.timeout(900),  # Two Sparks start, and a Java source is compiled.
]


@soak_only
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_ended_before_any_change_of_a_file(spark, writer, begun, tmp_path, scene, record_property):
    folder, image = tmp_path / "history", tmp_path / "image"
    tried = moments(writer, fresh(folder, begun, scene), scene)
    report(record_property, f"{scene.name}: {len(tried)} moments")
    for moment in tried:
        what = told(writer, fresh(folder, begun, scene), scene, *moment)
        assert what.startswith("stopped") or not moment[0], what  # Threads take turns: a count may be one less.
        shutil.rmtree(image, ignore_errors=True)
        if folder.exists():
            shutil.copytree(folder, image)
        if what.startswith("stopped"):
            assert writer.go_on().startswith("done")
        try:
            scenes.check(spark, image, scene)
        except BaseException as error:
            error.add_note(f"{scene.name}, {moment}: {what}")
            raise


@pytest.mark.parametrize("at", range(5, 56, 5) if IS_SOAK else [40])
@pytest.mark.parametrize("name", first(["compact", "append"]))
def test_killed(spark, writer, begun, tmp_path, name, at):
    """By SIGKILL in the midst of what it does; the handles and threads of the process are gone, its files stay."""
    (scene,) = (scene for scene in SCENES if scene.name == name)
    folder = fresh(tmp_path / "history", begun, scene)
    assert told(writer, folder, scene, "", at).startswith("stopped")
    writer.kill()
    scenes.check(spark, Path(folder), scene)
