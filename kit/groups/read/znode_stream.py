"""Changes under some znodes in the server's order: events, answers, lost connections.

ZooKeeper ≥ 3.6 keeps a recursive watch (AddWatch, opcode 106) until the connection ends. kazoo 2.11 has no such
request, and passes on only events with a registered watcher. So this module takes the events where kazoo reads them,
and puts answers into the same queue. An answer includes the events before it in the queue, and none of those after it
(ZooKeeper's guarantee to each client). kazoo's threads only put items; they never wait here.
"""

from __future__ import annotations

import queue
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from kazoo.protocol.serialization import Watch
from kazoo.protocol.states import EVENT_TYPE_MAP, EventType, KazooState

from kit.clients.multiread import READ_TIMEOUT_S, STAT, portions
from kit.errors import ConnectError

_ADD_WATCH, _MULTI_READ, _GET_DATA, _ERROR = 106, 22, 4, -1
_RECURSIVE = 1
_HEADER = struct.Struct(">i?i")
_HEADER_AND_INT = struct.Struct(">i?ii")
_INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Event:
    """A znode was created, deleted, or its data changed; ``at_ms`` is when this client got the event (epoch)."""

    at_ms: int
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class ClusterState:
    """An existing znode: its data, its times (the server's clock), and the session that owns it."""

    data: bytes
    czxid: int
    mzxid: int
    created_ms: int
    modified_ms: int
    session_id: int


ZnodeState: TypeAlias = ClusterState | KazooException | None
"""None: there is no such znode. An exception: ZooKeeper refused the read."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The znode at each path when the server answered; ``tag`` is the one given with the request."""

    at_ms: int
    znodes: dict[str, ZnodeState]
    tag: Any


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection was made (again), or was lost together with its watches."""

    at_ms: int
    is_up: bool


Item: TypeAlias = Event | Answer | Connection


class ZnodeStream:
    """Events, answers and connections of one client. It needs a client for itself: it reads its connection."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._read_watch_event = client._connection._read_watch_event

    def open(self) -> None:
        """Start to listen. The first item is the client's present connection."""
        self._client._connection._read_watch_event = self._overhear
        self._client.add_listener(self._on_state)
        self._items.put(Connection(now_ms(), bool(self._client.connected)))

    def close(self) -> None:
        self._client.remove_listener(self._on_state)
        self._client._connection._read_watch_event = self._read_watch_event

    def next(self, timeout_s: float) -> Item | None:
        """The next item; None: none came in that time."""
        try:
            return self._items.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def add_watch(self, path: str) -> None:
        """Watch a znode, which need not exist yet, and everything below it until the connection ends.

        Raises:
            ConnectError: the connection was lost, or the server did not answer in time.
        """
        result = self._client.handler.async_result()
        self._client._call(_AddWatch(self._client.chroot + path), result)
        try:
            result.get(timeout=READ_TIMEOUT_S)
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise ConnectError(f"ZooKeeper could not watch {path}: {error!r}") from error

    def look(self, paths: Sequence[str], tag: Any = None) -> None:
        """Request the znodes at these paths; the answers become items, the last one with ``tag``. Returns at once."""
        *some, last = portions(paths) if paths else [paths]
        for request in (*(_Look(self, each, None) for each in some), _Look(self, last, tag)):
            self._client._call(request, self._client.handler.async_result())

    def rooted(self, path: str) -> str:
        """A path as the server knows it: below the client's chroot."""
        return str(self._client.chroot + path)

    def put(self, item: Item) -> None:
        self._items.put(item)

    def _overhear(self, buffer: bytes, offset: int) -> None:
        watch, _ = Watch.deserialize(buffer, offset)
        type_ = EVENT_TYPE_MAP.get(watch.type)
        if type_ in (EventType.CREATED, EventType.DELETED, EventType.CHANGED):
            self.put(Event(now_ms(), str(type_), str(self._client.unchroot(watch.path))))
        self._read_watch_event(buffer, offset)

    def _on_state(self, state: str) -> None:
        self.put(Connection(now_ms(), state == KazooState.CONNECTED))


class _AddWatch:
    type = _ADD_WATCH

    def __init__(self, path: str) -> None:
        self._path = path.encode()

    def serialize(self) -> bytes:
        return _INT.pack(len(self._path)) + self._path + _INT.pack(_RECURSIVE)

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> None:
        """The answer has only an error code, which kazoo has checked."""


class _Look:
    """A multiRead whose answer goes into the queue; kazoo calls ``deserialize`` on the thread that reads events."""

    type = _MULTI_READ

    def __init__(self, stream: ZnodeStream, paths: Sequence[str], tag: Any) -> None:
        self._stream = stream
        self._paths = paths
        self._tag = tag

    def serialize(self) -> bytes:
        parts = []
        for path in self._paths:
            encoded = self._stream.rooted(path).encode()
            parts += [_HEADER.pack(_GET_DATA, False, -1), _INT.pack(len(encoded)), encoded, b"\0"]
        return b"".join([*parts, _HEADER.pack(-1, True, -1)])

    def deserialize(self, buffer: bytes, offset: int) -> None:
        self._stream.put(Answer(now_ms(), dict(zip(self._paths, _parse(buffer, offset))), self._tag))


def _parse(buffer: bytes, at: int) -> Iterator[ZnodeState]:
    while at < len(buffer) - _HEADER.size:
        kind, _, _, number = _HEADER_AND_INT.unpack_from(buffer, at)
        at += _HEADER_AND_INT.size
        if kind == _ERROR:
            error: KazooException = EXCEPTIONS[number]()
            yield None if isinstance(error, NoNodeError) else error
            continue
        end = at + max(number, 0)
        czxid, mzxid, created_ms, modified_ms, _, _, _, ephemeral_owner, *_ = STAT.unpack_from(buffer, end)
        yield ClusterState(bytes(buffer[at:end]), czxid, mzxid, created_ms, modified_ms, ephemeral_owner)
        at = end + STAT.size


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
