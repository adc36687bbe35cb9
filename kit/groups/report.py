"""The report notebook, run by papermill: an executed notebook to open again and one HTML that needs no network."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbformat.sign import NotebookNotary
from traitlets import CaselessStrEnum, default

from kit import errors
from kit.clients.cluster import connect
from kit.errors import InputError, OfframpError, PartialRead, ReadError, StoresDiffer
from kit.groups.chosen import hidden_topics
from kit.groups.notebook_files import notebooks
from kit.groups.read.rights import fetch_unseen_groups
from kit.groups.show.page import render_html
from kit.profile import Profile
from kit.text.quantity import quantity
from kit.text.visible import file_name

OUTCOME = "application/vnd.offramp.outcome+json"
"""The MIME type under which a notebook's last cell says what came of it."""
_ABOUT_ZOOKEEPER = "zookeeper"
"""The tag of cells that say nothing about a cluster without ZooKeeper."""
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
    """Where a report lies, and what its notebook said of itself."""

    notebook: Path
    html: Path
    latest: Path
    outcome: dict[str, Any]


def run_report(
    profile: Profile,
    output: Path,
    groups: str,
    history: str = "",
    say: Callable[[str], None] = lambda text: None,
    keep: int | None = None,
) -> Report:
    """Run the notebook ``report/groups.ipynb`` of this release for one cluster into a new folder under ``output``.

    The page lies under a fixed name too, ``<output>/report-<cluster>.html``.

    Args:
        history: a folder or URL that Spark can write to; by default ``<output>/history``.
        keep: how many folders of this cluster's reports stay, this one included; None: all. The history stays whole.

    Raises:
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written, or ``keep`` is less than 1.
    """
    if keep is not None and keep < 1:
        raise InputError(f"{quantity(keep, 'report')} can't be kept. Give --keep 1 or more: the new report is kept")
    with connect(profile, is_patient=False) as cluster:
        say(f"reporting on {cluster.name} ({cluster.cluster_id})")
        for line in filter(None, [*hidden_topics(cluster), fetch_unseen_groups(cluster.broker_client)]):
            say(line)
    folder = new_folder(output.absolute(), file_name(profile.name), datetime.now(UTC))
    kept_in = history if "://" in history else str(Path(history).absolute() if history else folder.parent / "history")
    parameters = {"profile": profile.name, "profile_file": str(profile.file), "groups": groups, "history": kept_in}
    say("running the notebook: starting Spark, reading, analysing …")
    latest = f"report-{file_name(profile.name)}.html"
    _execute(notebooks() / "report" / "groups.ipynb", folder / "groups.ipynb", parameters)
    made = _publish(folder / "groups.ipynb", f"{profile.name}: consumer groups", latest)
    if keep is not None:
        forget_older(folder, keep)
    return made


def run_soak_report(history: Path, output: Path, cluster: str, last_hours: float = 0.0) -> Report:
    """Run the notebook ``report/kraft_soak.ipynb`` over the observations of one cluster into a new folder under
    ``output``.

    The page lies under a fixed name too, ``<output>/soak-<cluster>.html``. No cluster is asked.

    Raises:
        StoresDiffer: the last observation shows diverged values; the report is made all the same.
        PartialRead: the last observation was not read; the same.
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written.
    """
    name = file_name(cluster)
    failed: PartialRead | StoresDiffer | None = None
    folder = new_folder(output.absolute(), f"soak-{name}", datetime.now(UTC))
    parameters: dict[str, str | float] = {
        "history": str(history.absolute()),
        "cluster": cluster,
        "last_hours": last_hours,
    }
    notebook = folder / "kraft_soak.ipynb"
    try:
        _execute(notebooks() / "report" / notebook.name, notebook, parameters)
    except (PartialRead, StoresDiffer) as error:
        failed = error
    made = _publish(notebook, f"{cluster}: soak of the move to KRaft", f"soak-{name}.html")
    if failed is not None:
        raise type(failed)(f"{failed}; the report: {made.html}")
    return made


@dataclass(frozen=True)
class HealthTargets:
    """What ``report/health.ipynb`` holds groups to: see its parameters. ``holes``: topics, a line each."""

    hours: float = 24.0
    target_lag: int = 1000
    target_age_s: float = 0.0
    silence_min: float = 30.0
    every_min: float = 1.0
    holes: str = ""


def run_health_report(
    profile: Profile,
    history: str,
    output: Path,
    targets: HealthTargets,
    logs: Sequence[str] = (),
    zone: str = "",
    at: Callable[[str], None] = lambda place: None,
) -> Report:
    """Run the notebook ``report/health.ipynb`` over a history into a new folder under ``output``.

    The page lies under a fixed name too, ``<output>/health-<cluster>.html``. No cluster is asked.

    Args:
        logs: of the groups' consumers: files, folders or patterns. ``zone``: of times that don't say theirs.
        at: is reported which cell of the notebook begins.

    Raises:
        PartialRead: the newest snapshot could not read something; the report is made all the same.
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written.
    """
    name, failed = file_name(profile.name), None
    folder = new_folder(output.absolute(), f"health-{name}", datetime.now(UTC))
    parameters: dict[str, str | float] = {
        "history": history if "://" in history else str(Path(history).absolute()),
        "profile": profile.name,
        "profile_file": str(profile.file),
        "logs": "\n".join(str(Path(each).absolute()) for each in logs),
        "zone": zone,
        **asdict(targets),
    }
    notebook = folder / "health.ipynb"
    try:
        _execute(notebooks() / "report" / notebook.name, notebook, parameters, at)
    except PartialRead as error:
        failed = error
    made = _publish(notebook, f"{profile.name}: health of the groups", f"health-{name}.html")
    if failed is not None:
        raise PartialRead(f"{failed}; the report: {made.html}")
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
        with suppress(OSError):  # Somebody keeps a file of theirs in it.
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
