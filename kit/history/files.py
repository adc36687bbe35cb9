"""Folders on whatever file system Spark writes to, by Hadoop's own client: Spark can write and read, but not delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kit.errors import HistoryError
from kit.history.store import told_as


@dataclass(frozen=True, slots=True)
class Size:
    """What lies in a folder and below it."""

    n_files: int = 0
    n_bytes: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.n_files + other.n_files, self.n_bytes + other.n_bytes)


class Files:
    """Listing, measuring and deleting folders.

    Raises:
        HistoryError: by Spark Connect, which hands out no file system; or the file system refuses.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        try:
            self._jvm: Any = cast(Any, spark)._jvm
        except PySparkException:
            raise HistoryError(
                f"{folder} can't be kept up by Spark Connect, which can't delete files: use a profile whose [spark] "
                "names no remote"
            ) from None
        with told_as(f"{folder} can't be reached"):
            path = self._jvm.org.apache.hadoop.fs.Path(folder)
            self._system = path.getFileSystem(cast(Any, spark)._jsc.hadoopConfiguration())

    def names(self, folder: str) -> list[str]:
        """Names of what lies in a folder, sorted; none when it isn't there."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with told_as(f"{folder} can't be listed"):
            if not self._system.exists(path):
                return []
            return sorted(status.getPath().getName() for status in self._system.listStatus(path))

    def size(self, folder: str) -> Size:
        """Nothing when it isn't there."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with told_as(f"{folder} can't be measured"):
            if not self._system.exists(path):
                return Size()
            summary = self._system.getContentSummary(path)
            return Size(summary.getFileCount(), summary.getLength())

    def delete(self, folder: str) -> None:
        """It and all below it; one that isn't there is no error."""
        path = self._jvm.org.apache.hadoop.fs.Path(folder)
        with told_as(f"{folder} can't be deleted"):
            is_deleted = self._system.delete(path, True) or not self._system.exists(path)
        if not is_deleted:
            raise HistoryError(f"{folder} can't be deleted: the file system refused, and says no more")
