"""How real tests are shared out by ``pytest -n … --dist loadgroup --no-loadscope-reorder``."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LONGEST = (
    "notebooks/test_report.py",
    "notebooks/test_nbval.py",
    "notebooks/test_explore.py",
    "browser/test_browser.py",
    "notebooks/test_runbook.py",
    "servers/test_fleet.py",
    "servers/test_spark_modes.py",
    "interop/test_migrate_group.py",
    "interop/test_migrate_faults.py",
    "browser/test_wizard.py",
    "notebooks/test_runbook_fleet.py",
    "browser/test_fleet_wizard.py",
)
"""Begun first, so that none of them is left alone at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file, or of one named group, run in one process: they share servers."""
    items.sort(key=_rank)  # the order within a file stays
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_file(item)))


def _rank(item: pytest.Item) -> int:
    return LONGEST.index(_file(item)) if _file(item) in LONGEST else len(LONGEST)


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()
