"""A writer is put on a fresh copy of a scene, and is stalled before one of its changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.property.history.scenes import ADDED, InterruptedWrite
from tests.property.history.writer import Writer


def fresh(folder: Path, begun: dict[bool, Path], scene: InterruptedWrite) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    if not scene.is_empty:
        shutil.copytree(begun[scene.is_compacted], folder)
    return str(folder)


def told(writer: Writer, folder: str, scene: InterruptedWrite, what: str, at: int) -> str:
    writer.order(scene.verb, folder, what, at, scene.later.total_seconds(), ADDED)
    return writer.told()


def moments(writer: Writer, folder: str, scene: InterruptedWrite) -> list[tuple[str, int]]:
    """The scene's own change, then all changes: each by its begin, and which one of those it is."""
    n_changes = int(told(writer, folder, scene, "", 0).removeprefix("done "))
    assert n_changes > 5, n_changes
    return [(scene.moment, 1)] + [("", at) for at in range(1, n_changes + 1)]
