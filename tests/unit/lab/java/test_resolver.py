"""The repository is chosen, without naming one here."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from kit.lab.java import resolver

MIRRORS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>
<mirror><id>a</id><mirrorOf>other</mirrorOf><url>https://other.invalid/</url></mirror>
<mirror><id>b</id><mirrorOf>{covers}</mirrorOf><url> https://mirror.invalid/maven </url></mirror>
</mirrors></settings>"""


@pytest.mark.parametrize("covers", ["*", "central", "external:*", "x, central"])
def test_mirror_of_central_is_found(covers):
    assert resolver.parse_mirror(MIRRORS.format(covers=covers)) == "https://mirror.invalid/maven"


@pytest.mark.parametrize("covers", ["other", "*,!central", "external:http:*"])
def test_other_mirrors_are_not_meant(covers):
    assert resolver.parse_mirror(MIRRORS.format(covers=covers)) is None


@pytest.mark.parametrize("text", ["", "<settings>", "<settings/>"])
def test_settings_without_mirror(text):
    assert resolver.parse_mirror(text) is None


def test_variable_comes_before_settings(tmp_path, monkeypatch):
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(MIRRORS.format(covers="*"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(resolver.MIRROR_VARIABLE, raising=False)
    assert resolver.configured_mirror() == "https://mirror.invalid/maven"
    monkeypatch.setenv(resolver.MIRROR_VARIABLE, "https://named.invalid")
    assert resolver.configured_mirror() == "https://named.invalid"
    assert resolver.settings_options(tmp_path) == ["-settings", str(tmp_path / "settings.xml")]
    written = ElementTree.parse(tmp_path / "settings.xml")
    assert written.find(".//ibiblio").get("root") == "https://named.invalid/"


def test_without_mirror_nothing_is_set(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(resolver.MIRROR_VARIABLE, raising=False)
    assert resolver.settings_options(tmp_path) == []


def test_module_file_leaves_out():
    text = resolver.module_file(["g:m:1"], ["g:unwanted"])
    root = ElementTree.fromstring(text)
    assert root.find(".//dependency").attrib == {"org": "g", "name": "m", "rev": "1", "conf": "default->default"}
    assert root.find(".//exclude").attrib == {"org": "g", "module": "unwanted"}
