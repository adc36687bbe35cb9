"""The shop of ``shop.py`` and the groups of ``fleet_site.py`` for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.notebooks import fleet_site, shop


def pytest_configure(config: pytest.Config) -> None:
    shop.register(config)
    fleet_site.register(config)
