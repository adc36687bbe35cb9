"""One run per group at a time: an ephemeral znode per group, gone with the session of who holds it.

A run that moves the whole cluster has a lock of its own kind. It is two-sided: no group is worked on while it is held,
and it is not taken while any group is worked on. Each side makes its own znode first and searches for the other's
then, so of two that begin at once at least one sees the other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from platform import node
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL

from kit.clients.access import inherited, lacking
from kit.clients.cluster import Cluster
from kit.clients.paths import CONSUMERS
from kit.errors import AuthenticationFailed, ConnectError, LockLost, OfframpError, PlanError, TargetBusy

OFFRAMP = "/offramp"
"""Outside ``/consumers``: no consumer lists or watches it."""
LOCKS = f"{OFFRAMP}/locks"
RUNS = f"{OFFRAMP}/runs"
"""The last run that changed a group: an older run sees here that it can't be undone any more."""
CLUSTER_LOCKS, CLUSTER_RUNS = f"{OFFRAMP}/cluster_locks", f"{OFFRAMP}/cluster_runs"
"""The same of runs that move a whole cluster: a group may have any name, so theirs are elsewhere."""
_AT_REST = "at_rest"
"""In a mark: nothing that its run ordered is to come any more."""
ANSWER_S = 10.0
"""kazoo itself would wait for a connection for ever."""
_CLAIMED: WeakKeyDictionary[KazooClient, set[str]] = WeakKeyDictionary()
"""By client, that is by session: the locks that some run of this process has or is taking. A lock of this session that
no run has is the rest of a creation whose answer was lost."""
_CLAIMING = threading.Lock()


def escaped(target: str) -> str:
    """A group's name as a znode's: one of each, whatever Kafka took for a name."""
    name = quote(target, safe="")
    return {"": "%", ".": "%2E", "..": "%2E%2E"}.get(name, name)


class ZookeeperLock:
    """Holds the groups of one run. Made for one cluster; a lost session is a lost lock, even if a new one began.

    Raises:
        ConnectError: the cluster has no ZooKeeper to lock in.
    """

    _locks, _runs = LOCKS, RUNS
    _excluded = CLUSTER_LOCKS
    """Locks that no other run may hold meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        if cluster.zookeeper is None:
            raise ConnectError(
                f"cluster {cluster.name!r} has no zookeeper_connect in offramp.toml, which a run needs for its lock"
            )
        self._client: KazooClient = cluster.zookeeper
        self._silences = (KazooException, self._client.handler.timeout_exception)
        self._held: dict[str, int | None] = {}
        # While no lock of any client came or went, ours are there: one request shows, of a thousand groups too.
        self._children: tuple[int, int] | None = None

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """All or none.

        Raises:
            TargetBusy: another run has one of them; which, on which host, since when.
            ConnectError: ZooKeeper does not answer.
            AuthenticationFailed: the login lacks a right, or it is not known which other clients may delete such a
                lock.
        """
        holder, doing = json.dumps(_holder_of(run_id)).encode(), "the lock can't be taken"
        try:
            with self._answered(doing, "CREATE", f"{self._locks}, or on the znode above it if it does not exist"):
                acl = self._access_list()
                for target in sorted(set(targets)):
                    self._take(target, holder, acl)
            with self._answered(doing, "READ", self._excluded):
                self._refuse_excluded()
        except OfframpError:
            self.release()
            raise

    def assert_held(self) -> None:
        """Ask the leader whether each lock is still this session's.

        Raises:
            LockLost: the session that took the lock has ended, or another client deleted a lock.
        """
        try:
            self._client.sync_async(self._locks)  # The next reads are then as the leader has it.
            parent = self._stat(self._locks)
            children = (parent.cversion, parent.pzxid) if parent is not None else None
            if children is None or children != self._children:
                self._refuse_lost()
                self._children = children
        except NoAuthError as error:
            raise LockLost(f"can't confirm that the lock is still held: {lacking('READ', self._locks)}") from error
        except self._silences as error:
            raise LockLost(f"can't confirm that the lock is still held: ZooKeeper answered {error!r}") from error

    def _refuse_lost(self) -> None:
        for path, session in self._held.items():
            stat = self._stat(path)
            if stat is None or stat.ephemeralOwner != session:
                raise LockLost(
                    f"the lock {path} no longer exists: the ZooKeeper session ended, or another client deleted the lock"
                )

    def mark(self, targets: Sequence[str], run_id: str) -> None:
        """Leave the run's id under ``/offramp/runs``, for whoever comes after the lock is gone.

        Raises:
            ConnectError: ZooKeeper does not answer.
            AuthenticationFailed: the login lacks a right, or it is not known which other clients may delete such a
                mark.
        """
        word, paths = json.dumps(_holder_of(run_id)).encode(), [self._mark_of(target) for target in targets]
        doing = f"the run's id can't be written under {self._runs}"
        missing = self._absent(doing, {path: self._client.set_async(path, word) for path in paths})
        if missing:
            with self._answered(doing, "CREATE", f"{self._runs}, or on the znode above it if it does not exist"):
                acl = self._access_list()
                self._client.ensure_path_async(self._runs, acl=acl).get(timeout=ANSWER_S)
                for made in [self._client.create_async(path, word, acl=acl) for path in missing]:
                    made.get(timeout=ANSWER_S)

    def followed_by(self, targets: Sequence[str], run_id: str) -> Mapping[str, str]:
        """Return the targets that a later run changed, each with that run.

        Raises:
            ConnectError: ZooKeeper does not answer.
        """
        self._client.sync_async(self._runs)
        asked = {target: self._client.get_async(self._mark_of(target)) for target in targets}
        last_runs: dict[str, str] = {}
        for target, answer in asked.items():
            with self._answered(f"{self._runs} can't be read", "READ", self._mark_of(target)), suppress(NoNodeError):
                last_runs[target] = _run_of(answer.get(timeout=ANSWER_S)[0])
        return {target: other for target, other in last_runs.items() if other != run_id}

    def mark_settled(self, targets: Sequence[str], run_id: str) -> None:
        """Nothing: a plan for a group waits by itself until the group is stable."""

    def unsettled(self, targets: Sequence[str], run_id: str) -> str | None:
        return None

    def release(self) -> None:
        """Delete each lock that is still this session's.

        Where ZooKeeper does not answer, this client deletes the lock as soon as it does: a session that lives on keeps
        nothing that no run needs. Until then no other run of this session gets the lock.
        """
        left, self._held, self._children = self._held, {}, None
        try:
            for path, session in list(left.items()):
                with suppress(*self._silences):
                    stat = self._stat(path)
                    if stat is not None and stat.ephemeralOwner == session:
                        self._client.delete_async(path, version=stat.version).get(timeout=ANSWER_S)
                    del left[path]
                    self._unclaim(path)
        finally:
            for path, session in left.items():
                self._delete_later(path, session)

    def _delete_later(self, path: str, session: int | None) -> None:
        """Ask again after each answer that was lost, for as long as the session lives. Another's lock stays."""

        def looked(answer: IAsyncResult) -> None:
            if answer.exception is None and answer.value is not None and answer.value.ephemeralOwner == session:
                self._client.delete_async(path, version=answer.value.version).rawlink(deleted)
            else:
                deleted(answer)

        def deleted(answer: IAsyncResult) -> None:
            if isinstance(answer.exception, ConnectionLoss | BadVersionError):
                self._client.exists_async(path).rawlink(looked)
            else:
                self._unclaim(path)

        self._client.exists_async(path).rawlink(looked)

    @contextmanager
    def _answered(self, doing: str, right: str, path: str) -> Iterator[None]:
        """Raise errors of the project for ZooKeeper's; ``right`` on ``path`` is what the requests need."""
        try:
            yield
        except NoAuthError as error:
            raise AuthenticationFailed(f"{doing}: {lacking(right, path)}") from error
        except self._silences as error:
            raise ConnectError(f"{doing}: ZooKeeper answered {error!r}") from error

    def _absent(self, doing: str, asked: Mapping[str, IAsyncResult]) -> list[str]:
        """Return the paths that do not exist."""
        absent = []
        for path, answer in asked.items():
            with self._answered(doing, "WRITE", path):
                try:
                    answer.get(timeout=ANSWER_S)
                except NoNodeError:
                    absent.append(path)
        return absent

    def _take(self, target: str, holder: bytes, acl: list[ACL]) -> None:
        path = f"{self._locks}/{escaped(target)}"
        if not self._claim(path):
            raise TargetBusy(
                f"{self._named(target)} is locked by a run of this process: {self._holder(path)}. Wait until that "
                "run has ended"
            )
        try:
            self._create(path, holder, acl)
            self._held[path] = self._session
        except NodeExistsError:
            raise TargetBusy(
                f"{self._named(target)} is locked by a run: {self._holder(path)}. Wait for that run, or stop it:"
                " offramp stop RUN. If its process has died, the lock ends by itself some seconds later"
            ) from None
        finally:
            if path not in self._held:
                self._unclaim(path)

    def _create(self, path: str, holder: bytes, acl: list[ACL]) -> None:
        """Make the znode; one of this session that no run has claimed is there by a creation whose answer was lost."""
        try:
            self._client.create_async(path, holder, acl=acl, ephemeral=True, makepath=True).get(timeout=ANSWER_S)
        except self._silences:
            stat = self._stat(path)
            if stat is None or stat.ephemeralOwner != self._session:
                raise
            self._client.set_async(path, holder).get(timeout=ANSWER_S)

    def _access_list(self) -> list[ACL]:
        """Return the access list of ``/consumers`` for the first lock of a cluster: a login that may write groups may
        lock them.
        """
        above = self._locks if self._stat(OFFRAMP) is not None else CONSUMERS
        return inherited(self._client, f"{above}/any", ANSWER_S)

    def _refuse_excluded(self) -> None:
        """Search for locks of the other kind.

        Raises:
            TargetBusy: another run holds one; with ours made first, of two at least one sees the other.
        """
        self._client.sync_async(self._excluded)
        with suppress(NoNodeError):
            others = sorted(self._client.get_children_async(self._excluded).get(timeout=ANSWER_S))
            if others:
                raise TargetBusy(self._describe_excluded(others))

    def _describe_excluded(self, others: Sequence[str]) -> str:
        holder = self._holder(f"{self._excluded}/{others[0]}")
        return f"a run moves the whole cluster ({holder}). Wait until that run has ended"

    def _named(self, target: str) -> str:
        return f"group {target}"

    def _mark_of(self, target: str) -> str:
        return f"{self._runs}/{escaped(target)}"

    def _claim(self, path: str) -> bool:
        with _CLAIMING:
            claimed = _CLAIMED.setdefault(self._client, set())
            is_free = path not in claimed
            claimed.add(path)
        return is_free

    def _unclaim(self, path: str) -> None:
        with _CLAIMING:
            _CLAIMED.setdefault(self._client, set()).discard(path)

    @property
    def _session(self) -> int | None:
        """None: there is none now, so no znode is of it."""
        return self._client.client_id[0] if self._client.client_id else None

    def _stat(self, path: str) -> ZnodeStat | None:
        return self._client.exists_async(path).get(timeout=ANSWER_S)

    def _holder(self, path: str) -> str:
        """Return who has it, as far as the znode reports it: any client may have written there."""
        try:
            data = self._client.get_async(path).get(timeout=ANSWER_S)[0] or b""
        except self._silences as error:
            return f"{path} can't be read: {error!r}"
        try:
            holder = json.loads(data)
            return f"run {holder['run_id']} on {holder['host']} since {holder['since']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return f"{path} holds {data[:80]!r}, which offramp did not write"


class ClusterLock(ZookeeperLock):
    """Holds a whole cluster for one run. Its target is ``cluster <cluster id>``, never a profile's name.

    Its znodes are ZooKeeper's for as long as a move to KRaft can write; they touch no fence of Kafka's.
    """

    _locks, _runs, _excluded = CLUSTER_LOCKS, CLUSTER_RUNS, LOCKS

    def mark_settled(self, targets: Sequence[str], run_id: str) -> None:
        """On this run's own marks alone.

        Raises:
            ConnectError: ZooKeeper does not answer; whoever comes next then waits for once.
        """
        word = json.dumps({**_holder_of(run_id), _AT_REST: True}).encode()
        for target in targets:
            path = self._mark_of(target)
            with self._answered(f"the run's mark under {self._runs} can't be set", "READ and WRITE", path):
                data, stat = self._client.get_async(path).get(timeout=ANSWER_S)
                if _run_of(data) == run_id:
                    self._client.set_async(path, word, stat.version).get(timeout=ANSWER_S)

    def unsettled(self, targets: Sequence[str], run_id: str) -> str | None:
        """Raises ConnectError: ZooKeeper does not answer."""
        self._client.sync_async(self._runs)
        for target in targets:
            path = self._mark_of(target)
            with self._answered(f"{self._runs} can't be read", "READ", path), suppress(NoNodeError):
                data, _ = self._client.get_async(path).get(timeout=ANSWER_S)
                if _run_of(data) != run_id and not _is_at_rest(data):
                    return _run_of(data)
        return None

    def _describe_excluded(self, others: Sequence[str]) -> str:
        more = f", and {len(others) - 1} more groups are" if len(others) > 1 else ""
        return (
            f"group {unquote(others[0])} is locked by a run ({self._holder(f'{LOCKS}/{others[0]}')}){more}. Wait "
            "until these runs have ended"
        )

    def _named(self, target: str) -> str:
        return target


def _holder_of(run_id: str) -> dict[str, str]:
    return {"run_id": run_id, "host": node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}


def _is_at_rest(data: bytes | None) -> bool:
    """A mark that reports nothing of it, as of an older version or of another operator or tool, reports no."""
    try:
        return json.loads(data or b"")[_AT_REST] is True
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _run_of(data: bytes | None) -> str:
    """The run that a mark names; a mark of another form is not offramp's."""
    try:
        return str(json.loads(data or b"")["run_id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"(unreadable: {(data or b'')[:80]!r})"


def refuse_without_zookeeper(cluster: Cluster) -> None:
    """Raises:
    PlanError: the profile names no ZooKeeper, where :class:`ClusterLock` is.
    """
    if cluster.zookeeper is None:
        raise PlanError(
            f"cluster {cluster.name!r} has no zookeeper_connect: a run of this plan needs ZooKeeper for its lock. Set"
            " zookeeper_connect in offramp.toml"
        )
