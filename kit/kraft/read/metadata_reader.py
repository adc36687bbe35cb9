"""List and read the znodes of a cluster's metadata: what can't be read is a row with its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import Names, Znode, fetch_children, fetch_data, refusal
from kit.clients.znode_secrets import shown_data
from kit.kraft.read.metadata_values import BadValue
from kit.tables.metadata import MetadataItem
from kit.text.withholding import REDACTED

ZOOKEEPER = "zookeeper"
Parsed = TypeVar("Parsed")
Entity: TypeAlias = tuple[str, str]
"""Kind and entity."""


@dataclass
class Reader:
    """Lists and reads, and notes as rows what it can't."""

    client: KazooClient
    errors: list[MetadataItem] = field(default_factory=list)

    def children(self, paths: Sequence[str], kind: str) -> dict[str, list[str]]:
        """Names by path; a path that isn't there has none."""
        answers = dict(zip(paths, fetch_children(self.client, paths)))
        return {path: sorted(self._names(path, names, kind)) for path, names in answers.items()}

    def _names(self, path: str, names: Names, kind: str) -> list[str]:
        if isinstance(names, KazooException):
            self.fail(kind, "", f"{path} {refusal(names, 'listed')}", is_refused=True)
        return names if isinstance(names, list) else []

    def znodes(self, paths: Sequence[str]) -> Iterator[tuple[str, Znode | KazooException | None]]:
        """Return the content at each path; None: there is nothing."""
        return zip(paths, fetch_data(self.client, paths))

    def parse(
        self, entities: Sequence[Entity], path: str, held: Znode | KazooException, how: Callable[[bytes], Parsed]
    ) -> Parsed | None:
        """Return the content of the znode; None if that can't be read, which is then an error of each of these
        entities.
        """
        if isinstance(held, KazooException):
            for kind, entity in entities:
                self.fail(kind, entity, f"{path}: it {refusal(held)}", is_refused=True)
            return None
        try:
            if shown_data(path, held.data) == REDACTED.encode():
                raise BadValue("the value is no JSON object with a config; its content is redacted")
            return how(held.data)
        except BadValue as problem:
            for kind, entity in entities:
                self.fail(kind, entity, f"{path}: {problem}", held.mzxid)
            return None

    def fail(self, kind: str, entity: str, error: str, mzxid: int | None = None, is_refused: bool = False) -> None:
        """Note it."""
        self.errors.append(replace(item(kind, entity, "", None, mzxid, error=error), is_refused=is_refused))


def item(
    kind: str,
    entity: str,
    name: str,
    value: str | None,
    mzxid: int | None,
    is_secret: bool = False,
    error: str | None = None,
) -> MetadataItem:
    """A row of ZooKeeper's side."""
    return MetadataItem(ZOOKEEPER, kind, entity, name, value, is_secret, mzxid, None, error)
