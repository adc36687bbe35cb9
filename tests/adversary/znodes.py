"""Znodes in memory, and a client of one session behind kazoo's names: what actors and the lock call, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

LOST, TIMEOUT = "connection lost", "time-out"


@dataclass
class TreeNode:
    data: bytes
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0
    cversion: int = 0
    pzxid: int = 0

    def stat(self, n_children: int) -> ZnodeStat:
        times = (0, 0)
        head = (self.czxid, self.mzxid, *times, self.version, self.cversion, 0, self.owner)
        return ZnodeStat(*head, len(self.data), n_children, self.pzxid)


@dataclass
class Tree:
    """All znodes by path. ``zxid`` counts the writes."""

    nodes: dict[str, TreeNode] = field(default_factory=lambda: {"/": TreeNode(b"", 0, 0)})
    zxid: int = 0
    sessions: int = 0

    def new_session(self) -> int:
        self.sessions += 1
        return 0x1000 + self.sessions

    def get(self, path: str) -> TreeNode:
        if path not in self.nodes:
            raise NoNodeError
        return self.nodes[path]

    def text(self, path: str) -> str | None:
        return self.nodes[path].data.decode() if path in self.nodes else None

    def children(self, path: str) -> list[str]:
        self.get(path)
        prefix = path.rstrip("/") + "/"
        return sorted(each[len(prefix) :] for each in self.nodes if _is_child(each, prefix))

    def stat(self, path: str) -> ZnodeStat:
        return self.get(path).stat(len(self.children(path)))

    def create(self, path: str, data: bytes, owner: int = 0, makepath: bool = False) -> str:
        if path in self.nodes:
            raise NodeExistsError
        parent = _parent(path)
        if parent not in self.nodes:
            if not makepath:
                raise NoNodeError
            self.create(parent, b"", makepath=True)
        self.zxid += 1
        self.nodes[path] = TreeNode(data, self.zxid, self.zxid, owner)
        self._touch(parent)
        return path

    def set(self, path: str, data: bytes, version: int = -1) -> ZnodeStat:
        node = self._expected(path, version)
        self.zxid += 1
        node.data, node.mzxid, node.version = data, self.zxid, node.version + 1
        return self.stat(path)

    def delete(self, path: str, version: int = -1) -> bool:
        self._expected(path, version)
        if self.children(path):
            raise NotEmptyError
        self.zxid += 1
        del self.nodes[path]
        self._touch(_parent(path))
        return True

    def end_session(self, session: int) -> None:
        for path in [path for path, node in self.nodes.items() if node.owner == session]:
            self.delete(path)

    def _touch(self, parent: str) -> None:
        self.nodes[parent].cversion += 1
        self.nodes[parent].pzxid = self.zxid

    def _expected(self, path: str, version: int) -> TreeNode:
        node = self.get(path)
        if version not in (-1, node.version):
            raise BadVersionError
        return node


@dataclass(frozen=True)
class Write:
    """One request that was applied: ``verb`` (create, set, delete, ensure), and what was there before."""

    verb: str
    path: str
    text: str | None
    before: TreeNode | None
    zxid: int


class AsyncAnswer:
    """The return value of an asynchronous call: the answer, or the error, is there already."""

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self._value, self.error = value, error

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self._value

    @property
    def exception(self) -> BaseException | None:
        """An answer that is late for ``get`` is lost with its connection in the end."""
        return ConnectionLoss() if isinstance(self.error, KazooTimeoutError) else self.error

    @property
    def value(self) -> Any:
        return self._value

    def rawlink(self, callback: Callable[[AsyncAnswer], None]) -> None:
        callback(self)


class Client:
    """One process's client. ``point`` is called before each request, ``wrote`` after each write that was applied,
    ``abandoned`` with each session that nobody keeps alive any more.

    ``loses`` says what becomes of the next write: (is it applied, what the caller is reported instead of an answer).
    """

    chroot = ""
    hosts = (("model", 2181),)
    connected = True

    def __init__(
        self,
        tree: Tree,
        point: Callable[[str], None],
        wrote: Callable[[Write], None],
        abandoned: Callable[[int], None],
    ) -> None:
        self._tree, self._point, self._wrote, self._abandoned = tree, point, wrote, abandoned
        self.handler = SimpleNamespace(timeout_exception=KazooTimeoutError)
        self.client_id = (tree.new_session(), b"")
        self.loses: tuple[bool, str] | None = None
        self.lost: list[tuple[str, bool]] = []

    def expire(self) -> None:
        """The session has ended; kazoo begins another by itself."""
        self._tree.end_session(self.client_id[0])
        self.client_id = (self._tree.new_session(), b"")

    def abandon(self) -> None:
        """The session gets no heartbeat any more, and is over some time later; this client begins another."""
        self._abandoned(self.client_id[0])
        self.client_id = (self._tree.new_session(), b"")

    def get_async(self, path: str, watch: Any = None) -> AsyncAnswer:
        return self._read(f"get {path}", lambda: (self._tree.get(path).data, self._tree.stat(path)))

    def exists_async(self, path: str, watch: Any = None) -> AsyncAnswer:
        return self._read(f"exists {path}", lambda: self._tree.stat(path) if path in self._tree.nodes else None)

    def get_children_async(self, path: str, watch: Any = None, include_data: bool = False) -> AsyncAnswer:
        return self._read(f"children {path}", lambda: self._tree.children(path))

    def get_acls_async(self, path: str) -> AsyncAnswer:
        return self._read(f"acls {path}", lambda: (list(OPEN_ACL_UNSAFE), self._tree.stat(path)))

    def sync_async(self, path: str) -> AsyncAnswer:
        return self._read(f"sync {path}", lambda: path)

    def ensure_path_async(self, path: str, acl: Any = None) -> AsyncAnswer:
        return self._write("ensure", path, None, lambda: path in self._tree.nodes or self._create(path, b"", 0))

    def create_async(
        self,
        path: str,
        value: bytes = b"",
        acl: Any = None,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
        include_data: bool = False,
    ) -> AsyncAnswer:
        def do() -> Any:
            owner = self.client_id[0] if ephemeral else 0
            self._tree.create(path, value, owner, makepath)
            return (path, self._tree.stat(path)) if include_data else path

        return self._write("create", path, value.decode(), do)

    def set_async(self, path: str, value: bytes, version: int = -1) -> AsyncAnswer:
        return self._write("set", path, value.decode(), lambda: self._tree.set(path, value, version))

    def delete_async(self, path: str, version: int = -1) -> AsyncAnswer:
        return self._write("delete", path, None, lambda: self._tree.delete(path, version))

    def change(self, what: str, path: str, text: str | None, do: Callable[[Tree], Any]) -> AsyncAnswer:
        """One request that is applied as a whole, of another service than ZooKeeper."""
        return self._write(what, path, text, lambda: do(self._tree))

    def _create(self, path: str, data: bytes, owner: int) -> str:
        return self._tree.create(path, data, owner, makepath=True)

    def _read(self, what: str, do: Callable[[], Any]) -> AsyncAnswer:
        self._point(what)
        return _answer(do)

    def _write(self, what: str, path: str, text: str | None, do: Callable[[], Any]) -> AsyncAnswer:
        self._point(f"{what} {path}")
        loses, self.loses = self.loses, None
        if loses is not None and not loses[0]:
            self.lost.append((path, False))
            return AsyncAnswer(error=_silence(loses[1]))
        before = replace(self._tree.nodes[path]) if path in self._tree.nodes else None
        answer = _answer(do)
        if answer.error is None:
            self._wrote(Write(what, path, text, before, self._tree.zxid))
        if loses is not None:
            self.lost.append((path, answer.error is None))
            return AsyncAnswer(error=_silence(loses[1]))
        return answer


def _answer(do: Callable[[], Any]) -> AsyncAnswer:
    try:
        return AsyncAnswer(do())
    except KazooException as error:
        return AsyncAnswer(error=error)


def _silence(kind: str) -> BaseException:
    return ConnectionLoss() if kind == LOST else KazooTimeoutError("no answer")


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _is_child(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and path != "/" and "/" not in path[len(prefix) :]
