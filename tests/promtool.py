"""Prometheus's own promtool, where there is one: it judges our rules and our page (CONTRIBUTING.md)."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

_VARIABLE = "OFFRAMP_PROMTOOL"
PROGRAM = os.environ.get(_VARIABLE) or shutil.which("promtool")
needed = pytest.mark.skipif(PROGRAM is None, reason=f"promtool is neither on PATH nor named by ${_VARIABLE}")


def check(*words: str, given: bytes = b"") -> None:
    """promtool says no word against it: ``check metrics`` only warns of most of what it dislikes."""
    assert PROGRAM is not None
    done = subprocess.run([PROGRAM, *words], input=given, capture_output=True, timeout=60)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    assert words[:2] != ("check", "metrics") or not said.strip(), said
