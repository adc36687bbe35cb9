"""``offramp notebooks``: what is new is copied, what is edited is kept, what was only run is the same."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.presentation.notebook_files import Copied, copy_notebooks, notebooks

EDITED, RUN, MISSING = "report/groups.ipynb", "explore/group.ipynb", "runbook/fleet.ipynb"


def copied(folder, force=False):
    return {each.name: each.copied for each in copy_notebooks(folder, force)}


@pytest.fixture
def folder(tmp_path):
    """One was edited, one run, one deleted."""
    copy_notebooks(tmp_path)
    edited = json.loads((tmp_path / EDITED).read_bytes())
    edited["cells"][-1]["source"] = "1 + 1"
    (tmp_path / EDITED).write_text(json.dumps(edited))
    run = json.loads((tmp_path / RUN).read_bytes())
    next(cell for cell in run["cells"] if cell["cell_type"] == "code")["execution_count"] = 7
    (tmp_path / RUN).write_text(json.dumps(run))
    (tmp_path / MISSING).unlink()
    return tmp_path


def test_every_notebook_is_copied_whole(tmp_path):
    assert set(copied(tmp_path / "a" / "b").values()) == {Copied.NEW}
    of_release = {path.relative_to(notebooks()) for path in notebooks().glob("*/*.ipynb")}
    assert {path.relative_to(tmp_path / "a/b") for path in tmp_path.rglob("*.ipynb")} == of_release
    assert len(of_release) >= 8
    for name in of_release:
        assert (tmp_path / "a/b" / name).read_bytes() == (notebooks() / name).read_bytes()


def test_an_edited_one_is_kept_and_named(folder):
    edited = (folder / EDITED).read_bytes()
    found = copied(folder)
    assert {name: what for name, what in found.items() if what is not Copied.SAME} == {
        EDITED: Copied.DIFFERS,
        MISSING: Copied.NEW,
    }
    assert (folder / EDITED).read_bytes() == edited
    assert (folder / MISSING).exists()


def test_force_replaces_what_differs_and_nothing_else(folder):
    run = (folder / RUN).read_bytes()
    assert copied(folder, force=True)[EDITED] is Copied.REPLACED
    assert (folder / EDITED).read_bytes() == (notebooks() / EDITED).read_bytes()
    assert (folder / RUN).read_bytes() == run


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cells": [3]}', b"\xff"])
def test_a_file_that_is_no_notebook_differs(folder, content):
    (folder / EDITED).write_bytes(content)
    assert copied(folder)[EDITED] is Copied.DIFFERS
    assert (folder / EDITED).read_bytes() == content


def test_the_verb_names_each_and_what_to_do(folder):
    ended = CliRunner().invoke(app, ["notebooks", str(folder)])
    assert ended.exit_code == 0, ended.output
    assert f"differs   {folder / EDITED}" in ended.stdout.splitlines()
    assert f"new       {folder / MISSING}" in ended.stdout.splitlines()
    assert "1 differ from this release's and were kept" in ended.stderr
    assert "add --force" in ended.stderr


def test_a_folder_that_can_not_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    ended = CliRunner().invoke(app, ["notebooks", str(tmp_path / "file")])
    assert ended.exit_code == 2
    assert ended.stderr.startswith("offramp: ")
    assert ended.stderr.count("\n") == 1
