"""The settings files of a lab's brokers and controllers, copied as an operator copies them for a preflight."""

from __future__ import annotations

import shutil
from pathlib import Path

from kit.lab import Lab


def collect_node_files(lab: Lab, folder: Path) -> Path:
    """Copy each node's ``server.properties`` and ``meta.properties``, which a started node no longer writes."""
    for node in (*lab.migration.migrating, *lab.migration.controllers):
        (folder / node.name).mkdir(parents=True)
        for name in ("server.properties", "data/meta.properties"):
            shutil.copy(lab.folder / node.name / name, folder / node.name)
    return folder
