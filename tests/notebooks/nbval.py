"""Notebooks run cell by cell under nbval, each in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import nbformat

from kit.lab import Lab
from kit.lab.process import wait_until
from tests.notebooks.executed import KERNEL_SECONDS, ROOT
from tests.notebooks.process_tree import ended

CELL_SECONDS = 240
RUN_SECONDS = 580


def check(lab: Lab, notebooks: Sequence[Path], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Every code cell of each passes; the log and the result are written to ``folder``."""
    result = folder / "nbval.xml"
    options = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}", "-p", "no:cacheprovider"]
    options += [f"--nbval-kernel-startup-timeout={KERNEL_SECONDS}"]
    where = [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", f"--junitxml={result}"]
    command = [sys.executable, "-m", "pytest", *options, *where, *map(str, notebooks)]
    with ended(lab.supervisor.start(f"nbval-{folder.name}", command, environment)) as run:
        wait_until(lambda: not run.running, f"the end of nbval, whose log is {run.log},", RUN_SECONDS)
    log = run.log.read_text(encoding="utf-8")
    assert run.exit_code == 0, log
    cases = list(ElementTree.parse(result).iter("testcase"))
    assert [case.get("name") for case in cases if list(case)] == [], log
    assert len(cases) == sum(map(_n_code_cells, notebooks)) > 0, log


def _n_code_cells(notebook: Path) -> int:
    return sum(cell.cell_type == "code" for cell in nbformat.read(notebook, 4).cells)
