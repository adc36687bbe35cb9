"""The files of the licence that a release carries; ``tests/browser/test_wheel.py`` looks into the wheel itself."""

from __future__ import annotations

import tomllib

from tests.docs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_licence_that_the_metadata_names_is_there_as_a_whole():
    assert PROJECT["license"] == "Apache-2.0"
    assert [(ROOT / name).is_file() for name in PROJECT["license-files"]] == [True, True]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text
