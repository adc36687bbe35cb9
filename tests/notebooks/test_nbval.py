"""The notebooks for exploring run from their defaults, cell by cell, under nbval."""

from __future__ import annotations

import pytest

from tests.notebooks import nbval
from tests.notebooks.executed import NOTEBOOKS
from tests.soak import IS_SOAK

pytestmark = pytest.mark.xdist_group("shop")

FILES = [NOTEBOOKS / name for name in ("explore/rebalances.ipynb", "explore/kraft.ipynb")]
FILES += [NOTEBOOKS / "explore/group.ipynb"] if IS_SOAK else []
"""The last also runs by papermill (``test_explore``), as reports do (``test_report``); the runbooks have no safe
default: their tests give them one first."""


@pytest.mark.timeout(nbval.RUN_SECONDS + 320)
def test_every_code_cell_passes(shop, tmp_path):
    nbval.check(shop.lab, FILES, tmp_path, {"OFFRAMP_PROFILE_FILE": str(shop.profile_file)})
