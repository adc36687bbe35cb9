"""Requests about the znodes of one group, as one member makes them. Each write is conditional on the session.

Such a write carries a check of this member's registration. When the session expires, ZooKeeper deletes the
registration, and the write fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.states import KazooState, WatchedEvent
from kazoo.security import ACL

from kit.clients.access import inherited, lacking
from kit.clients.paths import group_path
from kit.errors import AuthenticationFailed, ConnectError

Changed = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Note:
    """A watch; equal ones on one path are one."""

    changed: Changed
    word: str

    def __call__(self, event: WatchedEvent) -> None:
        self.changed(self.word)


class ZnodeRequests:
    """``changed`` is called with a word for what changed, on kazoo's callback thread, and must not block."""

    def __init__(
        self, client: KazooClient, group_id: str, consumer_id: str, changed: Changed, timeout_seconds: float
    ) -> None:
        self._client = client
        self._base = group_path(group_id)
        self._consumer_id = consumer_id
        self._changed = changed
        self._timeout = timeout_seconds
        self._access: dict[str, list[ACL]] = {}

    def own_path(self) -> str:
        return f"{self._base}/ids/{self._consumer_id}"

    @property
    def session(self) -> int:
        """The current session's id. Raises ConnectError while there is no connection: what is held is unknown then."""
        client_id = self._client.client_id
        if not client_id or self._client.state != KazooState.CONNECTED:
            raise ConnectError(f"ZooKeeper {self._hosts}: no connection")
        return int(client_id[0])

    @property
    def _hosts(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self._client.hosts)

    def _ask(self, result: Any) -> Any:
        try:
            return result.get(timeout=self._timeout)
        except self._client.handler.timeout_exception:
            raise ConnectError(f"ZooKeeper {self._hosts} did not answer within {self._timeout:g} s") from None

    def _read(self, path: str, result: Any) -> Any:
        """The answer about this znode. Raises AuthenticationFailed if the login may not read it."""
        try:
            return self._ask(result)
        except NoAuthError:
            raise AuthenticationFailed(lacking("READ", path)) from None

    def _commit(self, transaction: Any) -> list[Any]:
        results: list[Any] = self._ask(transaction.commit_async())
        return results

    def _transaction(self) -> Any:
        """A transaction that fails in any other session."""
        transaction = self._client.transaction()
        transaction.check(self.own_path(), 0)
        return transaction

    def _expect(self, transaction: Any) -> None:
        for result in self._commit(transaction):
            if isinstance(result, Exception):
                raise result

    def _note(self, word: str) -> _Note:
        return _Note(self._changed, word)

    def _children(self, path: str, word: str) -> list[str]:
        try:
            names: list[str] = self._read(path, self._client.get_children_async(path, watch=self._note(word)))
        except NoNodeError:
            self._ask(self._client.exists_async(path, watch=self._note(word)))
            return []
        return names

    def _data(self, path: str, word: str) -> str | None:
        try:
            data, _ = self._read(path, self._client.get_async(path, watch=self._note(word)))
        except NoNodeError:
            self._ask(self._client.exists_async(path, watch=self._note(word)))
            return None
        return (data or b"").decode("utf-8", "replace")

    def _make_path(self, path: str) -> None:
        """Create each missing level, with the access list of the nearest znode above it."""
        try:
            self._client.ensure_path(path, acl=inherited(self._client, f"{path}/any", self._timeout))
        except NoAuthError:
            raise AuthenticationFailed(lacking("CREATE", f"the znodes above {path}")) from None

    def _access_of(self, path: str) -> list[ACL]:
        """The access list of the znode above, read once: a claim of many partitions needs one answer, not many."""
        above = path.rpartition("/")[0]
        if above not in self._access:
            self._access[above] = inherited(self._client, path, self._timeout)
        return self._access[above]
