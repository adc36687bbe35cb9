"""Snapshots kept as Parquet, on any file system Spark reads.

``<folder>/<table>/date=YYYY-MM-DD/snapshot_id=<id>/*.parquet``: plain Spark reads it with
``spark.read.parquet(f"{folder}/committed_offsets")``. Appending a snapshot again replaces its own files and nothing
else. The ``snapshots`` table is written last: what it doesn't list was not written to the end and is not loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kit.errors import HistoryError
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.text.quantity import quantity

_ABOUT = "offramp_history"
_ABOUT_SCHEMA = "schema_version int"


class History:
    """Snapshots in one folder.

    Raises:
        HistoryError: the folder holds a history of another schema version, or can't be read.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder.rstrip("/")
        self._check_version()

    def append(self, snapshot: Snapshot[DataFrame]) -> None:
        """Write one snapshot; again is the same as once.

        Raises:
            HistoryError: it can't be written; what is there of it counts as not written.
        """
        try:
            self._append(snapshot)
        except (PySparkException, Py4JJavaError) as error:
            raise HistoryError(f"{self._folder} can't be written: {_cause(error)}") from error

    def _append(self, snapshot: Snapshot[DataFrame]) -> None:
        if self._read(_ABOUT, _ABOUT_SCHEMA) is None:
            about = self._spark.createDataFrame([(tables.SCHEMA_VERSION,)], _ABOUT_SCHEMA)
            about.coalesce(1).write.mode("overwrite").parquet(self._path(_ABOUT))
        write = self._writer(snapshot)
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(write, [table for table in tables.ALL if table is not tables.SNAPSHOTS]))
        write(tables.SNAPSHOTS)

    def verify(self, snapshot: Snapshot[DataFrame]) -> None:
        """Compare the number of rows of every table with what the history gives back.

        Raises:
            HistoryError: naming the table, what was expected and what was found.
        """
        kept = self._snapshot(snapshot.snapshot_id)
        counts = _counts([getattr(each, table.name) for table in tables.ALL for each in (snapshot, kept)])
        for table in tables.ALL:
            expected, n_kept = next(counts), next(counts)
            if n_kept != expected:
                raise HistoryError(
                    f"{self._path(table.name)}: {snapshot.snapshot_id} has {quantity(expected, 'row')}, "
                    f"the history {n_kept:,}"
                )

    def previous(self, snapshot: Snapshot[DataFrame]) -> Snapshot[DataFrame] | None:
        """The newest complete snapshot of the same cluster and groups before this one; None when there is none."""
        if self._read(tables.SNAPSHOTS.name, tables.SNAPSHOTS.spark_schema) is None:
            return None
        (this,) = snapshot.snapshots.collect()
        older = self.load(tables.SNAPSHOTS).where(
            (F.col("cluster_id") == this.cluster_id)
            & (F.col("group_pattern") == this.group_pattern)
            & (F.col("started_at") < F.lit(this.started_at))
        )
        newest = older.orderBy(F.col("started_at").desc()).select("snapshot_id").head(1)
        return self._snapshot(newest[0].snapshot_id) if newest else None

    def recent_lags(self, snapshot: Snapshot[DataFrame], group_ids: Sequence[str], last: int = 12) -> DataFrame:
        """How the lag of some groups came to be what it is, over the ``last`` snapshots like this one, which is one.

        Columns: group_id, store, started_at (of the snapshot), lag (in records; null where any partition's is).
        """
        (this,) = snapshot.snapshots.collect()
        alike = self.load(tables.SNAPSHOTS).where(
            (F.col("cluster_id") == this.cluster_id)
            & (F.col("group_pattern") == this.group_pattern)
            & (F.col("started_at") <= F.lit(this.started_at))
        )
        newest = alike.orderBy(F.col("started_at").desc()).select("snapshot_id", "started_at").limit(last)
        committed = self._load(tables.COMMITTED_OFFSETS).where(F.col("group_id").isin(list(group_ids)))
        ends = self._load(tables.LOG_OFFSETS).select("snapshot_id", "topic", "partition", "log_end_offset")
        behind = F.greatest(F.col("log_end_offset") - F.col("committed_offset"), F.lit(0))
        lag = F.when(F.col("log_end_offset").isNotNull() & F.col("committed_offset").isNotNull(), behind)
        rows = committed.join(F.broadcast(newest), "snapshot_id")
        rows = rows.join(ends, ["snapshot_id", "topic", "partition"], "left").withColumn("lag", lag)
        is_known = F.count("lag") == F.count(F.lit(1))
        return rows.groupBy("group_id", "store", "started_at").agg(F.when(is_known, F.sum("lag")).alias("lag"))

    def _snapshot(self, snapshot_id: str) -> Snapshot[DataFrame]:
        is_its = F.col("snapshot_id") == snapshot_id
        return Snapshot(snapshot_id, **{table.name: self._load(table).where(is_its) for table in tables.ALL})

    def load(self, table: tables.Table, since: datetime | None = None) -> DataFrame:
        """All complete snapshots' rows of one table, from those observed at or after ``since`` (aware datetime).

        Raises:
            HistoryError: there is no history in the folder.
        """
        complete = self._load(tables.SNAPSHOTS)
        if since is not None:
            complete = complete.where(F.col("observed_at") >= F.lit(since))
        if table is tables.SNAPSHOTS:
            return complete
        return self._load(table).join(complete.select("snapshot_id"), "snapshot_id", "left_semi")

    def _load(self, table: tables.Table) -> DataFrame:
        frame = self._read(table.name, f"{table.spark_schema}, date date")
        if frame is None:
            raise HistoryError(f"there is no history of {table.name} in {self._folder}: append a snapshot first")
        return frame.select(*table.stamped_schema.names)

    def _writer(self, snapshot: Snapshot[DataFrame]) -> Callable[[tables.Table], None]:
        def write(table: tables.Table) -> None:
            frame: DataFrame = getattr(snapshot, table.name)
            dated = frame.withColumn("date", F.to_date("observed_at")).coalesce(1)
            keyed = dated.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
            keyed.partitionBy("date", "snapshot_id").parquet(self._path(table.name))

        return write

    def _check_version(self) -> None:
        about = self._read(_ABOUT, _ABOUT_SCHEMA)
        if about is None:
            return
        kept_versions = {row.schema_version for row in about.collect()}
        if kept_versions != {tables.SCHEMA_VERSION}:
            versions = ", ".join(map(str, sorted(kept_versions))) or "unknown"
            raise HistoryError(
                f"the history in {self._folder} has schema version {versions}, this offramp writes and reads "
                f"{tables.SCHEMA_VERSION}: use another folder, or the version of offramp that wrote it"
            )

    def _read(self, name: str, schema: str) -> DataFrame | None:
        """None when there is nothing at that path; a path that can't be read raises."""
        try:
            frame = self._spark.read.schema(schema).parquet(self._path(name))
            # Spark Connect notices a missing path only when it analyses the frame.
            frame.isLocal()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise HistoryError(f"{self._path(name)} can't be read: {error}") from error
        return frame

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _counts(frames: Sequence[DataFrame]) -> Iterator[int]:
    """How many rows each has, by one job: a job for each costs more than the counting."""
    marked = [frame.select(F.lit(at).alias("frame")) for at, frame in enumerate(frames)]
    counted = reduce(lambda one, other: one.unionAll(other), marked).groupBy("frame").count().collect()
    found = {row["frame"]: row["count"] for row in counted}
    return (found.get(at, 0) for at in range(len(frames)))


def _cause(error: Exception) -> str:
    """The innermost cause that Java names, without its stack; else the first line."""
    causes = re.findall(r"Caused by: (?:[\w$]+\.)*[\w$]+: ([^\n]+)", str(error))
    return causes[-1] if causes else str(error).partition("\n")[0]
