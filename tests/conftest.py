"""What `make test` runs beyond `make check`, in which order, and what shares a process."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SITE = ("notebooks", "browser")
"""They share a lab, its groups, two reports and a JupyterLab, so one process runs them all."""
REAL = (*SITE, "interop", "servers")
LONGEST = ("servers/test_fleet.py", "interop/test_migrate_group.py", "servers/test_spark_modes.py")
"""Begun first, so that no process is left with one of them at the end; the site's are longer still."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path.relative_to(TESTS)))  # keeps the order within a file
    for item in items:
        path = item.path.relative_to(TESTS)
        is_site = path.parts[0] in SITE
        item.add_marker(pytest.mark.xdist_group("site" if is_site else path.as_posix()))
        if path.parts[0] in REAL:
            item.add_marker(pytest.mark.slow)


def _rank(path: Path) -> int:
    if path.parts[0] in SITE:
        return 0
    return 1 + LONGEST.index(path.as_posix()) if path.as_posix() in LONGEST else 1 + len(LONGEST)
