"""Makes the archive of Spark's classes: ``python -m kit.spark.make_archive``; see :mod:`kit.spark.archive`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import Window, functions as F

from kit.profile import SparkSettings
from kit.spark import archive
from kit.spark.session import start

MAKE_SECONDS = 180


def main(at: Path | None = None) -> None:
    """Make the archive, unless it is there; a Java that can't is no error."""
    target = at or archive.archive()
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        command = [sys.executable, "-c", f"from kit.spark.make_archive import exercise; exercise({str(made)!r})"]
        try:
            reason = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_SECONDS).stderr[-500:]
        except subprocess.TimeoutExpired as error:
            reason = str(error)
        if made.exists():
            made.rename(target)
        else:
            print(f"Java made no archive of Spark's classes, so Spark starts slowly: {reason}")


def exercise(made: str) -> None:
    """Run what most notebooks run; Java writes the archive when it ends."""
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
