"""Many znodes with few requests: ZooKeeper's multiRead (opcode 22, server ≥ 3.6) over one kazoo connection.

kazoo 2.11 has no such request. A multiRead sets no watch. It answers each item by itself, so a deleted znode is an
answer, not a failure. Layout: ``MultiHeader{int type, bool done, int err}`` before every item, a last header with
``done``; jute primitives, big-endian (ZooKeeper's ``zookeeper.jute``).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import EXCEPTIONS, AuthFailedError, KazooException, NoAuthError, NoNodeError, UnimplementedError

from kit.errors import AuthenticationFailed, ConnectError

ITEMS_PER_REQUEST = 1_000
REQUESTS_IN_FLIGHT = 4
"""The server queues about 1,000 outstanding requests of all its clients; one reader uses four of them."""
OCTETS_PER_REQUEST = 500_000
"""Bytes of paths in one request: a server closes the connection after more than 1 MB (``jute.maxbuffer``)."""
READ_TIMEOUT_S = 30.0

_STAT_TYPES = "qqqqiiiqiiq"
STAT = struct.Struct(f">{_STAT_TYPES}")
STAT_FIELDS = (
    "czxid", "mzxid", "created_ms", "modified_ms", "version", "cversion", "aversion", "ephemeral_owner", "data_length",
    "n_children", "pzxid",
)  # fmt: skip
"""ZooKeeper's Stat, field by field; times are milliseconds since the epoch."""
_NO_STAT = bytes(STAT.size)


def _alone(at: int) -> struct.Struct:
    """One field of a stat; the remaining fields are skipped."""
    before, after = (struct.calcsize(f">{types}") for types in (_STAT_TYPES[:at], _STAT_TYPES[at + 1 :]))
    return struct.Struct(f">{before}x{_STAT_TYPES[at]}{after}x")


_STAT_FIELD = {name: _alone(at) for at, name in enumerate(STAT_FIELDS)}

_GET_DATA, _GET_CHILDREN, _MULTI_READ, _ERROR = 4, 8, 22, -1
_HEADER = struct.Struct(">i?i")
_TYPE_AND_INT = struct.Struct(">i5xi")
"""A header's type, and the number behind it: a length, a count, or an error's code."""
_INT = struct.Struct(">i")
_END = _HEADER.pack(-1, True, -1)

Names: TypeAlias = list[str] | KazooException | None
"""The children's names. None: there is no such znode. An exception: ZooKeeper refused this item alone."""


class Znode(NamedTuple):
    """One znode: its data, and the fields of its stat that a conditional write needs."""

    data: bytes
    czxid: int
    mzxid: int
    created_ms: int
    version: int
    ephemeral_owner: int


@dataclass(frozen=True, slots=True)
class Znodes:
    """Answers of getData as columns, in the order of the paths.

    ``data[i]`` and ``stats[i]``, as it came, are None if there is no znode or ZooKeeper refused it (``refusals[i]``).
    """

    data: list[bytes | None]
    stats: list[bytes | None]
    refusals: dict[int, KazooException]

    def __getitem__(self, index: int) -> Znode | KazooException | None:
        data, stat = self.data[index], self.stats[index]
        if data is None or stat is None:
            return self.refusals.get(index)
        czxid, mzxid, created_ms, _, version, _, _, ephemeral_owner, *_ = STAT.unpack(stat)
        return Znode(data, czxid, mzxid, created_ms, version, ephemeral_owner)

    def __iter__(self) -> Iterator[Znode | KazooException | None]:
        return (self[index] for index in range(len(self.data)))

    def stat(self, name: str) -> list[int | None]:
        """One field of every stat."""
        octets = b"".join([stat or _NO_STAT for stat in self.stats])
        values: list[int | None] = [value for (value,) in _STAT_FIELD[name].iter_unpack(octets)]
        if None in self.stats:
            return [None if stat is None else value for stat, value in zip(self.stats, values)]
        return values


def refusal(error: KazooException, action: str = "read") -> str:
    """The end of a sentence: why a znode's data (``action``: read) or children (listed) did not come.

    ZooKeeper asks one right for both, which is named.

    >>> refusal(NoAuthError(), "listed")
    "can't be listed: NoAuthError (the login needs the right READ there)"
    """
    right = " (the login needs the right READ there)" if isinstance(error, NoAuthError) else ""
    return f"can't be {action}: {type(error).__name__}{right}"


def fetch_data(client: KazooClient, paths: Sequence[str]) -> Znodes:
    """Data and stat of each path, at most ``REQUESTS_IN_FLIGHT`` requests under way.

    On a server older than 3.6 every path is a request of its own.

    Raises:
        ConnectError: the connection was lost, or the server did not answer within ``READ_TIMEOUT_S``.
        AuthenticationFailed: the server refused the login of a new connection.
    """
    znodes = Znodes([], [], {})
    for batch in fetch_batches(client, paths):
        znodes.refusals.update({len(znodes.data) + index: error for index, error in batch.refusals.items()})
        znodes.data.extend(batch.data)
        znodes.stats.extend(batch.stats)
    return znodes


def fetch_batches(client: KazooClient, paths: Sequence[str]) -> Iterator[Znodes]:
    """Fetch like :func:`fetch_data`, request by request: for a caller that keeps little of very many znodes."""
    return _batches(client, _GET_DATA, paths)


def fetch_children(client: KazooClient, paths: Sequence[str]) -> list[Names]:
    """Children's names of each path; see :func:`fetch_data`."""
    return [names for batch in _batches(client, _GET_CHILDREN, paths) for names in batch]


def catch_up(client: KazooClient) -> None:
    """Make later reads at least as new as the leader is now: a follower may lag behind.

    Raises:
        ConnectError: as :func:`fetch_data`.
    """
    try:
        client.sync_async("/").get(timeout=READ_TIMEOUT_S)
    except (KazooException, client.handler.timeout_exception) as error:
        raise _silent(client, error) from error


def _silent(client: KazooClient, error: Exception) -> ConnectError:
    hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
    if isinstance(error, AuthFailedError):
        return AuthenticationFailed(
            f"ZooKeeper {hosts} accepted no new login. Check that the user or the principal is still valid, and that "
            "the KDC answers: offramp connect"
        )
    return ConnectError(f"ZooKeeper {hosts} stopped answering: {error!r}")


def _batches(client: KazooClient, kind: int, paths: Sequence[str]) -> Iterator[Any]:
    try:
        if supports_multiread(client):
            parse: Callable[[Any], Any] = _parse_data if kind == _GET_DATA else _parse_children
            yield from _pipelined(partial(_send, client, kind), parse, paths, ITEMS_PER_REQUEST, REQUESTS_IN_FLIGHT)
        else:
            ask, wrap = (
                (client.get_async, _wrap_data) if kind == _GET_DATA else (client.get_children_async, _wrap_names)
            )
            yield from _pipelined(lambda batch: ask(batch[0]), wrap, paths, 1, 100 * REQUESTS_IN_FLIGHT)
    except (KazooException, client.handler.timeout_exception) as error:
        raise _silent(client, error) from error


Answer = TypeVar("Answer")


def _pipelined(
    send: Callable[[Sequence[str]], Any],
    receive: Callable[[Any], Answer],
    paths: Sequence[str],
    per_request: int,
    in_flight: int,
) -> Iterator[Answer]:
    under_way: deque[Any] = deque()
    for some in portions(paths, per_request):
        if len(under_way) == in_flight:
            yield receive(under_way.popleft())
        under_way.append(send(some))
    while under_way:
        yield receive(under_way.popleft())


def portions(paths: Sequence[str], per_request: int = ITEMS_PER_REQUEST) -> Iterator[Sequence[str]]:
    """Paths for one request each, neither too many nor too long."""
    start = 0
    while start < len(paths):
        some = paths[start : start + per_request]
        if len("".join(some).encode(errors="replace")) > OCTETS_PER_REQUEST:
            some = some[: _n_short_enough(some)]
        yield some
        start += len(some)


def _n_short_enough(paths: Sequence[str]) -> int:
    """Return how many of them fit one request; the first does, whatever its length."""
    ends = accumulate(len(path.encode(errors="replace")) for path in paths)
    return max(1, sum(end <= OCTETS_PER_REQUEST for end in ends))


def supports_multiread(client: KazooClient) -> bool:
    """Return whether the server knows multiRead; asked once per client, by asking for ``/`` that way."""
    known: bool | None = getattr(client, "_offramp_multiread", None)
    if known is None:
        known = _ask_multiread(client)
        client._offramp_multiread = known
    return known


def _ask_multiread(client: KazooClient) -> bool:
    dropped = client.handler.event_object()

    def note(state: str) -> None:
        if state != KazooState.CONNECTED:
            dropped.set()

    client.add_listener(note)
    try:
        _send(client, _GET_CHILDREN, ["/"]).get(timeout=READ_TIMEOUT_S)
    except UnimplementedError:
        # A server before 3.6 answers so and closes the connection, sometimes after further answers.
        dropped.wait(READ_TIMEOUT_S)
        client.retry(client.exists, "/")
        return False
    finally:
        client.remove_listener(note)
    return True


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


def _send(client: KazooClient, kind: int, paths: Sequence[str]) -> Any:
    root, header, pack = client.chroot, _HEADER.pack(kind, False, -1), _INT.pack
    rooted = [root + path if path != "/" else root for path in paths] if root else paths
    encoded = [path.encode() for path in rooted]
    between = b"\0" + header  # No watch; then the next one.
    body = header + between.join([pack(len(each)) + each for each in encoded]) + b"\0" + _END
    result = client.handler.async_result()
    client._call(_MultiRead(body), result)
    return result


def _parse_data(result: Any) -> Znodes:
    body = result.get(timeout=READ_TIMEOUT_S)
    data: list[bytes | None] = []
    stats: list[bytes | None] = []
    refusals: dict[int, KazooException] = {}
    at, end, read, step, stat_size = (
        0,
        len(body) - _HEADER.size,
        _TYPE_AND_INT.unpack_from,
        _TYPE_AND_INT.size,
        STAT.size,
    )
    while at < end:
        kind, length = read(body, at)
        at += step
        if kind == _GET_DATA:
            stop = at + length if length > 0 else at
            data.append(body[at:stop])
            at = stop + stat_size
            stats.append(body[stop:at])
        else:
            if (refusal := _refusal(length)) is not None:
                refusals[len(data)] = refusal
            data.append(None)
            stats.append(None)
    return Znodes(data, stats, refusals)


def _parse_children(result: Any) -> list[Names]:
    """A list that comes like the one before, as those of topics with as many partitions, is that one again."""
    body = result.get(timeout=READ_TIMEOUT_S)
    answers: list[Names] = []
    names: list[str] = []
    at, end, header = 0, len(body) - _HEADER.size, _INT.pack(0)
    while at < end:
        kind, count = _TYPE_AND_INT.unpack_from(body, at)
        at += _TYPE_AND_INT.size
        if kind == _ERROR:
            answers.append(_refusal(count))
            continue
        start = at - _INT.size
        if not body.startswith(header, start):
            names, at = _names(body, at, count)
            header = body[start:at]
        at = start + len(header)
        answers.append(names)
    return answers


def _names(body: bytes, at: int, count: int) -> tuple[list[str], int]:
    """Return so many names from there on, and where they end."""
    names, read_int = [], _INT.unpack_from
    for _ in range(count):
        (size,) = read_int(body, at)
        names.append(body[at + 4 : at + 4 + size].decode(errors="replace"))
        at += 4 + size
    return names, at


def _refusal(code: int) -> KazooException | None:
    error: KazooException = EXCEPTIONS[code]()
    return None if isinstance(error, NoNodeError) else error


def _wrap_data(result: Any) -> Znodes:
    """One getData's answer as a batch of one."""
    try:
        data, stat = result.get(timeout=READ_TIMEOUT_S)
    except NoNodeError:
        return Znodes([None], [None], {})
    except NoAuthError as error:
        return Znodes([None], [None], {0: error})
    return Znodes([data or b""], [STAT.pack(*stat)], {})


def _wrap_names(result: Any) -> list[Names]:
    try:
        return [result.get(timeout=READ_TIMEOUT_S)]
    except NoNodeError:
        return [None]
    except NoAuthError as error:
        return [error]
