"""What is seen of a lab on its way from ZooKeeper to KRaft: looks of each kind, kept by the name of their moment."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from typer.testing import CliRunner, Result

from kit.cli.kraft import app
from kit.cluster import connect
from kit.errors import InputError
from kit.kraft import KraftStatus, MetadataDiff, kraft_diff, kraft_status
from kit.lab import Lab
from kit.preflight import Preflight, kraft_preflight, read_settings_folder
from kit.profile import load_profile


@dataclass
class Walk:
    """What was seen on the way. ``seconds``: how long each diff took."""

    lab: Lab
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    diffs: dict[str, MetadataDiff] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    preflights: dict[str, Preflight] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    printed: dict[str, Result] = field(default_factory=dict)

    def run(self, *arguments: str, called: str = "", **keys: str) -> None:
        """``offramp kraft …`` in this process; ``keys`` of the profile are others than the lab's."""
        file = self.profile(**keys)
        self.printed[called or arguments[0]] = CliRunner().invoke(app, [*arguments, "--profile-file", str(file)])

    def status(self, moment: str, **keys: str) -> KraftStatus:
        with connect(load_profile(file=self.profile(**keys))) as cluster:
            self.statuses[moment] = kraft_status(cluster)
        return self.statuses[moment]

    def diff(self, moment: str, settle_s: float = 30.0) -> None:
        with connect(load_profile(file=self.profile())) as cluster:
            began = time.monotonic()
            try:
                self.diffs[moment] = kraft_diff(cluster, settle_s)
            except InputError as error:
                self.refusals[moment] = str(error)
            self.seconds[moment] = time.monotonic() - began

    def preflight(self, moment: str, folder: Path | None = None, **keys: str) -> Preflight:
        """``folder``: of the nodes' own files."""
        with connect(load_profile(file=self.profile(**keys))) as cluster:
            found = kraft_preflight(cluster, read_settings_folder(folder) if folder else None)
        self.preflights[moment] = found
        return found

    def collect(self, name: str) -> Path:
        """The nodes' own files, as an operator would collect them, in a folder of that name."""
        folder = self.lab.folder / "collected" / name
        for node in (*self.lab.migration.migrating, *self.lab.migration.controllers):
            (folder / node.name).mkdir(parents=True)
            for file in ("server.properties", "data/meta.properties"):
                shutil.copy(self.lab.folder / node.name / file, folder / node.name)
        return folder

    def profile(self, **keys: str) -> Path:
        """The lab's, but for these keys."""
        text = self.lab.profile_toml()
        for key, value in keys.items():
            text = re.sub(f'^{key} = ".*"$', f'{key} = "{value}"', text, flags=re.MULTILINE)
        file = self.lab.folder / ("asked.toml" if keys else "offramp.toml")
        file.write_text(text)
        return file
