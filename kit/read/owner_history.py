"""The life of a group's znodes over time: owners, members, the toggle, as a watcher was told by ZooKeeper.

Creations carry the server's own time and czxid, so a znode deleted and made again between two looks is seen as two
lives. Ends carry the time at which the watcher was told, an upper bound, lowered to the creation of whatever stood
there next. While the connection was lost things may have come and gone: such times belong to no ``watch`` row.
"""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.errors import AuthenticationFailed, ConnectError, HistoryError
from kit.model import ZnodeLife
from kit.read.multiread import Names, Znode, fetch_children, fetch_data, supports_multiread
from kit.read.znode_stream import Answer, Connection, Event, Found, Standing, ZnodeStream, now_ms
from kit.read.zookeeper import CONSUMERS

HEARTBEAT_S = 1.0
"""How often it asks whether it still hears everything; so much at most is unproven when a connection breaks."""
LOOK_S = 0.2
"""How often it looks where the server is older than 3.6 and keeps no recursive watch."""
WHOLE_LOOK_S = 30.0
PROOF_S = 5.0

_BRANCHES = ("owners", "ids", "migration")
_WHOLE = "whole"
_Key: TypeAlias = tuple[str, str | None, int | None, str | None, int | None, int]


class OwnerWatch:
    """Watches one group from ``start`` to ``stop``; a context manager.

    Args:
        client: a started client of its own (the watcher looks into its connection); the caller closes it.
        file: JSON lines of ``ZnodeLife`` are appended to it, one when a life begins and one when it ends.

    On a server older than 3.6 it looks every ``LOOK_S`` instead: a life shorter than that may escape, so there is no
    ``watch`` row and the analyses draw no conclusion from what is not there.
    """

    def __init__(self, client: KazooClient, group_id: str, file: Path | None = None) -> None:
        self._client = client
        self._group_id = group_id
        self._stream = ZnodeStream(client)
        self._record = _Record(group_id, file)
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self._problem: ConnectError | None = None
        self._listens = True
        self._asked: queue.SimpleQueue[_Proof] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"owner-watch-{group_id}", daemon=True)

    def start(self, timeout_s: float = WHOLE_LOOK_S) -> OwnerWatch:
        """Return when everything that stands is known.

        Raises:
            ConnectError: ZooKeeper did not answer in time.
            AuthenticationFailed: it does not let this client's credentials list the group.
        """
        self._thread.start()
        if not self._ready.wait(timeout_s) or self._problem:
            self.stop()
            raise self._problem or ConnectError(f"ZooKeeper did not answer within {timeout_s:g} s")
        return self

    def stop(self) -> None:
        """Stop watching; lives that go on stay open, the time of watching ends here."""
        if self._ready.is_set():
            self._prove(PROOF_S)
        self._stopping.set()
        self._stream.put(Answer(now_ms(), {}, None))  # wakes it
        self._thread.join()
        self._record.unwatch("stopped")

    def rows(self, timeout_s: float = PROOF_S) -> list[ZnodeLife]:
        """All lives so far; what ZooKeeper did before this call is among them if it answers within ``timeout_s``."""
        if self._thread.is_alive():
            self._prove(timeout_s)
        return self._record.rows()

    def __enter__(self) -> OwnerWatch:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _prove(self, timeout_s: float) -> None:
        """Wait until everything that happened before now has been heard."""
        proof = _Proof(now_ms())
        self._ask_for(proof)
        proof.heard.wait(timeout_s)

    def _ask_for(self, proof: _Proof) -> None:
        if not self._listens:
            self._asked.put(proof)
            return
        # A follower may lag behind its leader; a sync before the look makes it catch up.
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
                elif self._record.is_watching:
                    self._ask_for(_Proof(now_ms()))
                elif self._client.connected:
                    self._connected()
        finally:
            self._stream.close()

    def _take(self, item: Event | Answer | Connection) -> None:
        if isinstance(item, Event):
            if self._record.take_event(item):
                self._stream.look([item.path])
        elif isinstance(item, Connection):
            self._connected() if item.is_up else self._record.unwatch("missed")
        else:
            self._record.take_answer(item)
            if item.tag == _WHOLE:
                self._record.watch(item.at_ms)
                self._ready.set()
            elif isinstance(item.tag, _Proof):
                self._record.proven_ms = item.tag.asked_ms
                item.tag.heard.set()

    def _connected(self) -> None:
        """Watch again and look at everything; after a failure the next heartbeat or connection tries again."""
        try:
            for branch in _BRANCHES:
                self._stream.add_watch(f"{CONSUMERS}/{self._group_id}/{branch}")
            self._stream.look(self._everything(), _WHOLE)
        except ConnectError:
            if not self._ready.is_set():
                raise
            self._record.unwatch("missed")

    def _everything(self) -> list[str]:
        """The paths of all znodes that stand, and of those that stood when last looked at."""
        root = f"{CONSUMERS}/{self._group_id}"
        topics, ids, migration_ids = fetch_children(
            self._client, [f"{root}/owners", f"{root}/ids", f"{root}/migration/ids"]
        )
        topic_paths = [f"{root}/owners/{topic}" for topic in _names(topics)]
        partitions = fetch_children(self._client, topic_paths)
        found = [f"{path}/{name}" for path, names in zip(topic_paths, partitions) for name in _names(names)]
        found += [f"{root}/ids/{name}" for name in _names(ids)]
        found += [f"{root}/migration/ids/{name}" for name in _names(migration_ids)]
        return sorted({*found, f"{root}/migration/mode", *self._record.standing_paths()})

    def _look_again_and_again(self) -> None:
        while not self._stopping.is_set():
            asked = [self._asked.get() for _ in range(self._asked.qsize())]
            paths = self._everything()
            znodes = fetch_data(self._client, paths)
            at_ms = now_ms()
            found = {path: _as_standing(at_ms, znode) for path, znode in zip(paths, znodes)}
            self._record.take_answer(Answer(at_ms, found, None))
            for proof in asked:
                proof.heard.set()
            self._ready.set()
            self._stopping.wait(LOOK_S)


@dataclass(frozen=True, slots=True, eq=False)
class _Proof:
    asked_ms: int
    heard: threading.Event = field(default_factory=threading.Event)


def _names(answer: Names) -> list[str]:
    if isinstance(answer, KazooException):
        raise AuthenticationFailed(f"ZooKeeper does not let these credentials list the group: {type(answer).__name__}")
    return answer or []


def _as_standing(at_ms: int, found: Znode | KazooException | None) -> Found:
    """A changed value is known to stand from now on; when it was changed is not read that way."""
    if not isinstance(found, Znode):
        return found
    modified_ms = found.created_ms if found.mzxid == found.czxid else at_ms
    return Standing(found.data, found.czxid, found.mzxid, found.created_ms, modified_ms, found.ephemeral_owner)


class _Record:
    """Lives by path, put together from events and answers in their order; one thread writes, any may read."""

    def __init__(self, group_id: str, file: Path | None) -> None:
        self.proven_ms = 0
        self._root = f"{CONSUMERS}/{group_id}/"
        self._group_id = group_id
        self._file = file
        self._lock = threading.Lock()
        self._lives: dict[_Key, ZnodeLife] = {}
        self._open: dict[str, ZnodeLife] = {}
        self._ended: dict[str, ZnodeLife] = {}
        self._watch: ZnodeLife | None = None

    def rows(self) -> list[ZnodeLife]:
        """All lives; the time of watching ends where the last proof was asked for."""
        with self._lock:
            watch = [replace(self._watch, until_ms=self.proven_ms)] if self._watch else []
            return [*self._lives.values(), *(life for life in self._open.values() if life.error), *watch]

    @property
    def is_watching(self) -> bool:
        return self._watch is not None

    def standing_paths(self) -> list[str]:
        return list(self._open)

    def watch(self, at_ms: int) -> None:
        """From now on nothing escapes."""
        with self._lock:
            self._watch = self._watch or ZnodeLife(
                self._group_id, "watch", None, None, None, None, at_ms, False, None, None, None, None
            )
            self.proven_ms = max(self.proven_ms, at_ms)
            self._write(self._watch)

    def unwatch(self, why: str) -> None:
        """Something may have escaped since the last proof."""
        with self._lock:
            if self._watch is not None:
                self._keep(replace(self._watch, until_ms=self.proven_ms, ended_by=why))
                self._watch = None

    def take_event(self, event: Event) -> bool:
        """Note a beginning or an end; True when the znode has to be looked at."""
        begin = self._begin(event.path, event.at_ms)
        if begin is None:
            return False
        with self._lock:
            if event.type == "DELETED":
                self._end(event.path, event.at_ms, "deleted")
            elif event.type == "CREATED":
                self._open[event.path] = begin
        return event.type == "CREATED" or (event.type == "CHANGED" and begin.kind in ("owner", "mode"))

    def take_answer(self, answer: Answer) -> None:
        with self._lock:
            for path, found in answer.found.items():
                self._settle(path, found, answer.at_ms)

    def _settle(self, path: str, found: Found, at_ms: int) -> None:
        known, begin = self._open.get(path), self._begin(path, at_ms)
        if begin is None:
            return
        if isinstance(found, KazooException):
            self._open[path] = known or replace(begin, error=f"ZooKeeper refused the read: {type(found).__name__}")
        elif found is None:
            self._end(path, at_ms, "missed")
        else:
            self._stands(path, known, _known(begin, found), found)

    def _stands(self, path: str, known: ZnodeLife | None, life: ZnodeLife, found: Standing) -> None:
        """The znode that stands is the one known, or that one with another value, or another one."""
        if known is not None and known.czxid == life.czxid and known.value == life.value:
            return
        if known is not None and known.czxid is not None:
            is_same = known.czxid == life.czxid
            life = replace(life, from_ms=found.modified_ms) if is_same else life
            self._end(path, life.from_ms, "changed" if is_same else "replaced")
        before = self._ended.pop(path, None)
        if before is not None and before.until_ms is not None and before.until_ms > life.from_ms:
            self._keep(replace(before, until_ms=max(life.from_ms, before.from_ms)))
        self._open[path] = life
        self._keep(life)

    def _end(self, path: str, at_ms: int, how: str) -> None:
        life = self._open.pop(path, None)
        if life is not None:
            ended = replace(life, until_ms=max(at_ms, life.from_ms), ended_by=how)
            self._ended[path] = ended
            self._keep(ended)

    def _begin(self, path: str, at_ms: int) -> ZnodeLife | None:
        """A life of which only the place and a bound of its beginning are known; None: a path of no interest."""
        kind, topic, partition, member_id = _place(path.removeprefix(self._root))
        if not kind:
            return None
        error = "gone before it could be read: its owner is not known" if kind == "owner" else None
        return ZnodeLife(
            self._group_id, kind, topic, partition, member_id, None, at_ms, True, None, None, None, None, error
        )

    def _keep(self, life: ZnodeLife) -> None:
        self._lives[_key(life)] = life
        self._write(life)

    def _write(self, life: ZnodeLife) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(life)) + "\n")


def _place(path: str) -> tuple[str, str | None, int | None, str | None]:
    """A path below the group → kind, topic, partition, member id; an empty kind for all others."""
    match path.split("/"):
        case ["owners", topic, partition] if partition.isdecimal():
            return "owner", topic, int(partition), None
        case ["ids", member_id]:
            return "member", None, None, member_id
        case ["migration", "ids", member_id]:
            return "migration_member", None, None, member_id
        case ["migration", "mode"]:
            return "mode", None, None, None
        case _:
            return "", None, None, None


def _known(begin: ZnodeLife, found: Standing) -> ZnodeLife:
    """A life filled with what stands; a value that was changed has a life from the change on."""
    value = found.data.decode(errors="replace") if begin.kind in ("owner", "mode") else None
    member_id = (value or "").rpartition("-")[0] or None if begin.kind == "owner" else begin.member_id
    is_changed = value is not None and found.mzxid != found.czxid
    return replace(
        begin,
        member_id=member_id,
        value=value,
        from_ms=found.modified_ms if is_changed else found.created_ms,
        is_seen_late=False,
        czxid=found.czxid,
        session_id=found.session_id,
        error=None if member_id or begin.kind == "mode" else f"the znode holds {value!r}, not <consumer id>-<thread>",
    )


def _key(life: ZnodeLife) -> _Key:
    named = life.member_id if life.kind in ("member", "migration_member") else None
    return life.kind, life.topic, life.partition, named, life.czxid, life.from_ms


def load_owner_history(file: Path) -> list[ZnodeLife]:
    """The lives in a watcher's file; a last line that is still being written is left out.

    A watcher that was killed has proven nothing after its last line: there its time of watching ends.

    Raises:
        HistoryError: a line is no ``ZnodeLife``, or the file can't be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
        lives = [ZnodeLife(**json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise HistoryError(f"{file} is not a history of owner znodes: {error}") from error
    merged = {_key(life): life for life in lives}
    last_ms = max((life.until_ms or life.from_ms for life in lives), default=0)
    return [_closed(life, last_ms) for life in merged.values()]


def _closed(life: ZnodeLife, last_ms: int) -> ZnodeLife:
    is_open = life.kind == "watch" and life.until_ms is None
    return replace(life, until_ms=last_ms, ended_by="missed") if is_open else life
