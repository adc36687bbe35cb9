"""A lab's move from ZooKeeper to KRaft: what offramp reported of it, each result by the name of its moment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from kit.cli.main import app
from kit.clients.cluster import Cluster, connect
from kit.errors import InputError, OfframpError
from kit.kraft.both_stores import MetadataDiff, kraft_diff
from kit.kraft.preflight import Preflight, kraft_preflight
from kit.kraft.settings_files import read_settings_folder
from kit.kraft.status import KraftStatus, kraft_status
from kit.lab import Lab
from kit.lab.servers.migrating import connected
from kit.profile import load_profile
from kit.tables.kraft import NodeFact
from tests.notebooks.node_files import collect_node_files
from tests.servers.awaiting import SECONDS, awaited

_KEYS = ("kraft_controller_id", "kraft_metadata_offset", "kraft_controller_epoch", "kraft_metadata_epoch")
NO_CHECKPOINT = {"version": 0, **dict.fromkeys(_KEYS, -1)}
LEFT_OVER = NO_CHECKPOINT | {"kraft_metadata_offset": 142, "kraft_metadata_epoch": 1}
WIDE = {"COLUMNS": "160"}
"""A narrow terminal leaves columns out."""
PROCESS_S = 240.0
SETTLE_S = 120.0
"""A diff ends as soon as nothing is in flight; a busy machine may need so long."""


@dataclass(frozen=True)
class Ended:
    """The end of a verb's process."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


@dataclass
class KraftWalk:
    """``refusals``: the messages of errors. ``noted``: what one test keeps beside the rest, by name."""

    lab: Lab
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    diffs: dict[str, MetadataDiff] = field(default_factory=dict)
    preflights: dict[str, Preflight] = field(default_factory=dict)
    printed: dict[str, Result | Ended] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    noted: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.file.write_text(self.lab.profile_toml(), encoding="utf-8")

    @property
    def file(self) -> Path:
        """The profile that names the lab."""
        return self.lab.folder / "offramp.toml"

    @property
    def runs(self) -> Path:
        return self.lab.folder / "runs"

    def profile(self, **keys: str) -> Path:
        """The profile, or a copy of it with other values of ``keys``."""
        text = self.file.read_text(encoding="utf-8")
        for key, value in keys.items():
            text = re.sub(f'^{key} = ".*"$', f'{key} = "{value}"', text, flags=re.MULTILINE)
        file = self.file.with_name(f"{len(list(self.lab.folder.glob('*.toml')))}.toml") if keys else self.file
        file.write_text(text, encoding="utf-8")
        return file

    @contextmanager
    def connected(self, **keys: str) -> Iterator[Cluster]:
        with connect(load_profile(file=self.profile(**keys))) as cluster:
            yield cluster

    def run(self, moment: str, *words: str, secrets: Mapping[str, str] | None = None, **keys: str) -> Result:
        """``offramp …`` in this process."""
        arguments = [*words, "--profile-file", str(self.profile(**keys))]
        environment = {**WIDE, **self.lab.secrets, **(secrets or {})}
        result = self.printed[moment] = CliRunner().invoke(app, arguments, env=environment)
        return result

    @contextmanager
    def meanwhile_printed(self, *moments: tuple[str, Sequence[str], Mapping[str, str]]) -> Iterator[None]:
        """``offramp …`` in processes beside the block: moment, words, and other values in the profile of each."""
        begun = {moment: self._begin(words, keys) for moment, words, keys in moments}
        try:
            yield
            for moment, process in begun.items():
                out, error = process.communicate(timeout=PROCESS_S)
                self.printed[moment] = Ended(process.returncode, out, error)
        finally:
            for process in begun.values():
                process.kill()

    def _begin(self, words: Sequence[str], keys: Mapping[str, str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kit", *words, "--profile-file", str(self.profile(**keys))]
        environment = {**os.environ, **WIDE, **self.lab.secrets}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def status(self, moment: str, **keys: str) -> KraftStatus:
        with self.connected(**keys) as cluster:
            self.statuses[moment] = kraft_status(cluster)
        return self.statuses[moment]

    def diff(self, moment: str, settle_s: float = SETTLE_S) -> MetadataDiff:
        with self.connected() as cluster:
            self.diffs[moment] = kraft_diff(cluster, settle_s)
        return self.diffs[moment]

    def refuse_diff(self, moment: str) -> None:
        with self.connected() as cluster:
            try:
                kraft_diff(cluster)
            except InputError as error:
                self.refusals[moment] = str(error)

    def preflight(self, moment: str, folder: Path | None = None, **keys: str) -> Preflight:
        """``folder`` holds the nodes' own files."""
        with self.connected(**keys) as cluster:
            self.preflights[moment] = kraft_preflight(cluster, read_settings_folder(folder) if folder else None)
        return self.preflights[moment]

    def await_status(
        self,
        moment: str,
        is_so: Callable[[KraftStatus], object],
        what: str,
        seconds: float = SECONDS,
        **keys: str,
    ) -> KraftStatus:
        """Return the first status for which ``is_so`` holds. A failure shows the statuses that were read."""
        self._await(lambda: summary(self.status(moment, **keys)), lambda: is_so(self.statuses[moment]), what, seconds)
        return self.statuses[moment]

    def await_diff(
        self, moment: str, is_so: Callable[[MetadataDiff], object], what: str, seconds: float = SECONDS
    ) -> MetadataDiff:
        """Return the first diff for which ``is_so`` holds. A failure shows what differed."""

        def differing() -> object:
            return self.diff(moment, settle_s=1).of("in_flight", "diverged", "unknown").rows()

        self._await(differing, lambda: is_so(self.diffs[moment]), what, seconds)
        return self.diffs[moment]

    def _await(self, read: Callable[[], object], is_so: Callable[[], object], what: str, seconds: float) -> None:
        """An error of a read counts as a value: nodes that start answer nothing."""

        def value() -> tuple[object, bool]:
            try:
                return read(), bool(is_so())
            except OfframpError as error:
                return str(error), False

        awaited(value, lambda found: found[1], what, seconds)

    def found(self, moment: str) -> set[tuple[str, str]]:
        """Id and severity of each finding of a status."""
        return {(each.check_id, each.severity) for each in self.statuses[moment].findings}

    def serious(self, moment: str) -> list[tuple[str, str]]:
        """Id and subject of each finding of a status that is an alarm or blocks."""
        findings = self.statuses[moment].findings
        return [(each.check_id, each.subject) for each in findings if each.severity in ("alarm", "block")]

    @property
    def phases(self) -> dict[str, str]:
        return {moment: status.state.phase for moment, status in self.statuses.items()}

    def collect(self, name: str) -> Path:
        """The nodes' own files, as an operator would collect them, in a folder of that name."""
        return collect_node_files(self.lab, self.lab.folder / "collected" / name)


def summary(status: KraftStatus) -> tuple[object, ...]:
    """Return the summary of a status, without the times at which it was read."""
    state, nodes = status.state, status.read.nodes
    counts = state.zk_state, state.n_zookeeper, state.n_migrating, state.n_kraft
    modes = [(each.role, each.address, each.mode or each.has_flag, each.is_leader, each.error) for each in nodes]
    return state.phase, counts, modes, [(each.check_id, each.subject) for each in status.findings]


def know_their_version(status: KraftStatus) -> bool:
    """Return whether every controller has read the log: one that was just started has not."""
    return all(each.metadata_version is not None for each in status.read.controllers)


def stands_still(status: KraftStatus) -> bool:
    """Return whether dual write is stalled, by an alarm."""
    return any((each.check_id, each.severity) == ("P02", "alarm") for each in status.findings)


def set_checkpoint(lab: Lab, held: bytes) -> None:
    """Write ``/migration``, deleted and made again: the controllers expect version 0 when they write it first."""
    with connected(lab.zookeeper_connect) as client:
        client.delete("/migration")
        client.create("/migration", held)


def await_a_leader_named_alone(walk: KraftWalk) -> NodeFact:
    """Return the controller that leads in a status of all controllers, and in one of this controller alone.

    An election between the two statuses makes another controller the leader.
    """

    def is_led_by_the_named(status: KraftStatus) -> bool:
        leader = status.read.leader
        if leader is None:
            return False
        return walk.status("one controller named", controllers=leader.address).read.leader is not None

    walk.await_status("controllers", is_led_by_the_named, "a leader that is named alone")
    leader = walk.statuses["one controller named"].read.leader
    assert leader is not None
    return leader
