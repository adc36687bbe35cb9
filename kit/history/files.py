"""Folders on whatever file system Spark writes to, by Hadoop's own client: Spark can write and read, but not delete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kit.errors import HistoryError

_TYPE = re.compile(
    r"reading file (\S+)\. Data type mismatches when reading Parquet column \[(.+?)\]\. "
    r"Expected Spark type (.+?), actual Parquet type (.+?)\. "
)

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)


@dataclass(frozen=True, slots=True)
class Size:
    """The content of a folder and below it."""

    n_files: int = 0
    n_bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.n_files + other.n_files, self.n_bytes + other.n_bytes)


class Files:
    """Listing, measuring and deleting folders.

    Raises:
        HistoryError: by Spark Connect, which delivers no file system; or the file system refuses.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        try:
            self._jvm: Any = cast(Any, spark)._jvm
        except PySparkException:
            raise HistoryError(
                f"{folder} can't be maintained through Spark Connect, which can't delete files. Use a profile whose "
                "section [clusters.NAME.spark] has no remote"
            ) from None
        with describe_as(f"{folder} can't be reached"):
            path = self._jvm.org.apache.hadoop.fs.Path(folder)
            self._system = path.getFileSystem(cast(Any, spark)._jsc.hadoopConfiguration())

    def local(self, folder: str) -> str | None:
        """Its absolute path on this machine; None where the file system is another."""
        with describe_as(f"{folder} can't be reached"):
            if self._system.getUri().getScheme() != "file":
                return None
            return str(self._system.makeQualified(self._jvm.org.apache.hadoop.fs.Path(folder)).toUri().getPath())

    def names(self, folder: str) -> list[str]:
        """Names of what lies in a folder, sorted; none when it isn't there."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with describe_as(f"{folder} can't be listed"), _may_be_gone():
            return sorted(status.getPath().getName() for status in self._system.listStatus(path))
        return []

    def size(self, folder: str) -> Size:
        """Nothing when it isn't there."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with describe_as(f"{folder} can't be measured"), _may_be_gone():
            summary = self._system.getContentSummary(path)
            return Size(summary.getFileCount(), summary.getLength())
        return Size()

    def changed(self, folder: str) -> datetime | None:
        """Return when a file in it or below it was written last, or the folder itself made (UTC); None when it isn't
        there.
        """
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with describe_as(f"{folder} can't be examined"), _may_be_gone():
            newest = self._system.getFileStatus(path).getModificationTime()
            files = self._system.listFiles(path, True)
            while files.hasNext():
                newest = max(newest, files.next().getModificationTime())
            return datetime.fromtimestamp(newest / 1000, UTC)
        return None

    def delete(self, folder: str) -> None:
        """It and all below it; one that isn't there is no error."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with describe_as(f"{folder} can't be deleted"):
            is_deleted = self._system.delete(path, True) or not self._system.exists(path)
        if not is_deleted:
            raise HistoryError(f"{folder} can't be deleted: the file system refused without a reason")

    def move(self, source: str, folder: str, name: str) -> None:
        """Give a folder its place and name at once; nothing may have that name.

        One that isn't there becomes an empty one.
        """
        make = self._jvm.org.apache.hadoop.fs.Path
        target = make(f"{folder}/{name}")
        with describe_as(f"{target.toString()} can't be made"):
            if not self._system.exists(make(source)):
                self._system.mkdirs(target)
                return
            self._system.mkdirs(make(folder))
            is_moved = self._system.rename(make(source), target)
        if not is_moved:
            raise HistoryError(f"{target.toString()} can't be made: the file system refused without a reason")


@contextmanager
def describe_as(what: str) -> Iterator[None]:
    """Raise an error of Spark or Java as a HistoryError of one sentence: what could not be done, and why."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise HistoryError(f"{what}: {cause(error)}") from error


@contextmanager
def _may_be_gone() -> Iterator[None]:
    """Others delete meanwhile, and a writer its own drafts: what isn't there any more is passed over."""
    try:
        yield
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() != "FileNotFoundException":
            raise


def cause(error: Exception) -> str:
    """The innermost cause that Java names, without its stack; else the first line."""
    changed = _TYPE.search(str(error))
    if changed:
        file, column, expected, found = changed.groups()
        return f"{file} holds {column} as {found} where {expected} is expected: another version of offramp wrote it"
    if isinstance(error, ConnectionError):
        return f"Spark has ended ({error}). Start the Spark session or the kernel again"
    messages = re.findall(r"^kit\.errors\.HistoryError: ([^\n]+)", str(error), re.MULTILINE)  # By a task.
    if messages:
        return str(messages[-1])
    causes = re.findall(r"^(?:Caused by)?: (?:[\w$]+\.)*[\w$]+: ([^\n]+)", str(error), re.MULTILINE)
    return causes[-1] if causes else str(error).partition("\n")[0]
