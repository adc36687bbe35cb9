"""A ZooKeeper that answers multiRead byte by byte out of a tree in memory, so that the real reader reads anything."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kit.clients.multiread import STAT, STAT_FIELDS

GET_DATA, GET_CHILDREN, ERROR, NO_NODE, NO_AUTH = 4, 8, -1, -101, -102
_HEADER = struct.Struct(">i?i")
_INT = struct.Struct(">i")


@dataclass
class Node:
    """A znode; ``is_hidden``: nobody may read it, ``is_closed``: nobody may list its children."""

    data: bytes = b""
    children: dict[str, Node] = field(default_factory=dict)
    is_hidden: bool = False
    is_closed: bool = False
    stat: dict[str, int] = field(default_factory=dict)

    def at(self, path: str) -> Node | None:
        node: Node | None = self
        for name in path.split("/")[1:] if path != "/" else ():
            node = node.children.get(name) if node is not None else None
        return node


class FakeClient:
    """The part of kazoo's client that the reader uses; ``asked`` are the kinds of requests in their order."""

    chroot = ""
    hosts = (("fake", 1),)
    _offramp_multiread = True

    def __init__(self, root: Node) -> None:
        self.root = root
        self.asked: list[str] = []
        self.largest = 0
        self.handler = SimpleNamespace(timeout_exception=TimeoutError, async_result=_Result)

    def sync_async(self, path: str) -> _Result:
        self.asked.append("sync")
        return _Result(path)

    def _call(self, request: Any, result: _Result) -> None:
        self.asked.append("read")
        body = request.serialize()
        self.largest = max(self.largest, len(body))
        result.value = b"".join([*(self._answer(*item) for item in _items(body)), _HEADER.pack(-1, True, -1)])

    def _answer(self, kind: int, path: str) -> bytes:
        node = self.root.at(path)
        if node is None or (node.is_hidden if kind == GET_DATA else node.is_closed):
            code = NO_NODE if node is None else NO_AUTH
            return _HEADER.pack(ERROR, False, code) + _INT.pack(code)
        if kind == GET_DATA:
            stat = STAT.pack(*(node.stat.get(name, 0) for name in STAT_FIELDS))
            return _HEADER.pack(kind, False, 0) + _INT.pack(len(node.data)) + node.data + stat
        names = [name.encode("utf-8", "surrogatepass") for name in node.children]
        vector = b"".join(_INT.pack(len(name)) + name for name in names)
        return _HEADER.pack(kind, False, 0) + _INT.pack(len(names)) + vector


@dataclass
class _Result:
    value: Any = None

    def get(self, timeout: float) -> Any:
        return self.value


def _items(body: bytes) -> list[tuple[int, str]]:
    items, at = [], 0
    while True:
        kind, done, _ = _HEADER.unpack_from(body, at)
        if done:
            return items
        (length,) = _INT.unpack_from(body, at + _HEADER.size)
        start = at + _HEADER.size + _INT.size
        items.append((kind, body[start : start + length].decode()))
        at = start + length + 1
