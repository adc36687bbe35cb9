"""Locks in Kafka over the model: the real :class:`KafkaLock` over leases whose holder and mark lie in the model's tree.

A lease's holder is an ephemeral node at the place of ZooKeeper's lock, so the judge asks one question of both locks. A
confirmation is one request that the coordinator takes or refuses as a whole: it is refused where the session has ended.
A lease has a connection of its own, and closing it ends the heartbeats: a holder whose leave was lost goes in the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from kit.engine.lock import LOCKS, RUNS, escaped
from kit.errors import ConnectError, LockLost, TargetBusy
from kit.moves.locks.kafka_lock import KafkaLock, LockState, target_of
from kit.moves.locks.lease import Member
from kit.moves.locks.mark import Mark, parse_mark
from tests.adversary.znodes import Client

SILENT = (KazooException, KazooTimeoutError)
TRIES = 3
"""A confirmation whose answer is lost is asked again, for as long as the session may last."""


class ModelLease:
    """Behind the names of ``kit.moves.locks.lease.Lease``."""

    def __init__(self, client: Client, name: str, mark: Mark) -> None:
        self.group_id, self._client, self._mark = name, client, mark
        target = escaped(target_of(name))
        self._place, self._marked = f"{LOCKS}/{target}", f"{RUNS}/{target}"
        self._session = client.client_id[0]

    def take(self) -> None:
        try:
            if self._client.exists_async(self._place).get() is not None:
                raise TargetBusy(f"{self.group_id} is locked by a run")
            self._client.create_async(self._place, b"lease", ephemeral=True, makepath=True).get()
            self._session = self._client.client_id[0]
            before = parse_mark(read_text(self._client, self._marked))
        except SILENT as error:
            raise ConnectError(f"the coordinator of {self.group_id} does not answer: {error!r}") from error
        self._mark = replace(self._mark, changed_by=before.changed_by if before is not None else None)
        try:
            self.confirm()
        except LockLost as error:
            raise ConnectError(f"the lock can't be taken: {error}") from error

    def confirm(self, changed_by: str | None = None) -> None:
        if changed_by is not None:
            self._mark = replace(self._mark, changed_by=changed_by)
        for _ in range(TRIES):
            try:
                self._client.change("commit", self._marked, self._mark.to_text(), self._commit).get()
                return
            except NoNodeError:
                raise LockLost(f"the lock {self.group_id} is lost: the coordinator refused the commit") from None
            except SILENT:
                continue
        raise LockLost(f"the lock {self.group_id} can't be confirmed")

    def close(self) -> None:
        try:
            self._client.change("leave", self._place, None, self._leave).get()
        except NoNodeError:
            pass  # It was not this session's any more.
        except SILENT:
            self._client.abandon()

    def _commit(self, tree: Any) -> None:
        self._refuse_unless_held(tree)
        text = self._mark.to_text().encode()
        tree.set(self._marked, text) if self._marked in tree.nodes else tree.create(self._marked, text, makepath=True)

    def _leave(self, tree: Any) -> None:
        self._refuse_unless_held(tree)
        tree.delete(self._place)

    def _refuse_unless_held(self, tree: Any) -> None:
        if self._place not in tree.nodes or tree.nodes[self._place].owner != self._session:
            raise NoNodeError


class ModelLockGroups:
    """The names of ``kit.moves.locks.kafka_lock.LockGroups``; no run of the model has more groups than leases."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def prepare(self) -> None:
        pass

    def lease(self, name: str, target: str, mark: Mark) -> ModelLease:
        return ModelLease(self._client, name, mark)

    def members(self, name: str) -> list[Member]:
        return []

    def locks(self) -> list[LockState]:
        return []

    def read_marks(self, names: Iterable[str]) -> dict[str, str | None]:
        try:
            return {name: read_text(self._client, f"{RUNS}/{escaped(target_of(name))}") for name in names}
        except SILENT as error:
            raise ConnectError(f"the marks can't be read: {error!r}") from error

    def write_marks(self, names: Iterable[str], mark: Mark) -> None:
        assert not list(names)


def read_text(client: Client, path: str) -> str | None:
    try:
        return client.get_async(path).get()[0].decode()
    except NoNodeError:
        return None


def kafka_lock(client: Client) -> KafkaLock:
    groups: Any = ModelLockGroups(client)
    return KafkaLock(groups)
