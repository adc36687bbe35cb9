"""The Spark session a profile asks for: local, a cluster's master, or Spark Connect."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kit.profile import Profile, SparkSettings
from kit.spark import archive as spark_archive
from kit.spark.java import spark_java_home

_LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Java's slow compiler takes what has run ten times as often as by default: it had half of a short session's time."""
_LOGGING = Path(__file__).with_name("log4j2.properties")
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Lists of a million keys: Spark would hash 128 of them, give up and sort, a third slower than to sort at once.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
}
_LOCAL_DEFAULTS = {
    # Otherwise every Column asks Java some things more, to name the line that made it: a quarter of a plan's time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A hundred by default: a notebook's plans push each other out, and are compiled again at every run.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # polars gives memory back after half a second, and the next range asks for it again: a quarter of a task's time.
    "spark.executorEnv._RJEM_MALLOC_CONF": "dirty_decay_ms:5000",
}


def spark_session(profile: Profile | None = None, app_name: str = "offramp") -> SparkSession:
    """Start, or join, the profile's Spark (``local[*]`` without a profile); its time zone is UTC.

    Raises:
        SetupError: a local Spark is wanted and there is no Java to run it.
    """
    return start(profile.spark if profile is not None else SparkSettings(), app_name)


def start(settings: SparkSettings, app_name: str) -> SparkSession:
    """Start :func:`spark_session`."""
    builder = SparkSession.builder.appName(app_name)
    if settings.remote is not None:
        builder = builder.remote(settings.remote)
    else:
        # Workers otherwise take the first python3 on PATH, which has no pyarrow.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["JAVA_HOME"] = str(spark_java_home())
        builder = builder.master(settings.master)
    is_local = settings.remote is None and settings.master.startswith("local")
    local = _LOCAL_DEFAULTS | {"spark.driver.extraJavaOptions": _java_options()} if is_local else {}
    for key, value in (_DEFAULTS | local | settings.conf).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if settings.remote is None:
        session.sparkContext.setLogLevel("ERROR")
    return session


def _java_options() -> str:
    own = ("-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", *_LATER, f"-Dlog4j2.configurationFile=file:{_LOGGING}")
    options = (*own, *spark_archive.java_options())
    return " ".join(shlex.quote(option) for option in options)
