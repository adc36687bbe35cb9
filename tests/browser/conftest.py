"""A Chromium for all tests of this folder, and a JupyterLab on the shop's notebooks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from kit.errors import SetupError
from tests.browser import chromium
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.offline import Tab, launched, opened_tab
from tests.notebooks import fleet_site
from tests.notebooks.executed import NOTEBOOKS
from tests.notebooks.shop import Shop, register


def pytest_configure(config: pytest.Config) -> None:
    register(config)
    fleet_site.register(config)


@pytest.fixture(scope="session")
def jupyter(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """JupyterLab on a copy of the notebooks."""
    home = tmp_path_factory.mktemp("jupyter")
    shutil.copytree(NOTEBOOKS, home / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints", "runs"))
    with jupyter_lab(shop.lab, home, {"OFFRAMP_PROFILE_FILE": str(shop.profile_file)}) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A machine without a browser runs every other test; in CI a missing browser is an error."""
    try:
        chromium.find()
    except SetupError as error:
        if chromium.is_required():
            raise
        pytest.skip(str(error))
    with launched() as running:
        yield running


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with opened_tab(browser) as opened:
        yield opened
