"""Read what the gates of a move examine: the state of the cluster, and slow reads on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.kraft.move.cluster_state import READS, ClusterState, MoveReads, live_old_members, zookeeper_of
from kit.kraft.preflight import Preflight, kraft_preflight
from kit.kraft.settings_files import SettingsFolder, read_settings_folder
from kit.tables.conditions import Condition


@dataclass(frozen=True)
class GateInputs:
    """The input of gates; what takes long is read when a gate asks for it. ``runs``: of plans, runs and rehearsals.

    ``gone``: the broker whose registration a plan ends.
    """

    cluster: Cluster
    now: ClusterState
    runs: Path
    gone: int | None = None
    reads: MoveReads = READS
    clock: Clock = Clock()  # noqa: RUF009 - it holds functions, no state

    @cached_property
    def old_members(self) -> Mapping[str, Sequence[str]]:
        """Group → live members under ``/consumers``.

        Raises:
            ConnectError: the profile names no ZooKeeper, or it does not answer.
            ReadError: a znode can't be listed.
        """
        return live_old_members(zookeeper_of(self.cluster))

    @property
    def controllers(self) -> Mapping[int, str]:
        return self.cluster.profile.kraft.ids

    @cached_property
    def preflight(self) -> Preflight:
        """Return the preflight of this cluster, with the profile's folder of settings.

        Raises:
            InputError: the profile names no ZooKeeper; its folder holds no settings, or one can't be read.
            ConnectError: ZooKeeper stopped answering.
        """
        folder = self.cluster.profile.kraft.settings_dir
        return kraft_preflight(self.cluster, read_settings_folder(folder) if folder else SettingsFolder())

    def rows(self, *overridable: str) -> list[Condition]:
        """Return the rows of the preflight, without rules that are judged by themselves."""
        return [each for each in self.preflight.rows if each.check_id not in overridable]
