"""Identify the code that runs: its version in ``offramp --version``, evidence, snapshots and saved clusters."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

NAME = "offramp"
DIGITS = 9
"""The digits of a commit's id, as git and setuptools-scm shorten it."""


@cache
def version(root: Path = Path(__file__).parents[2]) -> str:
    """Return the version of the code below ``root``, by PEP 440.

    An installed wheel has the version that its build took from the git tags. A checkout may have moved since it was
    installed, so its local part is the present commit: ``1.0.1.dev3+g1a2b3c4d5``. Local changes are not seen.
    Without a readable commit it is the installed version. No process is started: each reading verb asks for this.
    """
    found = installed_version(NAME)
    try:
        commit = _commit(root / ".git")
    except (OSError, UnicodeDecodeError):
        return found
    return f"{found.partition('+')[0]}+g{commit[:DIGITS]}" if re.fullmatch("[0-9a-f]{40,64}", commit) else found


def _commit(folder: Path) -> str:
    """Return what HEAD names, by gitrepository-layout(5): a worktree has a file instead of the folder."""
    if folder.is_file():
        folder = folder.parent / folder.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    head = (folder / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return head
    ref, common = head.removeprefix("ref: "), folder / "commondir"
    shared = folder / common.read_text(encoding="utf-8").strip() if common.exists() else folder
    if (shared / ref).exists():
        return (shared / ref).read_text(encoding="utf-8").strip()
    packed = (shared / "packed-refs").read_text(encoding="utf-8")
    return next((line.partition(" ")[0] for line in packed.splitlines() if line.endswith(f" {ref}")), "")
