"""Files → the lines that may matter, numbered; and an account of what each file is: in one pass.

What is kept goes to Spark's disks, so that no file is read twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import polars as pl
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

from kit.errors import NotFound, ReadError
from kit.logs.sifting import SCHEMA, Sift, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Lines:
    """``sifted``: what may matter, and a row per block. ``n_lines``: of every file. ``damaged``: files read in part.
    ``odd``: those that hold NUL bytes."""

    sifted: DataFrame
    n_lines: dict[str, int]
    damaged: set[str]
    odd: set[str]


def load_lines(spark: SparkSession, paths: list[str]) -> Lines:
    """Read once, now.

    Raises:
        NotFound: no such file.
        ReadError: a file can't be read at all.
    """
    try:
        sizes = _sizes(spark, paths)
    except PySparkException as error:
        raise NotFound(f"no log at {', '.join(paths)}: {error.getCondition()}") from error
    blocks = tuple(block for file, size in sorted(sizes.items()) for block in blocks_of(file, size))
    sifted = kept_on_disk(spark.range(len(blocks)).mapInArrow(Sift(blocks), SCHEMA))
    account = pl.DataFrame(sifted.where("n_lines is not null").toArrow())
    for file, refusal in account.filter(pl.col("refusal").is_not_null()).select("file", "refusal").rows():
        raise ReadError(f"{file} can't be read: {refusal}")
    n_lines = account.group_by("file").agg(pl.col("n_lines").sum()).rows()
    damaged, odd = (set(account.filter(is_so)["file"]) for is_so in (pl.col("damage").is_not_null(), pl.col("has_nul")))
    return Lines(sifted, dict(n_lines), damaged, odd)


def kept_on_disk(frame: DataFrame) -> DataFrame:
    """Computed now and never again; gone when nobody holds it."""
    return frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _sizes(spark: SparkSession, paths: list[str]) -> dict[str, int]:
    """File → bytes, by the file systems that Spark knows; what it lists as text has the empty ones too."""
    names = spark.read.text(paths).inputFiles()
    found = spark.read.format("binaryFile").load(paths).select("path", "length").toArrow().to_pylist()
    return {_local(unquote(name)): 0 for name in names} | {_local(row["path"]): row["length"] for row in found}


def _local(address: str) -> str:
    """A local file's path, without Spark's scheme, which it writes in two ways."""
    return re.sub("^file:/+", "/", address)


def with_line_numbers(records: DataFrame) -> DataFrame:
    """``line``, from 1, of the records cut out of sifted lines; the rows of the blocks are dropped."""
    before = Window.partitionBy("file").orderBy("block").rangeBetween(Window.unboundedPreceding, -1)
    above = F.coalesce(F.sum("n_lines").over(before), F.lit(0))
    return records.withColumn("line", F.col("number") + above + 1).where(F.trim("raw") != "")
