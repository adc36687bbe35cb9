"""Jars are only kept when they are the expected ones, and are found again without hashing."""

from __future__ import annotations

import hashlib
import re

import pytest

from kit.errors import SetupError
from kit.lab.java import jars, resolver

NAMES = {"a.jar": b"alpha", "b.jar": b"beta"}


@pytest.fixture
def one_set(tmp_path, monkeypatch):
    """A set of two jars that the resolver 'finds' without a network."""
    monkeypatch.setenv("OFFRAMP_CACHE", str(tmp_path))
    sums = {f"set/{name}": hashlib.sha256(content).hexdigest() for name, content in NAMES.items()}
    monkeypatch.setattr(jars, "all_checksums", lambda: sums)
    files = dict(NAMES)

    def resolve(modules, without, work, say):
        (work / "libraries").mkdir()
        for name, content in files.items():
            (work / "libraries" / name).write_bytes(content)
        return work / "libraries"

    monkeypatch.setattr(resolver, "resolve", resolve)
    return jars.JarSet("set", ("g:m:1",)), files


def ensure(jar_set):
    lines = []
    return jars.ensure([jar_set], lines.append)[jar_set.name], lines


def test_fetches_once(one_set):
    jar_set, _ = one_set
    folder, lines = ensure(jar_set)
    assert sorted(path.name for path in folder.glob("*.jar")) == ["a.jar", "b.jar"]
    assert any("checked and kept" in line for line in lines)
    assert ensure(jar_set) == (folder, [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a.jar": b"other"}, "other contents: a.jar"),
        ({"a.jar": None}, "missing: a.jar"),
        ({"c.jar": b"new"}, "not on the list: c.jar"),
    ],
)
def test_refuses_what_is_not_expected(one_set, change, words):
    jar_set, files = one_set
    files |= change
    for name in [name for name, content in files.items() if content is None]:
        del files[name]
    with pytest.raises(SetupError, match=re.escape(words)):
        ensure(jar_set)
    target = jars.folder_of(jar_set)
    assert not target.exists()
    assert list(target.parent.iterdir()) == []


def test_damaged_set_is_fetched_again(one_set):
    jar_set, _ = one_set
    folder, _ = ensure(jar_set)
    (folder / "a.jar").write_bytes(b"half")
    assert not jars.is_complete(folder)
    _, lines = ensure(jar_set)
    assert lines
    assert (folder / "a.jar").read_bytes() == NAMES["a.jar"]


def test_class_path_is_quoted_for_java(one_set, tmp_path):
    jar_set, _ = one_set
    assert jars.class_path(jar_set, tmp_path) == f"{tmp_path}:{jars.folder_of(jar_set)}/*"


def test_committed_list_covers_every_set():
    for jar_set in jars.ALL_SETS:
        names = jars.expected(jar_set.name)
        assert len(names) >= 6
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in names.values())
        for module in jar_set.modules:
            _, name, version = module.split(":")
            assert f"{name}-{version}.jar" in names


def test_unreachable_repository_reports_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv(resolver.MIRROR_VARIABLE, (tmp_path / "nothing").as_uri())
    with pytest.raises(SetupError, match=resolver.MIRROR_VARIABLE):
        resolver.resolve(["g:m:1"], [], tmp_path, lambda line: None)
