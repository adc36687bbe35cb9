"""Verbs that take a group or a file in two ways: exactly one of them is named."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kit.cli.main import app


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("lock break", "name one group, or --whole-cluster"),
        ("lock break orders --whole-cluster", "name one group, or --whole-cluster"),
        ("plan offsets import", "name one file"),
        ("plan offsets import a.csv --from-file b.csv", "name one file"),
    ],
)
def test_none_and_two_are_refused_before_anything_is_connected(words: str, told: str) -> None:
    ended = CliRunner().invoke(app, words.split())
    assert (ended.exit_code, told in " ".join(ended.output.split())) == (2, True), ended.output
