"""Find the rights of a session of ZooKeeper from access lists and from the identity that the server takes it for.
Writes nothing.

ZooKeeper asks a znode's own list for reading (1) and writing (2), and its parent's for creating (4) and deleting (8);
``super`` may do all. The identity of the session is in ``whoAmI`` (opcode 107, server ≥ 3.7), but for a digest's hash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError, UnimplementedError
from kazoo.security import ACL, make_digest_acl_credential

from kit.clients.multiread import READ_TIMEOUT_S
from kit.errors import ConnectError

READ, WRITE, CREATE, DELETE = 1, 2, 4, 8
Identity = tuple[str, str]
"""Scheme and id, as an access list names them."""
Acls: TypeAlias = Mapping[str, Sequence[ACL] | str]
"""Access lists by path; a text gives the reason a list can't be read."""
_WHO_AM_I = 107
_IN_FLIGHT = 200
_INT = struct.Struct(">i")


class _WhoAmI:
    """Kazoo has no such request."""

    type = _WHO_AM_I

    def serialize(self) -> bytes:
        return b""

    @staticmethod
    def deserialize(buffer: bytes, offset: int) -> list[Identity]:
        (count,) = _INT.unpack_from(buffer, offset)
        texts, at = list[str](), offset + _INT.size
        for _ in range(2 * count):
            (length,) = _INT.unpack_from(buffer, at)
            at += _INT.size
            texts.append(bytes(buffer[at : at + max(length, 0)]).decode())
            at += max(length, 0)
        return list(zip(texts[::2], texts[1::2]))


def fetch_identities(client: KazooClient, sasl_username: str | None = None) -> set[Identity]:
    """Return whom the server takes this session for; ``sasl_username`` counts where a server is too old to report.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    digests = [str(each).partition(":") for scheme, each in client.auth_data if scheme == "digest"]
    own = {("digest", make_digest_acl_credential(user, password)) for user, _, password in digests}
    answer = client.handler.async_result()
    try:
        client._call(_WhoAmI(), answer)
        return own | {each for each in answer.get(timeout=READ_TIMEOUT_S) if each[0] != "digest"}
    except UnimplementedError:
        client.retry(client.exists, "/")  # Such a server closes the connection.
        return own | ({("sasl", sasl_username)} if sasl_username else set())
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"ZooKeeper did not report the identity of this session: {error!r}") from error


def fetch_acl(client: KazooClient, path: str) -> list[ACL] | None:
    """A znode's access list; None: there is no such znode.

    Raises:
        ConnectError: ZooKeeper stopped answering, or refused.
    """
    try:
        return list(client.get_acls_async(path).get(timeout=READ_TIMEOUT_S)[0])
    except NoNodeError:
        return None
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"the access list of {path} can't be read: {error!r}") from error


def fetch_acls(client: KazooClient, paths: Iterable[str]) -> Acls:
    """The access list of each znode. If there is no such znode, it is that of the nearest existing znode above.

    Raises:
        ConnectError: ZooKeeper stopped answering, or refused.
    """
    found: dict[str, Sequence[ACL] | str | None] = {}
    nearest = {path: path for path in paths}
    while todo := sorted({above for above in nearest.values() if above not in found}):
        for start in range(0, len(todo), _IN_FLIGHT):
            found |= _fetch_some(client, todo[start : start + _IN_FLIGHT])
        nearest = {path: _nearest(above, found) for path, above in nearest.items()}
    return {path: found[above] or () for path, above in nearest.items()}


def _fetch_some(client: KazooClient, paths: Sequence[str]) -> dict[str, Sequence[ACL] | str | None]:
    return dict(_answered(client, [(path, client.get_acls_async(path)) for path in paths]))


def _answered(
    client: KazooClient, asked: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, Sequence[ACL] | str | None]]:
    for path, answer in asked:
        try:
            yield path, tuple(answer.get(timeout=READ_TIMEOUT_S)[0])
        except NoNodeError:
            yield path, None
        except NoAuthError:
            yield path, "the login may not read the access list"
        except (KazooException, client.handler.timeout_exception) as error:
            raise ConnectError(f"the access list of {path} can't be read: {error!r}") from error


def _nearest(path: str, found: Mapping[str, object]) -> str:
    """The first znode, from ``path`` up, that is not known to be missing."""
    while path != "/" and path in found and found[path] is None:
        path = path.rpartition("/")[0] or "/"
    return path


def missing(acl: Iterable[ACL], who: Iterable[Identity], wanted: int) -> int:
    """Return the ``wanted`` rights that no identity of ``who`` has by this list.

    >>> from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE, make_acl
    >>> missing([make_acl("sasl", "kafka", all=True), *READ_ACL_UNSAFE], [("sasl", "ann")], READ | WRITE)
    2
    >>> missing([make_acl("ip", "10.0.0.0/8", all=True)], [("ip", "10.1.2.3")], WRITE)
    0
    """
    mine = set(who)
    if any(scheme == "super" for scheme, _ in mine):
        return 0
    granted = 0
    for each in acl:
        if any(_is_of(each.id, identity) for identity in [("world", "anyone"), *mine]):
            granted |= each.perms
    return wanted & ~granted


def hides_own_digest(acl: Iterable[ACL], who: Iterable[Identity]) -> bool:
    """Return whether this list names a user of ``who`` by a digest that ZooKeeper masked, as for a session without
    ADMIN (ZOOKEEPER-1392).
    """
    masked = {f"{name.partition(':')[0]}:x" for scheme, name in who if scheme == "digest"}
    return any(each.id.scheme == "digest" and each.id.id in masked for each in acl)


def _is_of(named: Any, identity: Identity) -> bool:
    if named.scheme == identity[0] == "ip":
        try:
            return ip_address(identity[1]) in ip_network(named.id, strict=False)
        except ValueError:
            return False
    return (named.scheme, named.id) == identity
