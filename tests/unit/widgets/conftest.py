"""The model of a group in memory, for wizards and models alike."""

from __future__ import annotations

import pytest

from tests.models.operations import ToyGroup, open_toy


@pytest.fixture
def toy():
    found = ToyGroup()
    yield found
    found.gate.set()


@pytest.fixture
def model(toy, tmp_path):
    found = open_toy(toy, tmp_path / "runs")
    found.soak_s = 0.0
    yield found
    toy.gate.set()
    found.close()
