"""One run per group at a time: an ephemeral znode per group, gone with the session of who holds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from platform import node
from urllib.parse import quote

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.protocol.states import ZnodeStat

from kit.cluster import Cluster
from kit.errors import ConnectError, LockLost, TargetBusy

LOCKS = "/offramp/locks"
"""Outside ``/consumers``: no consumer lists or watches it."""
ANSWER_S = 10.0
"""kazoo itself would wait for a connection for ever."""


class ZookeeperLock:
    """Holds the groups of one run. Made for one cluster; a lost session is a lost lock, even if a new one began.

    Raises:
        ConnectError: the cluster has no ZooKeeper to lock in.
    """

    def __init__(self, cluster: Cluster) -> None:
        if cluster.zookeeper is None:
            raise ConnectError(f"cluster {cluster.name!r} has no zookeeper_connect: a run needs ZooKeeper for its lock")
        self._client: KazooClient = cluster.zookeeper
        self._silences = (KazooException, self._client.handler.timeout_exception)
        self._held: dict[str, int] = {}
        # As long as no lock of anybody came or went, ours are there: one request tells, of a thousand groups too.
        self._children: tuple[int, int] | None = None

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """All or none.

        Raises:
            TargetBusy: another run has one of them; which, on which host, since when.
            ConnectError: ZooKeeper does not answer.
        """
        holder = {"run_id": run_id, "host": node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        try:
            for target in sorted(targets):
                self._take(target, json.dumps(holder).encode())
        except TargetBusy:
            self.release()
            raise
        except self._silences as error:
            self.release()
            raise ConnectError(f"the lock can't be taken: ZooKeeper says {error!r}") from error

    def assert_held(self) -> None:
        """Raises:
        LockLost: the session that took the lock is over, or somebody deleted a lock.
        """
        try:
            parent = self._stat(LOCKS)
            children = (parent.cversion, parent.pzxid) if parent is not None else None
            if children is None or children != self._children:
                self._refuse_lost()
                self._children = children
        except self._silences as error:
            raise LockLost(f"nobody can tell whether the lock is still held: ZooKeeper says {error!r}") from error

    def _refuse_lost(self) -> None:
        for path, session in self._held.items():
            stat = self._stat(path)
            if stat is None or stat.ephemeralOwner != session:
                raise LockLost(f"the lock {path} is gone: the ZooKeeper session ended, or somebody deleted it")

    def release(self) -> None:
        """Each lock that is still this session's.

        While ZooKeeper doesn't answer, the wish to delete it is left with the client: it is sent if the session goes
        on, and the lock is gone if it doesn't.
        """
        for path, session in self._held.items():
            try:
                stat = self._stat(path)
                if stat is not None and stat.ephemeralOwner == session:
                    self._client.delete_async(path, version=stat.version).get(timeout=ANSWER_S)
            except self._silences:
                self._client.delete_async(path)
        self._held, self._children = {}, None

    def _take(self, target: str, holder: bytes) -> None:
        path = f"{LOCKS}/{quote(target, safe='')}"
        try:
            self._client.create_async(path, holder, ephemeral=True, makepath=True).get(timeout=ANSWER_S)
        except NodeExistsError:
            raise TargetBusy(f"group {target} is being worked on: {self._holder(path)}") from None
        self._held[path] = self._client.client_id[0]

    def _stat(self, path: str) -> ZnodeStat | None:
        return self._client.exists_async(path).get(timeout=ANSWER_S)

    def _holder(self, path: str) -> str:
        try:
            told = json.loads(self._client.get_async(path).get(timeout=ANSWER_S)[0])
            return f"run {told['run_id']} on {told['host']} since {told['since']}"
        except (NoNodeError, ValueError, KeyError):
            return f"{path} says no more"
