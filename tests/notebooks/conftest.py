"""The shop of ``shop.py`` for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.notebooks import shop


def pytest_configure(config: pytest.Config) -> None:
    shop.register(config)
