"""What `make test` runs beyond `make check`, in which order, and what shares a process."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
REAL = ("notebooks", "browser", "interop", "servers")
SHOP = ["notebooks/test_report.py", "notebooks/test_nbval.py", "browser/test_browser.py"]
"""They share two reports."""
RUNBOOKS = [
    *("notebooks/test_runbook.py", "notebooks/test_runbook_fleet.py", "notebooks/test_move_offsets.py"),
    *("browser/test_wizard.py", "browser/test_offsets_wizard.py", "browser/test_fleet_wizard.py"),
    "notebooks/test_explore.py",
]
"""They share a JupyterLab and groups that migrate."""
LONG = [*SHOP, *RUNBOOKS, "servers/test_fleet.py", "interop/test_migrate_group.py", "servers/test_spark_modes.py"]
"""Begun first, so that no process is left alone with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)
    for item in items:
        file = _file(item)
        item.add_marker(pytest.mark.xdist_group("shop" if file in SHOP else "runbooks" if file in RUNBOOKS else file))
        if file.startswith(REAL):
            item.add_marker(pytest.mark.slow)


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


def _rank(item: pytest.Item) -> int:
    """The order within a file stays."""
    return LONG.index(_file(item)) if _file(item) in LONG else len(LONG)
