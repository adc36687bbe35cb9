"""A run of tests leaves no files and no processes, also when a test fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

FORGETFUL = """
import subprocess, sys, tempfile

def test_it():
    folder = tempfile.mkdtemp()
    left = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    print(f"\\nfolder={folder} process={left.pid} name=forgetful")
    assert {holds}
"""


@pytest.mark.parametrize("holds", [True, False])
def test_a_run_deletes_its_files_and_ends_its_processes(tmp_path: Path, holds: bool) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    module = tmp_path / "test_forgetful.py"
    module.write_text(FORGETFUL.replace("{holds}", str(holds)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.leftovers", "-p", "no:cacheprovider", "-s", str(module)]
    environment = {**os.environ, "TMPDIR": str(temporary), "OFFRAMP_LEFTOVERS_SECONDS": "0"}
    ended = subprocess.run([*command, f"--rootdir={tmp_path}"], env=environment, capture_output=True, text=True)
    printed = ended.stdout
    process = printed.split("process=")[1].split()[0]
    assert ended.returncode == 1, printed
    assert ("1 passed" in printed) is holds, printed
    assert f"A test left this process behind: {process} " in printed, printed
    assert not psutil.pid_exists(int(process))
    assert str(temporary) in printed
    assert list(temporary.iterdir()) == []
