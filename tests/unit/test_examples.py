"""The worked cases in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import kit

ROOT = Path(kit.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(Path(kit.__file__).parent.rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def test_there_are_examples_of_lag_parity_and_proof():
    wanted = {f"groups.{name}" for name in ("lag", "lag_totals", "parity", "change", "stickiness")}
    wanted |= {f"proof.{name}" for name in ("consumption_intervals", "duplicates", "exclusivity", "lost", "stalls")}
    assert {f"kit.analyze.{name}" for name in wanted} <= set(MODULES)
