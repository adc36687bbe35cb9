"""Spark's classes, loaded and checked once and kept for all later starts: Java's application class-data sharing.

``python -m kit.spark_archive`` makes the archive, beside the packages it is of. Spark starts in half the time with it,
and as ever without it: Java passes over an archive that is not of its own version or of these jars.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from kit.java import java_home

MAKE_SECONDS = 180
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@functools.cache
def archive() -> Path:
    """Where the archive of this Java and this Spark lies, or would lie."""
    key = hashlib.sha256(f"{java_home()} {pyspark.__file__} {pyspark.__version__}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "offramp" / f"spark-{key}.jsa"


def java_options() -> tuple[str, ...]:
    """What to tell Java; nothing where there is no archive."""
    return (f"-XX:SharedArchiveFile={archive()}", *_QUIET) if archive().exists() else ()


def main() -> None:
    """Make it, unless it is there; a Java that can't is no error."""
    target = archive()
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        command = [sys.executable, "-c", f"from kit import spark_archive; spark_archive.exercise({str(made)!r})"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_SECONDS).stderr[-500:]
        except subprocess.TimeoutExpired as error:
            told = str(error)
        if made.exists():
            made.rename(target)
        else:
            print(f"Java made no archive of Spark's classes, so Spark starts slowly: {told}")


def exercise(made: str) -> None:
    """Run what most notebooks run; Java writes the archive when it ends."""
    from pyspark import SparkContext
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from kit.profile import SparkSettings
    from kit.spark import start

    options = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={made}"
    spark = start(SparkSettings(conf={"spark.driver.defaultJavaOptions": options}), "archive")
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.createDataFrame(
            [(n, f"group-{n % 3}", float(n)) for n in range(100)], "n long, g string, x double"
        )
        rows.write.partitionBy("g").parquet(f"{folder}/rows")
        kept = spark.read.parquet(f"{folder}/rows").cache()
        sums = kept.groupBy("g").agg(F.sum("n").alias("total"), F.collect_list("x").alias("all"))
        ranked = kept.withColumn("rank", F.row_number().over(Window.partitionBy("g").orderBy("n")))
        joined = ranked.join(sums, "g", "left").where(F.col("g").rlike("^group")).orderBy("n")
        spark.createDataFrame(joined.mapInArrow(lambda batches: batches, joined.schema).toArrow()).count()
        Path(f"{folder}/a.log").write_text("a\n")
        spark.read.text(f"{folder}/a.log").localCheckpoint().collect()
    spark.stop()
    if (gateway := SparkContext._gateway) is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    main()
