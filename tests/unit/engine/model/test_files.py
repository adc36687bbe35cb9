"""Files that are whole or not there, and whose they are to read."""

from __future__ import annotations

import os

import pytest

from kit.engine.model import files
from kit.engine.model.files import private_folder, write_whole


def mode(path):
    return path.stat().st_mode & 0o7777


def test_a_file_and_its_folders_are_the_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = tmp_path / "runs" / "plans"
        private_folder(folder)
        write_whole(folder / "a.json", "x")
        (folder / "a.json").chmod(0o644)
        write_whole(folder / "a.json", "y")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "runs"), mode(folder), mode(folder / "a.json")) == (0o700, 0o700, 0o600)
    assert (folder / "a.json").read_text() == "y"


def test_a_folder_that_a_team_shares_stays_the_teams(tmp_path):
    shared = tmp_path / "runs"
    shared.mkdir()
    shared.chmod(0o2770)
    private_folder(shared / "plans")
    write_whole(shared / "plans" / "a.json", "x")
    assert (mode(shared / "plans"), mode(shared / "plans" / "a.json")) == (0o2770, 0o660)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "a", "\ud800")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def test_a_link_laid_where_the_scratch_was_is_not_followed(tmp_path):
    """Its name was the process's number once, for anybody to guess."""
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / f".a.{os.getpid()}").symlink_to(target)
    write_whole(tmp_path / "a", "new")
    assert (target.read_text(), (tmp_path / "a").read_text()) == ("mine", "new")
