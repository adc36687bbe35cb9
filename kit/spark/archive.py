"""Spark's classes, loaded and checked once and kept for all later starts: Java's application class-data sharing.

``python -m kit.spark.make_archive`` makes the archive, beside the packages it is of. Spark starts in half the time with
it, and as ever without it: Java passes over an archive that is not of its own version or of these jars.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path

import pyspark

from kit.spark.java import spark_java_home

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@functools.cache
def archive() -> Path:
    """Return where the archive of this Java and this Spark lies, or would lie."""
    key = hashlib.sha256(f"{spark_java_home()} {pyspark.__file__} {pyspark.__version__}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "offramp" / f"spark-{key}.jsa"


def java_options(at: Path | None = None) -> tuple[str, ...]:
    """Return the options of Java that name the archive; none where there is no archive."""
    place = at or archive()
    return (f"-XX:SharedArchiveFile={place}", *_QUIET) if place.exists() else ()
