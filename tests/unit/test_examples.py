"""The worked cases in docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import kit
from kit import analyze

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


WITHOUT_A_CASE = {"group_hours", "incident_causes", "lag_outlook"}
"""Each takes histories that are longer than what they show; their unit tests have them."""


def test_every_public_analysis_has_its_columns_and_a_worked_case():
    public = {name: getattr(analyze, name) for name in analyze.__all__}
    functions = {name: each for name, each in public.items() if inspect.isroutine(each)}
    assert len(functions) > 50
    texts = {name: inspect.getdoc(each) or "" for name, each in functions.items()}
    assert {name for name, text in texts.items() if ">>> " not in text} == WITHOUT_A_CASE
    assert [name for name, text in texts.items() if "Columns:" not in text] == []
