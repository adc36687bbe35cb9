"""The archive of Spark's classes: used where it is, no error where Java makes none."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from kit import spark_archive


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setattr(spark_archive, "archive", lambda: tmp_path / "share" / "spark.jsa")
    return tmp_path / "share" / "spark.jsa"


def test_java_is_told_of_an_archive_that_is_there(place):
    assert spark_archive.java_options() == ()
    place.parent.mkdir()
    place.touch()
    assert spark_archive.java_options()[0] == f"-XX:SharedArchiveFile={place}"


def test_an_archive_that_java_does_not_make_is_no_error(place, monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stderr="no base archive"))
    spark_archive.main()
    assert "so Spark starts slowly: no base archive" in capsys.readouterr().out
    assert list(place.parent.iterdir()) == []


def test_it_lies_beside_the_packages_it_is_of():
    assert spark_archive.archive().is_relative_to(spark_archive.sys.prefix)
