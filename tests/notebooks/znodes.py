"""Every znode below some paths, to prove that nothing was written there."""

from __future__ import annotations

from collections.abc import Iterable

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

Tree = dict[str, tuple[int, ...]]


def tree(client: KazooClient, paths: Iterable[str]) -> Tree:
    """Return each znode with every number that a write to the znode or below it changes; absent paths are left out."""
    found: Tree = {}
    todo = list(paths)
    while todo:
        path = todo.pop()
        try:
            children, stat = client.get_children(path, include_data=True)
        except NoNodeError:
            continue
        found[path] = (stat.czxid, stat.mzxid, stat.version, stat.cversion, stat.pzxid)
        todo += [f"{path}/{child}" for child in children]
    return found


def changes(before: Tree, after: Tree) -> dict[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]]:
    """Return the znodes that differ, with their numbers before and after; a failing test prints them."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }
