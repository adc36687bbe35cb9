"""Two connections to one cluster, one for the work and one for the watch, so that neither waits for the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from kit.clients.cluster import Cluster, connect
from kit.engine.model.event import Event
from kit.engine.runs_folder import runs_beside
from kit.errors import WrongCluster
from kit.groups import views
from kit.groups.snapshot import Snapshot, observe
from kit.moves.group.group_state import GroupState, read_group_state
from kit.moves.offsets.current import Committed, fetch_committed
from kit.moves.offsets.selection import Selection
from kit.moves.protocol.state import ProtocolState, read_protocol_state
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile

if TYPE_CHECKING:
    from kit.kraft.status import KraftStatus


def fetch_groups(profile: Profile | str | None) -> pl.DataFrame:
    """Every group of a cluster by name, as rows of ``kit.views.summary``. Raises as ``kit.clients.cluster.connect``."""
    with connect(profile if isinstance(profile, Profile) else load_profile(profile or None)) as cluster:
        return views.summary(observe(cluster)).sort("group_id")


class Connection:
    """``runs`` is the folder of plans and evidence: by default ``runs`` beside the profile's file.

    Raises:
        WrongCluster: the cluster that answers has another id than ``cluster_id`` (empty: the profile decides).
        ConnectError, ProfileError: as ``kit.clients.cluster.connect``.
    """

    def __init__(self, profile: Profile | str | None, runs: Path | str = "", cluster_id: str = "") -> None:
        self.profile = profile if isinstance(profile, Profile) else load_profile(profile or None)
        self.runs = Path(runs) if runs else runs_beside(self.profile)
        self._works = connect(self.profile)
        try:
            _refuse_other(self._works, cluster_id)
            self._watches = connect(self.profile)
        except BaseException:
            self._works.close()
            raise
        self._one_look = threading.Lock()

    @property
    def cluster_id(self) -> str:
        return self._works.cluster_id

    def operations(self, say: Callable[[str], None], tell: Callable[[Event], None]) -> Operations:
        return Operations(self._works, self.runs, say, tell)

    def look(self, group_id: str) -> GroupState:
        """The group as it is now; raises as ``kit.moves.group.group_state.read_group_state``."""
        with self._one_look:
            return read_group_state(self._watches, group_id)

    def look_at_protocol(self, group_id: str) -> ProtocolState:
        """The group's members by protocol; raises as ``kit.moves.protocol.state.read_protocol_state``."""
        with self._one_look:
            return read_protocol_state(self._watches, group_id)

    def look_at_offsets(self, selection: Selection, to_groups: Mapping[str, str]) -> Committed:
        """The offsets as they are now; raises as ``kit.moves.offsets.current.fetch_committed``."""
        with self._one_look:
            return fetch_committed(self._watches, selection, to_groups)

    def scan(self) -> Snapshot[pl.DataFrame]:
        """A snapshot of all groups. Raises as ``kit.groups.snapshot.observe``."""
        with self._one_look:
            return observe(self._watches)

    def kraft_status(self) -> KraftStatus:
        """The cluster as it is now; raises as ``kit.kraft.status.kraft_status``."""
        from kit.kraft.status import kraft_status  # It loads pyarrow, which no other look needs.

        with self._one_look:
            return kraft_status(self._watches)

    def close(self) -> None:
        self._works.close()
        self._watches.close()


def _refuse_other(cluster: Cluster, cluster_id: str) -> None:
    if cluster_id and cluster.cluster_id != cluster_id:
        raise WrongCluster(
            f"cluster {cluster.name!r}: expected cluster id {cluster_id}, but {cluster.cluster_id} answers: choose the"
            " profile of the plan's cluster"
        )
