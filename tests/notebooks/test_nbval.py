"""The notebooks that need no group or run named run from their defaults, cell by cell, under nbval."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import nbformat
import pytest

from tests.notebooks.shop import NOTEBOOKS, ROOT, ended

CELL_SECONDS = 120
RUN_SECONDS = 580
FILES = [NOTEBOOKS / name for name in ("explore/group.ipynb", "explore/rebalances.ipynb", "report/groups.ipynb")]
"""The others have no safe default: test_runbook.py runs them by papermill."""


def n_code_cells() -> dict[str, int]:
    return {
        str(path.relative_to(NOTEBOOKS)): sum(cell.cell_type == "code" for cell in nbformat.read(path, 4).cells)
        for path in FILES
    }


@pytest.mark.timeout(RUN_SECONDS + 20)
def test_every_code_cell_passes(shop, tmp_path):
    result = tmp_path / "nbval.xml"
    options = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}", "-p", "no:cacheprovider"]
    where = [f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}", f"--junitxml={result}", *map(str, FILES)]
    with ended(shop.start("nbval", [sys.executable, "-m", "pytest", *options, *where], {})) as run:
        run.wait_until(lambda: not run.running or run.exit_code is not None, "its end", RUN_SECONDS)
    log = run.log.read_text(encoding="utf-8")
    assert run.exit_code == 0, log
    cases = list(ElementTree.parse(result).iter("testcase"))
    assert [case.get("name") for case in cases if list(case)] == [], log
    wanted = n_code_cells()
    assert len(cases) == sum(wanted.values()), log
