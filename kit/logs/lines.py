"""Files → the lines that may matter, numbered; and how many lines each file has: in one pass.

Every line goes through one filter; those that may tell something are grouped each by itself, all others by the block
of the file that they stand in, to be counted. What is kept goes to Spark's disks, so that no file is read twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

from kit.errors import NotFound, ReadError
from kit.logs.entries import is_candidate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FAILED_READS = (PySparkException, Py4JJavaError)
"""Without Spark Connect a failed task is the second."""
_LOCAL = "^file:/+"
"""Spark's scheme of local files, which it writes in two ways."""


@dataclass(frozen=True)
class Lines:
    """``sifted``: what may matter, the rest counted. ``n_lines``: of every file. ``damaged``: files read in part."""

    sifted: DataFrame
    n_lines: dict[str, int]
    damaged: set[str]


def load_lines(spark: SparkSession, paths: list[str]) -> Lines:
    """Read once, now.

    Raises:
        NotFound: no such file.
        ReadError: a file can't be read at all.
    """
    try:
        lines = _text(spark, paths)
        names = _names(lines)
    except PySparkException as error:
        raise NotFound(f"no log at {', '.join(paths)}: {error.getCondition()}") from error
    damaged: set[str] = set()
    try:
        sifted = kept_on_disk(_sifted(lines))
    except _FAILED_READS as error:
        damaged = {name for name in names if not _is_readable(spark, name)}
        if not damaged:
            raise ReadError(f"the logs at {', '.join(paths)} can't be read: {_first_line(error)}") from error
        sifted = kept_on_disk(_sifted(_text(spark, paths, skip_damage=True)))
    counted = sifted.groupBy("file").agg(F.sum("n_lines").alias("n_lines")).collect()
    return Lines(sifted, dict.fromkeys(names, 0) | {row["file"]: row["n_lines"] for row in counted}, damaged)


def kept_on_disk(frame: DataFrame) -> DataFrame:
    """Computed now and never again; gone when nobody holds it."""
    return frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def binary_files(spark: SparkSession, paths: list[str], files: list[str]) -> set[str]:
    """Those of ``files`` that hold NUL bytes."""
    if not files:
        return set()
    file = F.regexp_replace("_metadata.file_path", _LOCAL, "/")
    odd = F.contains(F.col("value").cast("binary"), F.lit(b"\0"))
    lines = _text(spark, paths, skip_damage=True).where(file.isin(files) & odd)
    return {row["file"] for row in lines.select(file.alias("file")).distinct().collect()}


def _names(lines: DataFrame) -> list[str]:
    return sorted(re.sub(_LOCAL, "/", name) for name in lines.inputFiles())


def _text(spark: SparkSession, paths: list[str], skip_damage: bool = False) -> DataFrame:
    return spark.read.option("ignoreCorruptFiles", skip_damage).text(paths)


def _sifted(lines: DataFrame) -> DataFrame:
    """A row per candidate, with its number; and one per block, with its first number and how many others it has."""
    placed = lines.select(
        F.col("_metadata.file_path").alias("name"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("number"),
        F.when(is_candidate(F.col("value")), F.col("value")).alias("value"),
    )
    number = F.when(F.col("value").isNotNull(), F.col("number"))
    blocks = placed.groupBy("name", "block", "value", number.alias("candidate"))
    sifted = blocks.agg(F.min("number").alias("first"), F.count("*").alias("n_lines"))
    return sifted.withColumn("file", F.regexp_replace("name", _LOCAL, "/")).drop("name")


def _is_readable(spark: SparkSession, file: str) -> bool:
    try:
        spark.read.text(file).count()
    except _FAILED_READS:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def with_line_numbers(records: DataFrame) -> DataFrame:
    """``line``, from 1, of the records cut out of sifted lines; the counts of the rest are dropped."""
    before = Window.partitionBy("file").orderBy("block").rangeBetween(Window.unboundedPreceding, -1)
    n_lines = F.when(F.coalesce("record", F.lit(0)) == 0, F.col("n_lines"))
    above = F.coalesce(F.sum(n_lines).over(before), F.lit(0))
    first = F.min("first").over(Window.partitionBy("file", "block"))
    return records.withColumn("line", F.col("candidate") - first + above + 1).where(F.trim("raw") != "")
