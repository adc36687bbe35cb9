"""The report notebook, run by papermill: an executed notebook to open again and one HTML that needs no network."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbconvert import HTMLExporter
from nbformat.sign import NotebookNotary
from traitlets import CaselessStrEnum, default

from kit import errors
from kit.cluster import connect
from kit.errors import InputError, OfframpError, ReadError
from kit.notebook_files import notebooks
from kit.profile import Profile
from kit.show import charts
from kit.text.visible import file_name, html_text

OUTCOME = "application/vnd.offramp.outcome+json"
"""The MIME type under which a notebook's last cell says what came of it."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }}
h1 {{ font-size: 1.7rem; }} h2 {{ margin-top: 2.4rem; border-bottom: 1px solid #d5dce3; padding-bottom: .3rem; }}
table {{ border-collapse: collapse; font-size: 13px; }} .output_html {{ overflow-x: auto; margin-bottom: 1rem; }}
th {{ background: #f4f7f9; white-space: nowrap; }} caption {{ color: #66727f; text-align: left; }}
pre {{ white-space: pre-wrap; }} svg {{ max-width: 100%; height: auto; }} .anchor-link {{ display: none; }}
</style></head><body>
{body}
</body></html>
"""


class _LocalKernel(AsyncKernelManager):
    """A kernel that is spoken to over sockets in a folder of its own: nobody else on this machine can listen, and
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
    outcome: dict[str, Any]


def run_report(
    profile: Profile, output: Path, groups: str, history: str = "", say: Callable[[str], None] = lambda text: None
) -> Report:
    """Run the notebook ``report/groups.ipynb`` of this release for one cluster into a new folder under ``output``.

    ``history`` is a folder or URL that Spark can write to; by default ``<output>/history``.

    Raises:
        OfframpError: as the notebook did; what ran until then is in the notebook named in the message.
        InputError: ``output`` can't be written.
    """
    with connect(profile) as cluster:
        say(f"reporting on {cluster.name} ({cluster.cluster_id})")
    folder = output.absolute() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{file_name(profile.name)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"no folder can be made for the report: {error}") from error
    notebook = folder / "groups.ipynb"
    kept_in = history if "://" in history else str(Path(history).absolute() if history else folder.parent / "history")
    parameters = {"profile": profile.name, "profile_file": str(profile.file), "groups": groups, "history": kept_in}
    say("running the notebook: starting Spark, reading, analysing …")
    _execute(notebooks() / "report" / "groups.ipynb", notebook, parameters)
    executed = nbformat.read(notebook, as_version=4)
    # JupyterLab shows charts and table styles of a notebook it trusts only.
    NotebookNotary().sign(executed)
    page = folder / "groups.html"
    page.write_text(render_html(executed, f"{profile.name}: consumer groups"), encoding="utf-8")
    return Report(notebook, page, _outcome(executed))


def render_html(notebook: Any, title: str) -> str:
    """Outputs and text of an executed notebook as one page without scripts or links to other files.

    What servers and clients wrote to standard error stays in the notebook.
    """
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if "outputs" in cell:
            cell["outputs"] = [_inline(output) for output in cell["outputs"] if output.get("name") != "stderr"]
    exporter = HTMLExporter(template_name="basic", exclude_input=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    return _PAGE.format(title=html_text(title), body=body)


def _inline(output: Any) -> Any:
    """A chart as an element of the page, so that a browser finds the names in it; nbconvert would make it a file."""
    if "image/svg+xml" in output.get("data", {}):
        output["data"] = {"text/html": charts.with_own_ids(output["data"]["image/svg+xml"])}
    return output


def _execute(source: Path, target: Path, parameters: dict[str, str]) -> None:
    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=parameters,
            cwd=source.parent,
            progress_bar=False,
            kernel_manager_class=_LocalKernel,
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
    raise ReadError("the notebook ended without saying what came of it")
