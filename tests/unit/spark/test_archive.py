"""The archive of Spark's classes: used where it is, no error where Java makes none."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kit.spark import archive as spark_archive, make_archive


@pytest.fixture
def place(tmp_path):
    return tmp_path / "share" / "spark.jsa"


def test_java_gets_an_existing_archive(place):
    assert spark_archive.java_options(place) == ()
    place.parent.mkdir()
    place.touch()
    assert spark_archive.java_options(place)[0] == f"-XX:SharedArchiveFile={place}"


def hang(*_, **__):
    raise subprocess.TimeoutExpired("java", 180)


@pytest.mark.parametrize(
    ("run", "told"),
    [(lambda *_, **__: SimpleNamespace(stderr="no base archive"), "no base archive"), (hang, "timed out")],
)
def test_an_archive_that_java_does_not_make_is_no_error(place, monkeypatch, capsys, run, told):
    monkeypatch.setattr(subprocess, "run", run)
    make_archive.main(place)
    said = capsys.readouterr().out
    assert "so Spark starts slowly: " in said
    assert told in said
    assert list(place.parent.iterdir()) == []


def test_it_lies_beside_the_packages_it_is_of():
    assert spark_archive.archive().is_relative_to(sys.prefix)
