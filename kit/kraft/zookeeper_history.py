"""Read ZooKeeper's own files, without a server: what a znode held when, and which session wrote it.

    found = read_zookeeper_files(["copied/version-2"], "/consumers/orders", at=moment)
    print(found)                            # which files, as of which transaction, what is damaged
    found.znodes, found.changes             # polars

Copies of many servers or of many days: ``read_files`` reads them side by side by Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from kit.errors import NotFound, PartialRead, ReadError
from kit.kraft.zookeeper_files.account import LoadedLog, LoadedSnapshot, rows_of, unread
from kit.kraft.zookeeper_files.files import LOG, SNAPSHOT, ZooKeeperFile, find_files
from kit.kraft.zookeeper_files.rows import change_tables, znode_tables
from kit.kraft.zookeeper_files.snapshot import Snapshot
from kit.kraft.zookeeper_files.state import is_below, moment, owners_in, replayed, with_closed
from kit.kraft.zookeeper_files.transactions import CLOSE_SESSION, Change, Log, gap
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.schema import Table
from kit.tables.znodes import ZooKeeperFile as FileRow
from kit.text.fingerprints import Hide, stars
from kit.text.quantity import quantity
from kit.text.visible import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, repr=False)
class ZooKeeperFiles:
    """``znodes`` (``tables.ZNODES``) and ``changes`` (``tables.ZNODE_CHANGES``) at and below ``top``: the znodes as of
    transaction ``zxid``, written at ``as_of`` (None: not known), the changes from the first to the last in the logs.

    ``files`` (``tables.ZOOKEEPER_FILES``) accounts for every file that was read; ``sessions`` and ``acls`` are those of
    the snapshot that the znodes begin with; ``notes`` report what these files can't determine.
    """

    top: str
    znodes: pl.DataFrame
    changes: pl.DataFrame
    files: pl.DataFrame
    sessions: pl.DataFrame
    acls: pl.DataFrame
    zxid: int | None
    as_of: datetime | None
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Return what was read, in sentences: a notebook shows it."""
        when = f", {self.as_of:%F %T} UTC" if self.as_of else ""
        state = f"as of transaction {self.zxid:#x}{when}" if self.zxid is not None else "as of no transaction"
        changes = quantity(len(self.changes), "change")
        counts = f"{quantity(len(self.znodes), 'znode')} at {self.top} {state}; {changes} there"
        files = quantity(len(self.files), "file")
        return "\n".join([visible(f"{files} of ZooKeeper: {counts}."), *map(visible, self.notes)])


def verify_files(found: ZooKeeperFiles) -> str:
    """Return what was read, in sentences.

    Raises:
        PartialRead: something is damaged or missing: what and where.
    """
    rows = found.files.filter(~pl.col("is_whole")).select("file", "problems").iter_rows()
    if wrong := [visible(f"{file}: {'; '.join(problems)}.") for file, problems in rows]:
        raise PartialRead("\n".join([repr(found), *wrong]))
    return repr(found)


def read_zookeeper_files(
    paths: Iterable[str | Path], top: str = "/", at: datetime | None = None, hide: Hide = stars
) -> ZooKeeperFiles:
    """Znodes as they were at ``at`` (None: at the end), and what was done to them.

    ``paths`` are snapshots and logs of one server, its ``version-2`` folder, or the data folder around it. The znodes
    begin with the newest whole snapshot that has nothing later in it, and continue with the logs; older snapshots are
    not read. One that can't be read is named in ``files``, and the one before it taken.

    Raises:
        InputError: there is no such path.
        NotFound: no file of ZooKeeper is in it, or these files know nothing of that time.
        ReadError: a file can't be read.
    """
    files = find_files(paths)
    history = _History(top, at, [LoadedLog(each) for each in files if each.kind == LOG])
    snapshots, refused, base = list[LoadedSnapshot](), dict[ZooKeeperFile, ReadError](), None
    for file in reversed([each for each in files if each.kind == SNAPSHOT]):
        try:
            snapshots.append(LoadedSnapshot(file, hide))
        except ReadError as error:  # A full disk leaves an empty one; the server, too, goes back to the one before.
            refused[file] = error
            continue
        if history.can_follow(snapshots[-1]):
            base = snapshots[-1]
            break
    if base is None and history.until is None:
        for refusal in refused.values():
            raise refusal
        raise NotFound(_unknown(at, snapshots))
    start = base.znodes if base else tables.ZNODES.from_rows(())
    now = replayed(start, with_closed(history.since(base), owners_in(start)), hide)
    shown = (each for each in with_closed(history.changes, owners_in(start)) if each.error or is_below(each.path, top))
    zxid, as_of = history.until or ((base.zxid, base.row.last_at) if base else (None, None))
    return ZooKeeperFiles(
        top,
        _frame(_below(now, top)).sort("path"),
        _changes(change_tables(shown, hide)),
        _rows(tables.ZOOKEEPER_FILES, [*_accounts(snapshots), *_accounts(history.logs), *_unread(refused)]),
        _rows(tables.ZOOKEEPER_SESSIONS, base.sessions() if base else ()),
        _rows(tables.ZNODE_ACLS, base.acls() if base else ()),
        zxid,
        as_of,
        tuple(history.notes(base)),
    )


def _accounts(some: Iterable[LoadedSnapshot | LoadedLog]) -> Iterator[FileRow]:
    return (each.row for each in some)


def _unread(refused: dict[ZooKeeperFile, ReadError]) -> Iterator[FileRow]:
    return (unread(file, str(error).removeprefix(f"{file.path} ")) for file, error in refused.items())


def _unknown(at: datetime | None, snapshots: Sequence[LoadedSnapshot]) -> str:
    if at is None:
        return (
            "; ".join(f"{each.row.file}: {'; '.join(each.row.problems)}" for each in snapshots)
            or "no transaction is in these logs"
        )
    return (
        f"these files contain nothing of {at:%F %T} UTC, because all of them begin later. Give older snapshots or logs"
    )


class _History:
    """Logs, in order: what they report of znodes below ``top``, and up to where ``at`` is.

    ``until``: the last transaction no later than ``at`` and when it was written; None: there is none.
    """

    def __init__(self, top: str, at: datetime | None, logs: list[LoadedLog]) -> None:
        self.logs = logs
        self.changes: list[Change] = []
        self.until: tuple[int, datetime | None] | None = None
        self._gaps: list[tuple[int, str]] = []
        self._first: int | None = None
        self._at_ms = None if at is None else at.timestamp() * 1000
        last = None
        for log in logs:
            for change in log.changes():
                last = self._take(change, last, top)

    def _take(self, change: Change, last: int | None, top: str) -> int | None:
        if change.error or is_below(change.path, top) or change.operation == CLOSE_SESSION:
            self.changes.append(change)
        if change.zxid is None:
            return last
        if last != change.zxid and (missing := gap(last, change.zxid)):
            self._gaps.append((change.zxid, missing))
        self._first = self._first or change.zxid
        if self._at_ms is None or (change.written_ms or 0) <= self._at_ms:
            self.until = change.zxid, moment(change.written_ms)
        return change.zxid

    def can_follow(self, snapshot: LoadedSnapshot) -> bool:
        """Return whether the znodes of that time can be made from it."""
        if not snapshot.row.is_whole:
            return False
        if self._at_ms is None or (self.until and snapshot.snapshot.last_zxid <= self.until[0]):
            return True
        last_at = snapshot.row.last_at
        return self.until is None and last_at is not None and last_at.timestamp() * 1000 <= self._at_ms

    def since(self, base: LoadedSnapshot | None) -> Iterator[Change]:
        """Return what is not in the snapshot for certain, up to ``until``."""
        first, last = base.zxid if base else -1, self.until[0] if self.until else -1
        return (each for each in self.changes if each.zxid is not None and first < each.zxid <= last)

    def notes(self, base: LoadedSnapshot | None) -> Iterator[str]:
        """Return what these files can't determine."""
        first = base.zxid if base else 0
        if base is None and self._first != 1:
            yield "There is no snapshot before these logs, so a znode that the logs do not write is missing."
        elif self._first is not None and self._first > first and self.until and (missing := gap(first, self._first)):
            yield f"Between the snapshot and the logs {missing}."
        yield from (f"{missing.capitalize()}." for zxid, missing in self._gaps if zxid > first)
        if base is not None and (self.until is None or self.until[0] < base.snapshot.last_zxid) and self._at_ms:
            yield "No log continues from the snapshot to that time, so changes between them are unknown."


def _below(znodes: pa.Table, top: str) -> pa.Table:
    if top == "/":
        return znodes
    return znodes.filter(pc.or_(pc.equal(znodes["path"], top), pc.starts_with(znodes["path"], f"{top}/")))


def _frame(found: pa.Table) -> pl.DataFrame:
    """Its parts stay apart: who sorts them brings them together."""
    frame = pl.from_arrow(found, rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _rows(table: Table, rows: Iterable[Any]) -> pl.DataFrame:
    return frame(table.columns_of(rows))


def _changes(found: Iterable[pa.Table]) -> pl.DataFrame:
    some = list(found)
    return pl.DataFrame(pa.concat_tables(some)) if some else _rows(tables.ZNODE_CHANGES, ())


@dataclass(frozen=True)
class ManyFiles:
    """``znodes`` (``tables.ZNODES`` behind the name of their ``file``) and ``changes`` (``tables.ZNODE_CHANGES``) are
    Spark's and lazy: each use reads the files again, unless cached. ``files`` (``tables.ZOOKEEPER_FILES``) is there.
    """

    znodes: DataFrame
    changes: DataFrame
    files: pl.DataFrame


def read_files(spark: SparkSession, paths: Iterable[str | Path]) -> ManyFiles:
    """Read files of one or many servers side by side, each as it is: no log is replayed on a snapshot.

    They must lie where Spark's tasks run, under the same path. A file that can't be read is named in the account.

    Raises:
        InputError, NotFound: there is no such path, or a folder without a file of ZooKeeper.
    """
    files = [each for path in paths for each in find_files([path])]
    znodes = spark.range(len(files)).mapInArrow(
        _task(files, _snapshot_tables), f"file string NOT NULL, {tables.ZNODES.spark_row_schema}"
    )
    changes = spark.range(len(files)).mapInArrow(_task(files, _log_tables), tables.ZNODE_CHANGES.spark_row_schema)
    counted = spark.range(len(files)).mapInArrow(_task(files, _account), tables.ZOOKEEPER_FILES.spark_row_schema)
    return ManyFiles(znodes, changes, pl.DataFrame(counted.toArrow()).sort("file"))


def _task(files: Sequence[ZooKeeperFile], read: Callable[[ZooKeeperFile], Iterable[pa.Table]]) -> Task:
    def zookeeper_files(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in numbers for each in batch.column(0).to_pylist()):
            for table in read(files[number]):
                yield from table.to_batches()

    return zookeeper_files


def _snapshot_tables(file: ZooKeeperFile) -> Iterator[pa.Table]:
    if file.kind == SNAPSHOT and (data := _bytes(file)):
        for table in znode_tables(Snapshot(data)):
            name = pa.repeat(pa.scalar(file.path), len(table))
            yield table.add_column(0, pa.field("file", pa.string(), nullable=False), name)


def _log_tables(file: ZooKeeperFile) -> Iterator[pa.Table]:
    if file.kind == LOG and (data := _bytes(file)):
        yield from change_tables(Log(data, file.path).changes())


def _bytes(file: ZooKeeperFile) -> bytes:
    """None of a file that can't be read: the account reports it."""
    try:
        return file.read()[0]
    except ReadError:
        return b""


def _account(file: ZooKeeperFile) -> Iterator[pa.Table]:
    try:
        loaded = LoadedSnapshot(file) if file.kind == SNAPSHOT else LoadedLog(file)
        if isinstance(loaded, LoadedLog):
            for _ in loaded.changes():
                pass
        yield rows_of([loaded])
    except ReadError as error:
        yield tables.ZOOKEEPER_FILES.from_rows([unread(file, str(error))])
