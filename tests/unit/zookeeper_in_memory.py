"""A ZooKeeper in memory, from the paths of its znodes."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kazoo.exceptions import NoNodeError

from tests.models.zookeeper import FakeClient, Node


class ZookeeperInMemory(FakeClient):
    """``held``: path → data. Znodes above a path are made with it."""

    def __init__(self, held: Mapping[str, bytes] | None = None) -> None:
        super().__init__(Node())
        for path, data in (held or {}).items():
            self.put(path, data)

    def put(self, path: str, data: bytes = b"", **stat: int) -> Node:
        """Return the znode, which holds the data now."""
        node = self.root
        for name in path.strip("/").split("/"):
            node = node.children.setdefault(name, Node())
        node.data, node.stat = data, dict(stat)
        return node

    def remove(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        node = self.root.at(above or "/")
        assert node is not None
        del node.children[name]

    def get_async(self, path: str) -> Any:
        node, answer = self.root.at(path), self.handler.async_result()
        if node is None:
            raise NoNodeError(path)
        owner = node.stat.get("ephemeral_owner", 0)
        answer.value = node.data, SimpleNamespace(version=node.stat.get("version", 0), ephemeralOwner=owner)
        return answer
