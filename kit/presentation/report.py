"""A report notebook, run by papermill: an executed notebook to open again and one HTML that needs no network."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbformat.sign import NotebookNotary
from traitlets import CaselessStrEnum, default

from kit import errors
from kit.errors import InputError, OfframpError, ReadError
from kit.presentation.notebook_files import notebooks
from kit.presentation.page import render_html

OUTCOME = "application/vnd.offramp.outcome+json"
"""The MIME type under which a notebook's last cell reports what came of it."""
_ABOUT_ZOOKEEPER = "zookeeper"
"""The tag of cells that report nothing about a cluster without ZooKeeper."""
_FILES = ("groups.ipynb", "groups.html")
_STAMP = "%Y%m%dT%H%M%SZ"
_LONGEST = timedelta(hours=12)
"""A report that has no page after this time will have none."""


class _LocalKernel(AsyncKernelManager):
    """A kernel that is spoken to over sockets in a folder of its own: no other user of this machine can listen, and
    reports made at the same time don't hear each other's."""

    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc")

    @default("ip")
    def _own_folder(self) -> str:
        return str(Path(tempfile.mkdtemp(prefix="offramp-kernel-")) / "ipc")

    def cleanup_ipc_files(self) -> None:
        super().cleanup_ipc_files()
        shutil.rmtree(Path(self.ip).parent, ignore_errors=True)


@dataclass(frozen=True)
class Report:
    """The place of a report, and what its notebook reported about itself."""

    notebook: Path
    html: Path
    latest: Path
    outcome: dict[str, Any]


def run_notebook(
    name: str,
    folder: Path,
    parameters: Mapping[str, str | float],
    title: str,
    latest: str,
    at: Callable[[str], None] = lambda place: None,
    made_anyway: tuple[type[OfframpError], ...] = (),
) -> Report:
    """Run a notebook of ``report/`` of this release in ``folder``; its page lies there and, as ``latest``, beside it.

    Args:
        at: is reported which cell of the notebook begins.
        made_anyway: errors of the notebook after which there is a page all the same.

    Raises:
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message. If the page
            was made, the message names it.
        InputError: the folder can't be written.
    """
    notebook = folder / name
    failed: OfframpError | None = None
    try:
        _execute(notebooks() / "report" / name, notebook, parameters, at)
    except made_anyway as error:
        failed = error
    made = _publish(notebook, title, latest)
    if failed is not None:
        raise type(failed)(f"{failed}; the report: {made.html}")
    return made


def _publish(notebook: Path, title: str, latest: str) -> Report:
    """The page of an executed notebook, beside it and, as ``latest``, beside its folder."""
    folder, page = notebook.parent, notebook.with_suffix(".html")
    executed = nbformat.read(notebook, as_version=4)
    # JupyterLab shows charts and table styles of a notebook it trusts only.
    NotebookNotary().sign(executed)
    outcome = _outcome(executed)
    html = render_html(executed, title, "" if outcome.get("has_zookeeper", True) else _ABOUT_ZOOKEEPER)
    for file in (page, folder.parent / latest):
        write_whole(file, html)
    return Report(notebook, page, folder.parent / latest, outcome)


def new_folder(output: Path, name: str, begun_at: datetime) -> Path:
    """A folder for one report; where another began in the same second, a later one.

    Raises:
        InputError: none can be made.
    """
    folder = output / f"{begun_at:{_STAMP}}-{name}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return new_folder(output, name, begun_at + timedelta(seconds=1))
    except OSError as error:
        raise InputError(f"no folder can be made for the report: {error}") from error
    return folder


def write_whole(path: Path, text: str) -> None:
    """So that a browser, or a web server, never sees half of it.

    Raises:
        InputError: it can't be written; what was there stays.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):  # The folder itself may refuse.
            draft.unlink(missing_ok=True)
        raise InputError(f"{path} can't be written: {error.strerror}") from error


def forget_older(newest: Path, keep: int) -> None:
    """Delete the reports of the same cluster beyond the ``keep`` newest; nothing else that lies in their folders.

    ``newest`` stays, whatever was made beside it, and so does what is still being made.

    Raises:
        InputError: one can't be deleted.
    """
    name = newest.name.partition("-")[2]
    alike = re.compile(rf"\d{{8}}T\d{{6}}Z-{re.escape(name)}")
    found = sorted(path for path in newest.parent.iterdir() if alike.fullmatch(path.name) and _is_own(path))
    others = [path for path in found if path != newest and _is_over(path, newest)]
    for folder in others[: len(others) - keep + 1]:
        try:
            for file in _FILES:
                (folder / file).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"the report is made, but {folder} can't be deleted: {error.strerror}") from error
        with suppress(OSError):  # Another user keeps a file in it.
            folder.rmdir()


def _is_over(path: Path, newest: Path) -> bool:
    """It has its page, or none has been made for so long."""
    begun_at, now = (datetime.strptime(each.name.partition("-")[0], _STAMP) for each in (path, newest))
    return (path / _FILES[1]).exists() or now - begun_at > _LONGEST


def _is_own(path: Path) -> bool:
    """A folder itself: a link leads to a folder that a person keeps elsewhere."""
    return path.is_dir() and not path.is_symlink()


def _execute(
    source: Path,
    target: Path,
    parameters: Mapping[str, str | float],
    at: Callable[[str], None] = lambda place: None,
) -> None:
    n_cells = len(nbformat.read(source, as_version=4).cells) + 1  # One has the parameters.
    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=parameters,
            cwd=source.parent,
            progress_bar=False,
            kernel_manager_class=_LocalKernel,
            on_cell_start=lambda cell, cell_index: at(f"cell {cell_index + 1} of {n_cells}"),
        )
    except papermill.PapermillExecutionError as error:
        kind = getattr(errors, error.ename, ReadError)
        chosen = kind if isinstance(kind, type) and issubclass(kind, OfframpError) else ReadError
        raise chosen(f"the notebook stopped: {error.ename}: {error.evalue}; see {target}") from None
    except OSError as error:
        raise InputError(f"{target} can't be written: {error}") from error


def _outcome(notebook: Any) -> dict[str, Any]:
    for cell in reversed(notebook.cells):
        for output in cell.get("outputs", ()):
            found = output.get("data", {}).get(OUTCOME)
            if found is not None:
                return dict(found)
    raise ReadError("the notebook ended without a result")
