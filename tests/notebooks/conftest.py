"""The shop of ``shop.py`` for the tests of this folder."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("tests.notebooks.shop")
