"""The notebooks of this release: where they are, and copied out to run and to edit.

In a checkout ``kit/notebooks`` is a link to ``notebooks``; a wheel carries the files themselves.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Any

from kit.errors import InputError
from kit.text.regular_file import read_regular


class Copied(StrEnum):
    """The result of copying one notebook to a folder."""

    NEW = "new"
    SAME = "same"
    DIFFERS = "differs"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class NotebookCopy:
    """``name``: the notebook's path below the folder, such as ``report/groups.ipynb``."""

    name: str
    copied: Copied


def notebooks() -> Path:
    """The folder of this release's notebooks; nothing may be written to it."""
    return Path(str(files("kit") / "notebooks"))


def copy_notebooks(folder: Path, force: bool = False) -> tuple[NotebookCopy, ...]:
    """Copy each notebook that ``folder`` does not have. One that differs from this release's stays as it is, unless
    ``force``; outputs are no difference.

    Raises:
        InputError: ``folder`` can't be read or written.
    """
    here = notebooks()
    names = sorted(str(path.relative_to(here)) for path in here.glob("*/*.ipynb"))
    try:
        return tuple(NotebookCopy(name, _copy(here / name, folder / name, force)) for name in names)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder} can't be written: {error.strerror}; name another folder"
        ) from error


def _copy(source: Path, target: Path, force: bool) -> Copied:
    is_there = target.exists()
    if is_there and _cells(source) == _cells(target):
        return Copied.SAME
    if is_there and not force:
        return Copied.DIFFERS
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return Copied.REPLACED if is_there else Copied.NEW


def _cells(notebook: Path) -> list[tuple[Any, str]] | None:
    """Kind and text of each cell; None for what is no notebook."""
    try:
        cells = json.loads(read_regular(notebook))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
