"""Offset znodes of many groups: read, written, created and deleted in transactions, each on the version that was read.

A transaction has at most 500 operations and half a megabyte: servers drop a connection that sends more than a
megabyte (``jute.maxbuffer``). One znode that changed meanwhile fails its whole transaction, which is then tried again
without this znode. Missing parents are created with the access list of the nearest existing parent; no consumer
deletes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

from kit.clients.access import inherited, lacking
from kit.clients.broker_client import DEADLINE_S, Deadline, backoff_s
from kit.clients.multiread import Names, Znode, catch_up, fetch_children, fetch_data, refusal
from kit.clients.paths import group_path, partition_path
from kit.clients.values import shown
from kit.errors import AuthenticationFailed, ConnectError, InputError
from kit.moves.offsets.kafka import ACCEPTED, Answer
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.selection import Key
from kit.text.numbers import offset_in
from kit.text.quantity import quantity

OPERATIONS_PER_TRANSACTION = 500
BYTES_PER_TRANSACTION = 500_000
_DELETES_IN_FLIGHT = 200
_BYTES_PER_OPERATION = 100
"""The size of an operation without its path: header, version, access list, digits."""
_CHANGED = {
    BadVersionError: "another client wrote this znode meanwhile",
    NoNodeError: "another client deleted this znode meanwhile",
    NodeExistsError: "another client created this znode meanwhile",
}

Result = TypeVar("Result")


def offset_path(key: Key) -> str:
    """The znode of an offset.

    Raises:
        InputError: a znode can't have the name of the group or topic.
    """
    group_id, topic, partition = key
    return partition_path(group_id, "offsets", topic, partition)


def parents_of(key: Key) -> tuple[str, ...]:
    """The znodes from the group's down to the topic's."""
    of_topic = offset_path(key).rpartition("/")[0]
    offsets = of_topic.rpartition("/")[0]
    return offsets.rpartition("/")[0], offsets, of_topic


def missing_of(client: KazooClient, paths: Iterable[str]) -> list[str]:
    """The paths that don't exist, parents first."""
    asked = sorted(set(paths))
    return [path for path, znode in zip(asked, fetch_data(client, asked)) if znode is None]


class ZookeeperWriter:
    """Groups' offset znodes, by group, topic and partition. Each call retries a lost connection for ``deadline_s``."""

    can_delete = True

    def __init__(self, client: KazooClient, deadline_s: float = DEADLINE_S) -> None:
        self._client, self._deadline_s = client, deadline_s
        self._made: dict[str, int] = {}

    def read(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """The stored offsets with versions; NOTHING where there is no znode, an error where the znode holds no offset.

        Raises:
            ConnectError: ZooKeeper did not answer before the deadline.
        """
        refused = _refused(keys := list(keys))
        asked = [key for key in keys if key not in refused]
        znodes = self._patiently(lambda: self._fetch(asked))
        stored = {key: _stored(key, znode) for key, znode in zip(asked, znodes)}
        return {key: stored[key] if key in stored else Stored(error=refused[key]) for key in keys}

    def _fetch(self, keys: Sequence[Key]) -> Iterable[Znode | KazooException | None]:
        catch_up(self._client)
        return fetch_data(self._client, [offset_path(key) for key in keys])

    def _patiently(self, fetch: Callable[[], Result]) -> Result:
        """Call ``fetch``, again after a lost connection, until the deadline."""
        deadline, attempt = Deadline(self._deadline_s), 0
        while True:
            try:
                return fetch()
            except AuthenticationFailed:
                raise
            except ConnectError:
                if not deadline.allows(attempt):
                    raise
                time.sleep(backoff_s(attempt))
                attempt += 1

    def write(self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored]) -> dict[Key, Answer]:
        """Set, create or delete each znode, if it still has the version of ``known``.

        Nothing of a group is written while a member is registered under its ``ids``. A member that registers later
        finds all offsets written or not, and its own commits are never overwritten, because they change the version.
        """
        refused = _refused(wanted)
        busy = self._registered({group_id for group_id, _, _ in wanted.keys() - refused.keys()})
        answers = {key: Answer(refused.get(key) or busy[key[0]]) for key in wanted if key in refused or key[0] in busy}
        todo = {key: stored for key, stored in wanted.items() if key not in answers}
        created = [key for key, stored in todo.items() if stored.offset is not None and known[key].version is None]
        try:
            lists, refusals = self._make_parents(created)
            answers |= {key: Answer(refusals[path]) for key in created for path in parents_of(key) if path in refusals}
        except (AuthenticationFailed, KazooException, self._client.handler.timeout_exception) as error:
            answers |= {key: Answer(f"the parent znodes were not created: {error}") for key in created}
            lists = {}
        todo = {key: stored for key, stored in todo.items() if key not in answers}
        for chunk in _chunks(list(todo)):
            answers |= self._commit({key: todo[key] for key in chunk}, known, lists)
        return answers

    def take_made_parents(self) -> dict[str, int]:
        """The parents that this writer created since it was last asked, with their czxid."""
        made, self._made = self._made, {}
        return made

    def remove_parents(self, made: Mapping[str, int]) -> None:
        """Delete these znodes by path and czxid, children first.

        One that another operator or tool made again or wrote to stays, and so does one that is not empty, or whose
        deletion fails.
        """
        there = dict[str, int]()
        for depth in sorted({path.count("/") for path in made}, reverse=True):
            level = [path for path in made if path.count("/") == depth]
            for start in range(0, len(level), _DELETES_IN_FLIGHT):
                chunk = level[start : start + _DELETES_IN_FLIGHT]
                with suppress(ConnectError):
                    there |= self._lives(chunk)
                ours = [path for path in chunk if there.get(path) == made[path]]
                for result in [self._client.delete_async(path, version=0) for path in ours]:
                    with suppress(KazooException, self._client.handler.timeout_exception):
                        result.get(timeout=self._deadline_s)

    def _lives(self, paths: Sequence[str]) -> dict[str, int]:
        """The czxid of those that exist and can be read."""
        znodes = self._patiently(lambda: fetch_data(self._client, paths))
        return {path: znode.czxid for path, znode in zip(paths, znodes) if isinstance(znode, Znode)}

    def _registered(self, groups: set[str]) -> dict[str, str]:
        asked = sorted(groups)
        paths = [f"{group_path(group_id)}/ids" for group_id in asked]

        def fetch() -> list[Names]:
            catch_up(self._client)
            return fetch_children(self._client, paths)

        names = self._patiently(fetch)
        busy = {}
        for group_id, ids in zip(asked, names):
            if isinstance(ids, KazooException):
                busy[group_id] = f"the registered members, {group_path(group_id)}/ids, {refusal(ids, 'listed')}"
            elif ids:
                busy[group_id] = f"the group has {quantity(len(ids), 'member')} now, first {min(ids)}: stop them"
        return busy

    def _make_parents(self, created: Sequence[Key]) -> tuple[dict[str, Any], dict[str, str]]:
        """Create the missing parents of these znodes.

        Return the access list for new children by parent, and by path why the login may not create a parent.
        """
        lists: dict[str, Any] = {}
        parents = {path for key in created for path in parents_of(key)}
        missing = self._patiently(lambda: missing_of(self._client, parents))
        for path in sorted(parents.difference(missing)):
            lists[path] = self._access_list(path)
        for path in missing:
            above = path.rpartition("/")[0]
            lists[path] = lists[above] if above in lists else lists.setdefault(above, self._access_list(above))
        made, refusals = list[str](), dict[str, str]()
        for start in range(0, len(missing), OPERATIONS_PER_TRANSACTION):
            made += self._make(missing[start : start + OPERATIONS_PER_TRANSACTION], lists, refusals)
        self._made |= self._lives(made) if made else {}
        return lists, refusals

    def _make(self, paths: Sequence[str], lists: Mapping[str, Any], refusals: dict[str, str]) -> list[str]:
        """Create znodes. Return the znodes that this client created, for certain. What the login may not create is
        added to ``refusals``.
        """
        transaction = self._client.transaction()
        for path in paths:
            transaction.create(path, b"", acl=lists[path])
        try:
            is_made = not _errors(self._results(transaction))
        except (KazooException, self._client.handler.timeout_exception):
            is_made = False
        if is_made:
            return list(paths)
        made = list[str]()
        for path in paths:
            with suppress(KazooException):  # It exists by now, or the creation of the offsets fails and reports why.
                try:
                    self._client.retry(self._client.create, path, b"", acl=lists[path])
                    made.append(path)
                except NoAuthError:
                    refusals[path] = lacking("CREATE", path.rpartition("/")[0])
        return made

    def _access_list(self, path: str) -> Any:
        return self._client.retry(inherited, self._client, f"{path}/any", self._deadline_s)

    def _commit(
        self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored], lists: Mapping[str, Any]
    ) -> dict[Key, Answer]:
        """One transaction, tried again without the operations that failed, until it succeeds or none is left."""
        answers: dict[Key, Answer] = {}
        pending, deadline, attempt = list(wanted), Deadline(self._deadline_s), 0
        while pending:
            is_certain = attempt == 0  # A transaction that was lost before may have been applied since.
            transaction = self._client.transaction()
            for key in pending:
                _add(transaction, key, wanted[key], known[key], lists)
            try:
                failed = _errors(self._results(transaction))
            except (KazooException, self._client.handler.timeout_exception) as error:
                answers |= self._after_loss(pending, wanted, known, error, deadline.allows(attempt))
                time.sleep(backoff_s(attempt))
                attempt += 1
            else:
                answers |= {
                    key: Answer(_described(error, key, wanted[key], known[key]), is_certain)
                    for index, error in failed.items()
                    for key in [pending[index]]
                }
                answers |= self._moved(pending, known, is_certain) if failed else dict.fromkeys(pending, ACCEPTED)
            pending = [key for key in pending if key not in answers]
        return answers

    def _results(self, transaction: Any) -> list[Any]:
        results: list[Any] = transaction.commit_async().get(timeout=self._deadline_s)
        return results

    def _moved(self, pending: Sequence[Key], known: Mapping[Key, Stored], is_certain: bool) -> dict[Key, Answer]:
        """The znodes with another version by now, found in one read: a hundred must not take a hundred tries."""
        current = self.read(pending)
        moved = Answer("another client wrote this znode meanwhile", is_certain)
        return {key: moved for key in pending if current[key] != known[key]}

    def _after_loss(
        self,
        pending: Sequence[Key],
        wanted: Mapping[Key, Stored],
        known: Mapping[Key, Stored],
        error: Exception,
        may_try_again: bool,
    ) -> dict[Key, Answer]:
        """The connection was lost during a transaction; a znode that has not changed can be tried again."""
        lost = Answer(f"the connection was lost during the write: {type(error).__name__}", is_certain=False)
        try:
            current = self.read(pending)
        except ConnectError:
            return dict.fromkeys(pending, lost)
        landed = {key for key in pending if not current[key].error and current[key].offset == wanted[key].offset}
        answers = {key: ACCEPTED if key in landed else lost for key in pending}
        return {key: answer for key, answer in answers.items() if current[key] != known[key] or not may_try_again}


def _add(transaction: Any, key: Key, wanted: Stored, known: Stored, lists: Mapping[str, Any]) -> None:
    path = offset_path(key)
    if wanted.offset is None:
        transaction.delete(path, known.version)
    elif known.version is None:
        transaction.create(path, str(wanted.offset).encode(), acl=lists.get(path.rpartition("/")[0]))
    else:
        transaction.set_data(path, str(wanted.offset).encode(), known.version)


def _errors(results: Sequence[Any]) -> dict[int, Exception]:
    """The errors that failed a transaction, by position; the other operations only report the rollback."""
    innocent = (RolledBackError, RuntimeInconsistency)
    return {
        index: result
        for index, result in enumerate(results)
        if isinstance(result, Exception) and not isinstance(result, innocent)
    }


def _described(error: Exception, key: Key, wanted: Stored, known: Stored) -> str:
    if isinstance(error, NoAuthError):
        path = offset_path(key)
        is_set = wanted.offset is not None and known.version is not None
        right = "DELETE" if wanted.offset is None else "CREATE"
        return lacking("WRITE", path) if is_set else lacking(right, path.rpartition("/")[0])
    return _CHANGED.get(type(error), f"ZooKeeper refused the write: {type(error).__name__}")


def _stored(key: Key, znode: Znode | KazooException | None) -> Stored:
    if znode is None:
        return Stored()
    if isinstance(znode, KazooException):
        return Stored(error=f"{offset_path(key)} {refusal(znode)}")
    text = znode.data.decode("utf-8", "replace")
    offset = offset_in(text)
    if offset is not None:
        return Stored(offset, version=znode.version)
    return Stored(version=znode.version, error=f"the znode holds {shown(text)}, not an offset")


def _refused(keys: Iterable[Key]) -> dict[Key, str]:
    """The keys that can have no znode, and why: Kafka allows names that ZooKeeper does not."""
    refused = {}
    for key in keys:
        try:
            offset_path(key)
        except InputError as error:
            refused[key] = str(error)
    return refused


def _chunks(keys: Sequence[Key]) -> Iterator[list[Key]]:
    chunk: list[Key] = []
    size = 0
    for key in keys:
        length = len(offset_path(key).encode()) + _BYTES_PER_OPERATION
        if chunk and (len(chunk) == OPERATIONS_PER_TRANSACTION or size + length > BYTES_PER_TRANSACTION):
            yield chunk
            chunk, size = [], 0
        chunk.append(key)
        size += length
    if chunk:
        yield chunk
