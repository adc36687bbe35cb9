"""The access list of a new znode: a copy of the nearest existing znode's above it.

The creator of a group's znodes decided who may write them. Kafka's old consumers, when they log in, let the creator
write and the world read; when they don't log in, everyone may write. A znode without a list is open to everyone,
whatever its parent has. A znode that only its creator may write locks out members with another login. So a new znode
gets exactly its parent's list. Kafka leaves ``/consumers`` itself open on purpose (``ZkUtils``: "different consumers
will write under this node"; its security migrator skips the tree), so znodes right below it are open too: members of
0.8 can't log in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.security import ACL, OPEN_ACL_UNSAFE

from kit.errors import AuthenticationFailed, ConnectError

HIDDEN = ":x"
"""ZooKeeper ≥ 3.5 shows this instead of a digest to clients that may not change the list (CVE-2019-0201)."""
AS_IT_IS: tuple[str, ...] = ("world", "ip", "sasl", "x509", "digest", "super")


def lacking(right: str, path: str) -> str:
    """The sentence about a refused operation. ``right`` is one of ZooKeeper's: READ, WRITE, CREATE, DELETE, ADMIN.

    >>> lacking("CREATE", "/offramp/locks")
    'the login needs the right CREATE on /offramp/locks: ZooKeeper answered NoAuthError'
    """
    return f"the login needs the right {right} on {path}: ZooKeeper answered NoAuthError"


def inherited(client: KazooClient, path: str, answer_s: float) -> list[ACL]:
    """The access list of the nearest existing znode above ``path``. With ``makepath`` each new level gets it.

    Raises:
        AuthenticationFailed: that list can't be read in full, so it can't be copied.
        ConnectError: ZooKeeper did not answer.
    """
    for above in _above(path):
        try:
            entries: Any = client.get_acls_async(above).get(timeout=answer_s)[0]
        except NoNodeError:
            continue
        except NoAuthError:
            raise AuthenticationFailed(_refusal(path, above, "the login may not read its access list")) from None
        except (KazooException, client.handler.timeout_exception) as error:
            raise ConnectError(
                f"{path} is not created: ZooKeeper did not return the access list of {above}: {error!r}"
            ) from error
        return _copied(path, above, list(entries))
    return list(OPEN_ACL_UNSAFE)


def _above(path: str) -> Iterator[str]:
    """The znodes above: the nearest first, the root (of the chroot) last."""
    while path not in ("", "/"):
        path = path.rpartition("/")[0] or "/"
        yield path


def _copied(path: str, above: str, entries: list[ACL]) -> list[ACL]:
    """Say why an entry can't be copied: a hidden digest, or a scheme that would mean another identity."""
    for entry in entries:
        scheme, who = entry.id.scheme, entry.id.id
        if scheme == "digest" and who.endswith(HIDDEN):
            raise AuthenticationFailed(
                _refusal(path, above, f"ZooKeeper hides the digest of {who} in that list: these credentials lack ADMIN")
            )
        if scheme not in AS_IT_IS:
            raise AuthenticationFailed(_refusal(path, above, f"an entry of the scheme {scheme!r} can't be copied"))
    return entries


def _refusal(path: str, above: str, why: str) -> str:
    return (
        f"{path} is not created: it would get the access list of {above}, but {why}. Nothing was written: a znode "
        "open to everyone must not be below a closed parent, and its parent is closed. Use credentials with ADMIN there"
    )
