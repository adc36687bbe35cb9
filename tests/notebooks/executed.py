"""Notebooks executed by papermill, and what their cells put out."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
KERNEL_SECONDS = 180
"""A kernel starts within this time even beside many other processes."""


def execute(source: Path, output: Path, /, **parameters: object) -> nbformat.NotebookNode:
    """Run a notebook with parameters in the folder of its output, and return what was executed.

    Raises:
        papermill.PapermillExecutionError: a cell failed; ``output`` holds the notebook up to that cell.
    """
    papermill.execute_notebook(
        source, output, parameters, cwd=output.parent, progress_bar=False, start_timeout=KERNEL_SECONDS
    )
    return nbformat.read(output, as_version=4)


def fill_in(source: str, target: Path, /, **parameters: object) -> None:
    """Write a notebook of the kit (``explore/kraft``) with its parameters filled in, and run none of its cells."""
    papermill.execute_notebook(NOTEBOOKS / f"{source}.ipynb", target, parameters, prepare_only=True, progress_bar=False)


def texts(notebook: nbformat.NotebookNode, kind: str) -> list[str]:
    """Return the outputs of one MIME type, in order."""
    found = [output.get("data", {}).get(kind) for cell in notebook.cells for output in cell.get("outputs", ())]
    return [text for text in found if text]


def printed(notebook: nbformat.NotebookNode) -> str:
    """Return all text that the cells printed."""
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
