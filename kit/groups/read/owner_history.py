"""The history of a group's znodes: owners, members and the toggle, as a watcher learned it from ZooKeeper.

A creation has the server's time and czxid, so a znode that is deleted and created again between two reads is two rows.
A deletion has the time of the watch event. That is an upper bound; it is lowered to the creation of the next znode at
the same path. Changes may be missed while the connection is lost: no ``watch`` row covers such a time.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import Names, Znode, fetch_children, fetch_data, supports_multiread
from kit.clients.paths import group_path
from kit.errors import AuthenticationFailed, ConnectError
from kit.groups.read.znode_lives import Lives, load_owner_history
from kit.groups.read.znode_stream import Answer, ClusterState, Connection, Event, ZnodeState, ZnodeStream, now_ms
from kit.tables.groups import ZnodeLife

HEARTBEAT_S = 1.0
"""Seconds between two proofs that no event was missed; at most this time is unproven when a connection breaks."""
LOOK_S = 0.2
"""Seconds between two reads if the server is older than 3.6 and has no recursive watch."""
WHOLE_LOOK_S = 30.0
PROOF_S = 5.0

__all__ = ["OwnerWatch", "load_owner_history"]

_BRANCHES = ("owners", "ids", "migration")
_WHOLE = "whole"


class OwnerWatch:
    """Watches one group from ``start`` to ``stop``; a context manager.

    Args:
        client: a started client for this watcher alone (it reads the client's connection); the caller closes it.
        file: JSON lines of ``ZnodeLife`` are appended to it, one at a znode's creation and one at its deletion.

    On a server older than 3.6 it reads every ``LOOK_S`` instead. It may miss a znode that lives shorter than that, so
    there is no ``watch`` row, and the analyses conclude nothing from a missing row.
    """

    def __init__(self, client: KazooClient, group_id: str, file: Path | None = None) -> None:
        self._client = client
        self._root = group_path(group_id)
        self._stream = ZnodeStream(client)
        self._lives = Lives(group_id, file)
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._problem: ConnectError | None = None
        self._listens = True
        self._asked: queue.SimpleQueue[_Proof] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"owner-watch-{group_id}", daemon=True)

    def start(self, timeout_s: float = WHOLE_LOOK_S) -> OwnerWatch:
        """Return when every existing znode is known.

        Raises:
            ConnectError: ZooKeeper did not answer in time.
            AuthenticationFailed: these credentials may not list the group.
        """
        self._thread.start()
        if not self._ready.wait(timeout_s) or self._problem:
            self.stop()
            raise self._problem or ConnectError(f"ZooKeeper did not answer within {timeout_s:g} s")
        return self

    def stop(self) -> None:
        """Stop watching. Rows of existing znodes stay open; the ``watch`` row ends now."""
        if self._ready.is_set() and self._problem is None:
            self._prove(PROOF_S)
        self._stopping.set()
        self._stream.put(Answer(now_ms(), {}, None))  # wakes it
        self._thread.join()
        self._lives.unwatch("stopped")

    def rows(self, timeout_s: float = PROOF_S) -> list[ZnodeLife]:
        """All rows so far. They include every change before this call if ZooKeeper answers within ``timeout_s``."""
        if self._thread.is_alive():
            self._prove(timeout_s)
        return self._lives.rows()

    def __enter__(self) -> OwnerWatch:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _prove(self, timeout_s: float) -> None:
        """Wait until every event before now has arrived."""
        proof = _Proof(now_ms())
        self._ask_for(proof)
        proof.heard.wait(timeout_s)

    def _ask_for(self, proof: _Proof) -> None:
        if not self._listens:
            self._asked.put(proof)
            return
        # A follower may lag behind its leader; a sync before the observation makes it catch up.
        self._client.sync_async("/")
        self._stream.look([], proof)

    def _run(self) -> None:
        try:
            self._listens = supports_multiread(self._client)
            (self._listen if self._listens else self._look_again_and_again)()
        except (ConnectError, KazooException) as error:
            self._problem = error if isinstance(error, ConnectError) else ConnectError(f"ZooKeeper: {error!r}")
            self._ready.set()

    def _listen(self) -> None:
        self._stream.open()
        try:
            while not self._stopping.is_set():
                item = self._stream.next(HEARTBEAT_S)
                if item is not None:
                    self._take(item)
                elif self._lives.is_watching:
                    self._ask_for(_Proof(now_ms()))
                elif self._client.connected:
                    self._connected()
        finally:
            self._stream.close()

    def _take(self, item: Event | Answer | Connection) -> None:
        if isinstance(item, Event):
            if self._lives.take_event(item):
                self._stream.look([item.path])
        elif isinstance(item, Connection):
            self._connected() if item.is_up else self._lives.unwatch("missed")
        else:
            self._lives.take_answer(item)
            if item.tag == _WHOLE:
                self._lives.watch(item.at_ms)
                self._ready.set()
            elif isinstance(item.tag, _Proof):
                self._lives.proven_ms = item.tag.asked_ms
                item.tag.heard.set()

    def _connected(self) -> None:
        """Watch again and read everything. After a failure the next heartbeat or connection tries again."""
        try:
            for branch in _BRANCHES:
                self._stream.add_watch(f"{self._root}/{branch}")
            self._stream.look(self._everything(), _WHOLE)
        except ConnectError:
            if not self._ready.is_set():
                raise
            self._lives.unwatch("missed")

    def _everything(self) -> list[str]:
        """The paths of all znodes that exist now, or existed at the last read."""
        root = self._root
        topics, ids, migration_ids = fetch_children(
            self._client, [f"{root}/owners", f"{root}/ids", f"{root}/migration/ids"]
        )
        topic_paths = [f"{root}/owners/{topic}" for topic in _names(topics)]
        partitions = fetch_children(self._client, topic_paths)
        paths = [f"{path}/{name}" for path, names in zip(topic_paths, partitions) for name in _names(names)]
        paths += [f"{root}/ids/{name}" for name in _names(ids)]
        paths += [f"{root}/migration/ids/{name}" for name in _names(migration_ids)]
        return sorted({*paths, f"{root}/migration/mode", *self._lives.standing_paths()})

    def _look_again_and_again(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except AuthenticationFailed:
                raise
            except ConnectError:
                pass  # No ``watch`` row covers this time; the next read comes soon.
            self._stopping.wait(LOOK_S)

    def _look(self) -> None:
        asked = [self._asked.get() for _ in range(self._asked.qsize())]
        paths = self._everything()
        znodes = fetch_data(self._client, paths)
        at_ms = now_ms()
        standing = {path: _as_standing(at_ms, znode) for path, znode in zip(paths, znodes)}
        self._lives.take_answer(Answer(at_ms, standing, None))
        for proof in asked:
            proof.heard.set()
        self._ready.set()


@dataclass(frozen=True, slots=True, eq=False)
class _Proof:
    asked_ms: int
    heard: threading.Event = field(default_factory=threading.Event)


def _names(answer: Names) -> list[str]:
    if isinstance(answer, KazooException):
        raise AuthenticationFailed(
            f"ZooKeeper does not let these credentials list the group ({type(answer).__name__}): give them READ"
        )
    return answer or []


def _as_standing(at_ms: int, znode: Znode | KazooException | None) -> ZnodeState:
    """A changed value counts from now on: a read does not return when it was changed."""
    if not isinstance(znode, Znode):
        return znode
    modified_ms = znode.created_ms if znode.mzxid == znode.czxid else at_ms
    return ClusterState(znode.data, znode.czxid, znode.mzxid, znode.created_ms, modified_ms, znode.ephemeral_owner)
