"""Lives of a group's znodes, from a server's events and answers in their order; and the file of lives."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeAlias

from kazoo.exceptions import KazooException

from kit.clients.multiread import refusal
from kit.clients.paths import group_path
from kit.clients.values import shown
from kit.errors import HistoryError
from kit.groups.read.znode_stream import Answer, ClusterState, Event, ZnodeState
from kit.tables.groups import ZnodeLife
from kit.text.numbers import partition_in
from kit.text.regular_file import read_regular

_Key: TypeAlias = tuple[str, str | None, int | None, str | None, int | None, int]


class Lives:
    """Lives by path, from events and answers in their order. One thread writes, any thread may read."""

    def __init__(self, group_id: str, file: Path | None) -> None:
        self.proven_ms = 0
        self._root = f"{group_path(group_id)}/"
        self._group_id = group_id
        self._file = file
        self._lock = threading.Lock()
        self._told: dict[_Key, ZnodeLife] = {}
        self._open: dict[str, ZnodeLife] = {}
        self._ended: dict[str, ZnodeLife] = {}
        self._watch: ZnodeLife | None = None

    def rows(self) -> list[ZnodeLife]:
        """All lives; the ``watch`` row ends at the request for the last proof."""
        with self._lock:
            watch = [replace(self._watch, until_ms=self.proven_ms)] if self._watch else []
            return [
                *self._told.values(),
                *(life for life in self._open.values() if life.czxid is None and life.error),
                *watch,
            ]

    @property
    def is_watching(self) -> bool:
        return self._watch is not None

    def standing_paths(self) -> list[str]:
        return list(self._open)

    def watch(self, at_ms: int) -> None:
        """From now on no change is missed."""
        with self._lock:
            self._watch = self._watch or ZnodeLife(
                self._group_id, "watch", None, None, None, None, at_ms, False, None, None, None, None
            )
            self.proven_ms = max(self.proven_ms, at_ms)
            self._write(self._watch)

    def unwatch(self, why: str) -> None:
        """Changes since the last proof may have been missed."""
        with self._lock:
            if self._watch is not None:
                self._keep(replace(self._watch, until_ms=self.proven_ms, ended_by=why))
                self._watch = None

    def take_event(self, event: Event) -> bool:
        """Note a creation or a deletion; True: the znode must be read."""
        begin = self._begin(event.path, event.at_ms)
        if begin is None:
            return False
        with self._lock:
            if event.type == "DELETED":
                self._end(event.path, event.at_ms, "deleted")
            elif event.type == "CREATED":
                self._open[event.path] = begin
        return event.type == "CREATED" or (event.type == "CHANGED" and begin.kind in ("owner", "mode"))

    def take_answer(self, answer: Answer) -> None:
        with self._lock:
            for path, znode in answer.znodes.items():
                self._settle(path, znode, answer.at_ms)

    def _settle(self, path: str, znode: ZnodeState, at_ms: int) -> None:
        known, begin = self._open.get(path), self._begin(path, at_ms)
        if begin is None:
            return
        if isinstance(znode, KazooException):
            self._open[path] = known or replace(begin, error=f"{path} {refusal(znode)}")
        elif znode is None:
            self._end(path, at_ms, "missed")
        else:
            self._stands(path, known, _known(begin, znode), znode)

    def _stands(self, path: str, known: ZnodeLife | None, life: ZnodeLife, znode: ClusterState) -> None:
        """The existing znode is the known one, the known one with another value, or another one."""
        if known is not None and known.czxid == life.czxid and known.value == life.value:
            return
        if known is not None and known.czxid is not None:
            is_same = known.czxid == life.czxid
            life = replace(life, from_ms=znode.modified_ms) if is_same else life
            self._end(path, life.from_ms, "changed" if is_same else "replaced")
        before = self._ended.pop(path, None)
        if before is not None and before.until_ms is not None and before.until_ms > life.from_ms:
            self._keep(replace(before, until_ms=max(life.from_ms, before.from_ms)))
        self._open[path] = life
        self._keep(life)

    def _end(self, path: str, at_ms: int, how: str) -> None:
        life = self._open.pop(path, None)
        if life is not None:
            ended = replace(life, until_ms=max(at_ms, life.from_ms), ended_by=how)
            self._ended[path] = ended
            self._keep(ended)

    def _begin(self, path: str, at_ms: int) -> ZnodeLife | None:
        """A life with only its path and a bound of its creation; None: the path is not recorded."""
        kind, topic, partition, member_id = _place(path.removeprefix(self._root))
        if not kind:
            return None
        error = "deleted before it could be read: its owner is not known" if kind == "owner" else None
        return ZnodeLife(
            self._group_id, kind, topic, partition, member_id, None, at_ms, True, None, None, None, None, error
        )

    def _keep(self, life: ZnodeLife) -> None:
        self._told[_key(life)] = life
        self._write(life)

    def _write(self, life: ZnodeLife) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(life)) + "\n")


def _place(path: str) -> tuple[str, str | None, int | None, str | None]:
    """A path below the group → kind, topic, partition, member id; the kind is empty for other paths."""
    match path.split("/"):
        case ["owners", topic, name] if (partition := partition_in(name)) is not None:
            return "owner", topic, partition, None
        case ["ids", member_id]:
            return "member", None, None, member_id
        case ["migration", "ids", member_id]:
            return "migration_member", None, None, member_id
        case ["migration", "mode"]:
            return "mode", None, None, None
        case _:
            return "", None, None, None


def _known(begin: ZnodeLife, znode: ClusterState) -> ZnodeLife:
    """A life with the znode's fields; a changed value begins a life at the change."""
    value = znode.data.decode(errors="replace") if begin.kind in ("owner", "mode") else None
    member_id = (value or "").rpartition("-")[0] or None if begin.kind == "owner" else begin.member_id
    is_known = member_id or begin.kind == "mode"
    is_changed = value is not None and znode.mzxid != znode.czxid
    return replace(
        begin,
        member_id=member_id,
        value=value,
        from_ms=znode.modified_ms if is_changed else znode.created_ms,
        is_seen_late=False,
        czxid=znode.czxid,
        session_id=znode.session_id,
        error=None if is_known else f"the znode holds {shown(value)}, not <consumer id>-<thread>",
    )


def _key(life: ZnodeLife) -> _Key:
    named = life.member_id if life.kind in ("member", "migration_member") else None
    return life.kind, life.topic, life.partition, named, life.czxid, life.from_ms


def load_owner_history(file: Path) -> list[ZnodeLife]:
    """The lives in a watcher's file, without a last line that is still being written.

    A watcher that was killed proved nothing after its last line: its ``watch`` row ends there.

    Raises:
        HistoryError: a line is no ``ZnodeLife``, or the file can't be read.
    """
    try:
        text = read_regular(file).decode()
        lives = [ZnodeLife(**json.loads(line)) for line in text[: text.rfind("\n") + 1].splitlines()]
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise HistoryError(f"{file} is not a history of owner znodes: {error}") from error
    merged = {_key(life): life for life in lives}
    last_ms = max((life.until_ms or life.from_ms for life in lives), default=0)
    return [_closed(life, last_ms) for life in merged.values()]


def _closed(life: ZnodeLife, last_ms: int) -> ZnodeLife:
    is_open = life.kind == "watch" and life.until_ms is None
    return replace(life, until_ms=last_ms, ended_by="missed") if is_open else life
