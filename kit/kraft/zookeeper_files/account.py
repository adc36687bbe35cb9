"""An account of one file: what it is, how much is in it, from when to when, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from kit.kraft.zookeeper_files.files import ZooKeeperFile
from kit.kraft.zookeeper_files.rows import znode_tables
from kit.kraft.zookeeper_files.snapshot import Snapshot
from kit.kraft.zookeeper_files.state import moment
from kit.kraft.zookeeper_files.transactions import Change, Log
from kit.tables import schema as tables
from kit.tables.znodes import ZnodeAcl, ZooKeeperFile as Row, ZooKeeperSession
from kit.text.fingerprints import Hide, stars

_MOST = 20
"""The number of different problems of one file that are named; all are counted."""


class LoadedSnapshot:
    """A snapshot, all of it."""

    def __init__(self, file: ZooKeeperFile, hide: Hide = stars) -> None:
        data, compression, cut = file.read()
        self.snapshot = snapshot = Snapshot(data)
        parts = list(znode_tables(snapshot, hide))
        self.znodes = pa.concat_tables(parts) if parts else tables.ZNODES.from_rows(())
        problems = [*([cut] if cut else []), *snapshot.problems]
        self.row = Row(
            file=file.path,
            kind=file.kind,
            zxid=file.zxid,
            n_bytes=file.n_bytes,
            compression=compression,
            n_rows=len(self.znodes),
            n_sessions=len(snapshot.sessions),
            first_zxid=None,
            last_zxid=snapshot.last_zxid,
            first_at=None,
            last_at=moment(snapshot.last_ms),
            problems=tuple(problems),
            is_whole=not problems,
        )

    @property
    def zxid(self) -> int:
        """All changes up to this one are in it; one without a name reports no more than its last."""
        return self.snapshot.last_zxid if self.row.zxid is None else self.row.zxid

    def sessions(self) -> list[ZooKeeperSession]:
        return [ZooKeeperSession(self.row.file, number, timeout_ms) for number, timeout_ms in self.snapshot.sessions]

    def acls(self) -> list[ZnodeAcl]:
        counts = self.snapshot.n_by_acl
        return [ZnodeAcl(self.row.file, number, each, counts[number]) for number, each in self.snapshot.acls.items()]


class LoadedLog:
    """A log; its ``row`` is there once all ``changes`` were taken."""

    def __init__(self, file: ZooKeeperFile) -> None:
        self._file = file
        self._data, self._compression, self._cut = file.read()
        self._problems: Counter[str] = Counter([self._cut] if self._cut else [])
        self._sessions: set[int] = set()
        self._n = 0
        self._first: Change | None = None
        self._last: Change | None = None

    def changes(self) -> Iterator[Change]:
        for change in Log(self._data, self._file.path).changes():
            self._n += 1
            if change.error is not None:
                self._problems[change.error] += 1
            if change.zxid is not None and change.session_id is not None:
                self._first, self._last = self._first or change, change
                self._sessions.add(change.session_id)
            yield change

    @property
    def row(self) -> Row:
        first, last = self._first or Change(), self._last or Change()
        return Row(
            file=self._file.path,
            kind=self._file.kind,
            zxid=self._file.zxid,
            n_bytes=self._file.n_bytes,
            compression=self._compression,
            n_rows=self._n,
            n_sessions=len(self._sessions),
            first_zxid=first.zxid,
            last_zxid=last.zxid,
            first_at=moment(first.written_ms),
            last_at=moment(last.written_ms),
            problems=tuple(self._problems)[:_MOST],
            is_whole=not self._problems,
        )


def rows_of(items: Iterable[LoadedSnapshot | LoadedLog]) -> pa.Table:
    """``tables.ZOOKEEPER_FILES``."""
    return tables.ZOOKEEPER_FILES.from_rows(each.row for each in items)


def unread(file: ZooKeeperFile, problem: str) -> Row:
    """The row of a file that can't be read."""
    return Row(
        file.path, file.kind, file.zxid, file.n_bytes, "none", 0, 0, None, None, None, None, (problem,), is_whole=False
    )
