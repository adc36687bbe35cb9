"""Two connections to one cluster, one for the work and one for the watch, so that neither waits for the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import polars as pl

from kit.clients.cluster import Cluster, connect
from kit.engine.model.event import Event
from kit.engine.runs_folder import runs_beside
from kit.errors import WrongCluster
from kit.groups import views
from kit.groups.snapshot import observe
from kit.operations.operations import Operations
from kit.profile import Profile, load_profile

Given = ParamSpec("Given")
Seen = TypeVar("Seen")


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

    def watching(self, read: Callable[Concatenate[Cluster, Given], Seen]) -> Callable[Given, Seen]:
        """Return ``read`` on the connection of the watch, one read at a time. It raises as ``read``."""

        def reading(*given: Given.args, **named: Given.kwargs) -> Seen:
            with self._one_look:
                return read(self._watches, *given, **named)

        return reading

    def close(self) -> None:
        self._works.close()
        self._watches.close()


def _refuse_other(cluster: Cluster, cluster_id: str) -> None:
    if cluster_id and cluster.cluster_id != cluster_id:
        raise WrongCluster(
            f"cluster {cluster.name!r}: expected cluster id {cluster_id}, but {cluster.cluster_id} answers: choose the"
            " profile of the plan's cluster"
        )
