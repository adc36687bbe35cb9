"""Many znodes by few requests: ZooKeeper's multiRead (opcode 22, server ≥ 3.6) over one kazoo connection.

kazoo 2.11 has no such request. One multiRead mixes getData and getChildren, sets no watch and answers each item by
itself, so a vanished znode is an answer, not a failure. Layout: ``MultiHeader{int type, bool done, int err}`` before
every item, a last header with ``done``; jute primitives, big-endian (ZooKeeper's ``zookeeper.jute``).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, KazooException, NoAuthError, NoNodeError, UnimplementedError
from kazoo.protocol.states import ZnodeStat

from kit.errors import ConnectError

ITEMS_PER_REQUEST = 1_000
REQUESTS_IN_FLIGHT = 4
"""The server queues about 1,000 outstanding requests over all its clients; a reader takes four of them."""
READ_TIMEOUT_S = 30.0

_GET_DATA, _GET_CHILDREN, _MULTI_READ, _ERROR = 4, 8, 22, -1
_HEADER = struct.Struct(">i?i")
_INT = struct.Struct(">i")
_STAT = struct.Struct(">qqqqiiiqiiq")
_END = _HEADER.pack(-1, True, -1)


class Znode(NamedTuple):
    """What getData answered: the data and the stat a conditional write needs. Times are ms since the epoch."""

    data: bytes | None
    czxid: int
    mzxid: int
    created_ms: int
    modified_ms: int
    version: int
    ephemeral_owner: int


class Data(NamedTuple):
    """Ask for a znode's data and stat."""

    path: str


class Children(NamedTuple):
    """Ask for the names of a znode's children."""

    path: str


Answer: TypeAlias = Znode | list[str] | KazooException | None
"""None: there is no such znode. An exception: this item was refused (``NoAuthError``), the others were not."""


class _MultiRead:
    """One request; kazoo calls ``serialize`` and ``deserialize`` (on its connection thread, so that only cuts)."""

    type = _MULTI_READ

    def __init__(self, body: bytes) -> None:
        self._body = body

    def serialize(self) -> bytes:
        return self._body

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> bytes:
        return buffer[offset:]


def fetch(client: KazooClient, items: Iterable[Data | Children]) -> Iterator[Answer]:
    """Answers in the order of the items, at most ``REQUESTS_IN_FLIGHT`` requests under way.

    On a server older than 3.6 every item is a request of its own.

    Raises:
        ConnectError: the connection was lost, or the server did not answer within ``READ_TIMEOUT_S``.
    """
    try:
        yield from _fetch_batches(client, items) if supports_multiread(client) else _fetch_singles(client, items)
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"ZooKeeper {','.join(_addresses(client))} stopped answering: {error!r}") from error


def supports_multiread(client: KazooClient) -> bool:
    """Whether the server knows multiRead; asked once per client, by asking for ``/`` that way."""
    known: bool | None = getattr(client, "_offramp_multiread", None)
    if known is None:
        known = _ask_multiread(client)
        client._offramp_multiread = known
    return known


def _ask_multiread(client: KazooClient) -> bool:
    try:
        _send(client, [Children("/")]).get(timeout=READ_TIMEOUT_S)
    except UnimplementedError:
        # A server before 3.6 answers so and then closes the session: wait for the next one.
        client.retry(client.exists, "/")
        return False
    return True


def _fetch_batches(client: KazooClient, items: Iterable[Data | Children]) -> Iterator[Answer]:
    under_way: deque[Any] = deque()
    for batch in _batches(items):
        if len(under_way) == REQUESTS_IN_FLIGHT:
            yield from _parse(under_way.popleft().get(timeout=READ_TIMEOUT_S))
        under_way.append(_send(client, batch))
    while under_way:
        yield from _parse(under_way.popleft().get(timeout=READ_TIMEOUT_S))


def _fetch_singles(client: KazooClient, items: Iterable[Data | Children]) -> Iterator[Answer]:
    under_way: deque[Any] = deque()
    for item in items:
        if len(under_way) == 100 * REQUESTS_IN_FLIGHT:
            yield _single(under_way.popleft())
        under_way.append(
            client.get_async(item.path) if isinstance(item, Data) else client.get_children_async(item.path)
        )
    while under_way:
        yield _single(under_way.popleft())


def _single(result: Any) -> Answer:
    try:
        answer = result.get(timeout=READ_TIMEOUT_S)
    except NoNodeError:
        return None
    except KazooException as error:
        if isinstance(error, NoAuthError):
            return error
        raise
    return answer if isinstance(answer, list) else _znode(*answer)


def _znode(data: bytes | None, stat: ZnodeStat) -> Znode:
    return Znode(data, stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version, stat.ephemeralOwner)


def _batches(items: Iterable[Data | Children]) -> Iterator[list[Data | Children]]:
    batch: list[Data | Children] = []
    for item in items:
        batch.append(item)
        if len(batch) == ITEMS_PER_REQUEST:
            yield batch
            batch = []
    if batch:
        yield batch


def _send(client: KazooClient, batch: Sequence[Data | Children]) -> Any:
    headers = {Data: _HEADER.pack(_GET_DATA, False, -1), Children: _HEADER.pack(_GET_CHILDREN, False, -1)}
    body = bytearray()
    for item in batch:
        path = (client.chroot + item.path).rstrip("/").encode() or b"/"
        body += headers[type(item)] + _INT.pack(len(path)) + path + b"\0"
    result = client.handler.async_result()
    client._call(_MultiRead(bytes(body + _END)), result)
    return result


def _parse(body: bytes) -> list[Answer]:
    answers: list[Answer] = []
    read_header, read_int, read_stat = _HEADER.unpack_from, _INT.unpack_from, _STAT.unpack_from
    kind, done, _ = read_header(body, 0)
    at = _HEADER.size
    while not done:
        (length,) = read_int(body, at)
        at += 4
        if kind == _GET_DATA:
            data = None if length < 0 else body[at : at + length]
            at += max(length, 0)
            czxid, mzxid, created, modified, version, _, _, owner, _, _, _ = read_stat(body, at)
            at += _STAT.size
            answers.append(Znode(data, czxid, mzxid, created, modified, version, owner))
        elif kind == _GET_CHILDREN:
            names = []
            for _ in range(length):
                (size,) = read_int(body, at)
                names.append(body[at + 4 : at + 4 + size].decode())
                at += 4 + size
            answers.append(names)
        else:
            error = EXCEPTIONS[length]()
            answers.append(None if isinstance(error, NoNodeError) else error)
        kind, done, _ = read_header(body, at)
        at += _HEADER.size
    return answers


def _addresses(client: KazooClient) -> list[str]:
    return [f"{host}:{port}" for host, port in client.hosts]
