"""Files → the lines that may matter, numbered, and what each file is: in one pass.

Spark keeps the result on its disks, so that no file is read twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import polars as pl

from kit.errors import NotFound, ReadError
from kit.rebalances.logs.scan import SCHEMA, CandidateScan, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_HELD_HERE = 8 << 20
"""Up to this many bytes of candidates the driver parses them: it is done before tasks would have started."""
ORDER = ("file", "block", "number")
CANDIDATE = (*ORDER, "value")


@dataclass(frozen=True)
class Lines:
    """``n_lines``: of every file; ``before``: how many (``n_before``) of a ``file`` are before each ``block`` of it.
    ``n_candidates``: how many may matter, of all; ``few``: these, in order, unless they are too many for the driver.
    ``damaged``: files read in part. ``odd``: those that hold NUL bytes. ``n_cut``: of a file, lines that were too long.
    """

    n_lines: dict[str, int]
    before: pl.DataFrame
    n_candidates: int
    few: pl.DataFrame | None
    damaged: set[str]
    odd: set[str]
    n_cut: dict[str, int]


def scan_candidates(spark: SparkSession, paths: list[str]) -> DataFrame:
    """The lines that may matter, and a row per block; read at the first use, and never again.

    Raises:
        NotFound: no such file.
    """
    from pyspark.errors import PySparkException

    try:
        sizes = _sizes(spark, paths)
    except PySparkException as error:
        raise NotFound(f"no log at {', '.join(paths)}: {error.getCondition()}") from error
    blocks = tuple(block for file, size in sorted(sizes.items()) for block in blocks_of(file, size))
    scan = CandidateScan(blocks, _HELD_HERE // max(len(blocks), 1))
    return kept_on_disk(spark.range(len(blocks)).mapInArrow(scan, SCHEMA))


def read_lines(scanned: DataFrame) -> Lines:
    """Read all of it, now; raises as :func:`lines_of`."""
    return lines_of(pl.DataFrame(scanned.where("n_lines IS NOT NULL OR is_few").toArrow()))


def lines_of(rows: pl.DataFrame) -> Lines:
    """Return the lines of rows of ``scan.SCHEMA``.

    Raises:
        ReadError: a file can't be read at all.
    """
    account = rows.filter(pl.col("n_lines").is_not_null())
    for file, refusal in account.filter(pl.col("refusal").is_not_null()).select("file", "refusal").rows():
        raise ReadError(f"{file} can't be read: {refusal}")
    n_lines, n_cut = (dict(account.group_by("file").agg(pl.col(name).sum()).rows()) for name in ("n_lines", "n_cut"))
    n_before = pl.col("n_lines").cum_sum().over("file") - pl.col("n_lines")
    before = account.sort("file", "block").select("file", "block", n_before=n_before)
    damaged, odd = (set(account.filter(is_so)["file"]) for is_so in (pl.col("damage").is_not_null(), pl.col("has_nul")))
    n_candidates, few = int(account["n_candidates"].sum()), rows.filter("is_few").select(CANDIDATE).sort(ORDER)
    return Lines(n_lines, before, n_candidates, few if len(few) == n_candidates else None, damaged, odd, n_cut)


def kept_on_disk(frame: DataFrame) -> DataFrame:
    """Computed at its first use and never again; gone when nothing refers to it."""
    from pyspark import StorageLevel

    return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)


def _sizes(spark: SparkSession, paths: list[str]) -> dict[str, int]:
    """File → bytes, by the file systems that Spark knows; an empty one has a name, but no row."""
    files = spark.read.format("binaryFile").load(paths)
    sizes = {_local(row["path"]): row["length"] for row in files.select("path", "length").collect()}
    return {_local(unquote(name)): 0 for name in files.inputFiles()} | sizes


def _local(address: str) -> str:
    """A local file's path, without Spark's scheme, which it writes in two ways."""
    return re.sub("^file:/+", "/", address)
