"""Command lines of the lab's Java processes: small heaps, quick starts, one log file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kit.lab.java import class_archive
from kit.spark.java import java_command

FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
    "-XX:-UsePerfData",
    "-XX:MaxMetaspaceSize=128m",
    "-Djava.awt.headless=true",
)
# Version 3.9 logs every request of a deprecated version at INFO: 113 MB in 20 minutes with old consumers.
LOGGING = """log4j.rootLogger=INFO, E
log4j.appender.E=org.apache.log4j.ConsoleAppender
log4j.appender.E.Target=System.err
log4j.appender.E.layout=org.apache.log4j.PatternLayout
log4j.appender.E.layout.ConversionPattern=%d{ISO8601} %p [%t] %c{1} - %m%n
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.kafka.request.logger=WARN
log4j.logger.state.change.logger=WARN
"""


def java(
    class_path: str, main: str, arguments: Sequence[str], heap_mb: int, folder: Path, options: Sequence[str] = ()
) -> list[str]:
    """The command that runs ``main`` with at most ``heap_mb`` MB of heap, logging to standard error."""
    logging = folder / "log4j.properties"
    if not logging.exists():
        logging.write_text(LOGGING, encoding="utf-8")
    flags = [*FLAGS, f"-Xmx{heap_mb}m", f"-Djava.io.tmpdir={folder}", f"-Dlog4j.configuration=file:{logging}", *options]
    flags += class_archive.options(class_path, main)
    return [java_command(), *flags, "-cp", class_path, main, *arguments]


def properties(values: dict[str, str]) -> str:
    """The text of a ``.properties`` file."""
    return "".join(f"{key}={value}\n" for key, value in values.items())
