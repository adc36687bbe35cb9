"""A model of ZooKeeper: sessions that the server alone ends, ephemeral znodes, one-shot watches, transactions.

A path is ``(kind, name)``: ``("ids", consumer id)``, ``("owners", (topic, partition))``, ``("mode", None)`` …; a watch
on ``(kind, CHILDREN)`` is one on the children of a kind.

Events wait in their client until its callback thread takes them, in order. They may be taken later than answers that
came after them: kazoo hands answers to the thread that waits and events to another one, so ZooKeeper's own order
(an event before the answer to a later read) is not what a member sees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

from tests.simulation.steps import Steps

SESSION_SECONDS = 6.0
CHILDREN = "children"
GONE = "none"
"""The kind of event with which kazoo ends every watch when the connection is lost."""

Path: TypeAlias = tuple[str, Hashable]
Callback: TypeAlias = Callable[[str], None]
Result = TypeVar("Result")


class ConnectionLost(Exception):
    """The request was executed or not; nobody knows."""


class Refused(ConnectionLost):
    """The server said no: not in this session, or a znode is not what it was."""


@dataclass
class Znode:
    data: Any
    session: int
    made: int
    version: int = 0


@dataclass(frozen=True)
class Check:
    path: Path
    version: int


@dataclass(frozen=True)
class Create:
    path: Path
    data: Any
    is_ephemeral: bool = False


@dataclass(frozen=True)
class Set:
    path: Path
    data: Any
    version: int | None = None


@dataclass(frozen=True)
class Delete:
    path: Path
    version: int | None = None


Operation: TypeAlias = Check | Create | Set | Delete


class Observer(Protocol):
    """Told before a znode is deleted or written, and by which session; and when one goes, also with its session."""

    def goes(self, path: Path, znode: Znode) -> None: ...

    def deletes(self, session: int, path: Path, znode: Znode) -> None: ...

    def writes(self, session: int, path: Path, old: Any, new: Any) -> None: ...


class SimulatedZookeeper:
    """The servers, as one."""

    def __init__(self, clock: Callable[[], float], observer: Observer) -> None:
        self.clock = clock
        self.znodes: dict[Path, Znode] = {}
        self.heard: dict[int, float] = {}
        self._watches: dict[Path, list[tuple[ZookeeperClient, Callback]]] = {}
        self._observer = observer
        self._serial = 0

    def open(self) -> int:
        self._serial += 1
        self.heard[self._serial] = self.clock()
        return self._serial

    def close(self, session: int) -> None:
        """The session's end: its znodes vanish at once, all together."""
        if self.heard.pop(session, None) is None:
            return
        for path in [path for path, znode in self.znodes.items() if znode.session == session]:
            self._remove(path)

    def expired(self) -> list[int]:
        """Sessions whose time has ended."""
        return [session for session, heard in self.heard.items() if self.clock() - heard >= SESSION_SECONDS]

    def children(self, kind: str) -> list[Any]:
        return sorted(path[1] for path in self.znodes if path[0] == kind)

    def look(self, path: Path) -> Znode | None:
        znode = self.znodes.get(path)
        return replace(znode) if znode is not None else None

    def transact(self, session: int, operations: Sequence[Operation]) -> str | None:
        """All of them or none; None when done, else what is wrong with the first that can't be done."""
        for operation in operations:
            problem = self._problem(operation)
            if problem is not None:
                return problem
        for operation in operations:
            self._apply(session, operation)
        return None

    def watch(self, path: Path, client: ZookeeperClient, callback: Callback) -> None:
        if (client, callback) not in self._watches.setdefault(path, []):
            self._watches[path].append((client, callback))

    def unwatch(self, client: ZookeeperClient) -> list[Callback]:
        """Drop all watches of ``client``."""
        dropped = [callback for each in self._watches.values() for owner, callback in each if owner is client]
        self._watches = {
            path: [(owner, callback) for owner, callback in each if owner is not client]
            for path, each in self._watches.items()
        }
        return dropped

    def _problem(self, operation: Operation) -> str | None:
        znode = self.znodes.get(operation.path)
        if isinstance(operation, Create):
            return "exists" if znode is not None else None
        if znode is None:
            return "missing"
        return "version" if operation.version not in (None, znode.version) else None

    def _apply(self, session: int, operation: Operation) -> None:
        if isinstance(operation, Create):
            self._serial += 1
            self._observer.writes(session, operation.path, None, operation.data)
            self.znodes[operation.path] = Znode(operation.data, session * operation.is_ephemeral, self._serial)
            self._fire(operation.path, "created")
            self._fire((operation.path[0], CHILDREN), "children")
        elif isinstance(operation, Set):
            znode = self.znodes[operation.path]
            self._observer.writes(session, operation.path, znode.data, operation.data)
            znode.data, znode.version = operation.data, znode.version + 1
            self._fire(operation.path, "changed")
        elif isinstance(operation, Delete):
            self._observer.deletes(session, operation.path, self.znodes[operation.path])
            self._remove(operation.path)

    def _remove(self, path: Path) -> None:
        self._observer.goes(path, self.znodes.pop(path))
        self._fire(path, "deleted")
        self._fire((path[0], CHILDREN), "children")

    def _fire(self, path: Path, kind: str) -> None:
        for client, callback in self._watches.pop(path, ()):
            client.events.append((callback, kind))


class ConnectionListener(Protocol):
    """Reported turns of the connection, on its thread."""

    def session_lost(self) -> None: ...

    def connection_changed(self) -> None: ...


class ZookeeperClient:
    """One process's connection; it learns of its session's end only from the server, when it can reach it.

    ``is_cut``: nothing gets through. ``fails_next``: ``before`` or ``after`` the server has executed the next
    request, the connection breaks.
    """

    def __init__(self, server: SimulatedZookeeper, listener: ConnectionListener) -> None:
        self.server = server
        self.events: deque[tuple[Callback, str]] = deque()
        self.is_cut = False
        self.is_closed = False
        self.fails_next: str | None = None
        self.session = server.open()
        self._listener = listener
        self._is_connected = True
        self._is_lost = False

    @property
    def current(self) -> int | None:
        """The session as the client knows it; None while there is no connection."""
        return self.session if self._is_connected else None

    @property
    def is_alive(self) -> bool:
        """Return whether the session is alive, which only the server knows."""
        return self.session in self.server.heard

    def ping(self) -> None:
        if self._is_connected and not self.is_cut and self.is_alive:
            self.server.heard[self.session] = self.server.clock()

    def ask(self, request: Callable[[], Result]) -> Steps:
        """One request, executed in one step; the answer."""
        yield None
        return self.now(request)

    def now(self, request: Callable[[], Result]) -> Result:
        if not self._is_connected:
            raise ConnectionLost("not connected")
        failing, self.fails_next = self.fails_next, None
        if self.is_cut or not self.is_alive or failing == "before":
            self._suspend()
            raise ConnectionLost("the connection broke")
        self.ping()
        result = request()
        if failing == "after":
            self._suspend()
            raise ConnectionLost("the connection broke before the answer")
        return result

    def read(self, path: Path, watch: Callback | None = None) -> Steps:
        """→ Znode, or None when there is none; the watch is set either way."""

        def request() -> Znode | None:
            self.set_watch(path, watch)
            return self.server.look(path)

        return self.ask(request)

    def children(self, kind: str, watch: Callback | None = None) -> Steps:
        def request() -> list[Any]:
            self.set_watch((kind, CHILDREN), watch)
            return self.server.children(kind)

        return self.ask(request)

    def transact(self, *operations: Operation) -> Steps:
        """→ None, or the problem."""
        return self.ask(lambda: self.server.transact(self.session, operations))

    def set_watch(self, path: Path, watch: Callback | None) -> None:
        if watch is not None:
            self.server.watch(path, self, watch)

    def close(self) -> None:
        """Close like a process that closes its socket in order: the session ends if the server can be reached."""
        if self._is_connected and not self.is_cut:
            self.server.close(self.session)
        self.forget()

    def forget(self) -> None:
        """The process is gone; its session goes when its time has ended."""
        self.server.unwatch(self)
        self.events.clear()
        self._is_connected, self.is_closed = False, True

    # Threads of the client library

    def connection(self) -> Steps:
        """Notices what happened to the connection, and reconnects."""
        while True:
            yield self._has_news
            if self._is_connected:
                self._suspend()
            elif self.is_alive:
                self._connected()
            elif not self._is_lost:
                self._is_lost = True
                self._listener.session_lost()
            else:
                self.session, self._is_lost = self.server.open(), False
                self._connected()

    def callbacks(self) -> Steps:
        """Delivers events, one a step."""
        while True:
            yield lambda: bool(self.events)
            callback, kind = self.events.popleft()
            callback(kind)

    def _has_news(self) -> bool:
        if self.is_closed:
            return False
        return (self.is_cut or not self.is_alive) if self._is_connected else not self.is_cut

    def _suspend(self) -> None:
        self._is_connected = False
        self._listener.connection_changed()
        self.events.extend((callback, GONE) for callback in self.server.unwatch(self))

    def _connected(self) -> None:
        self._is_connected = True
        self.ping()
        self._listener.connection_changed()
