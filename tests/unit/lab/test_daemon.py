"""A lab in the background is held for a time."""

from __future__ import annotations

import shutil
import threading

from kit.lab.daemon import wait_while_there_are_files


def test_a_lab_ends_when_its_folder_was_deleted(tmp_path):
    folder = tmp_path / "lab"
    folder.mkdir()
    waiting = threading.Thread(target=wait_while_there_are_files, args=(folder, 3600.0, 0.01), daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    shutil.rmtree(folder)
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_lab_ends_after_its_lifetime(tmp_path):
    wait_while_there_are_files(tmp_path, 0.0, 3600.0)
