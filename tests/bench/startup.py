"""What a person waits for at each verb, new processes on both sides: help, groups of a small cluster, a short log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.lab import state
from kit.lab.java import jars
from kit.logs.local import SMALL
from kit.profile import load_profile
from kit.spark.java import java_command
from tests.bench.clock import Timing, compare, expect, say, timed
from tests.bench.logs import write_log
from tests.bench.rows import Row
from tests.bench.site import Site

_OFFRAMP = (sys.executable, "-m", "kit")
_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_BY_SPARK = """
import sys
from kit.rebalances import read_rebalances
from kit.spark.session import spark_session
print(len(read_rebalances(spark_session(), sys.argv[1], zone="UTC").told()))
"""
_SHARE = 0.001
_ROUNDS = 5


def compared(site: Site) -> Iterator[Row]:
    """``offramp --help``, ``offramp groups`` and ``offramp rebalances``."""
    import_typer = _process([sys.executable, "-c", "import typer"])
    yield compare("offramp --help vs import typer", _process([*_OFFRAMP, "--help"]), import_typer, 1 / 2.5, 2 * _ROUNDS)
    yield from _groups()
    with TemporaryDirectory() as folder:
        for megabytes, goal in ((1, 5), (SMALL >> 20, None)):
            log = Path(folder) / f"{megabytes}.log"
            n_lines, n_events = write_log(log, megabytes, _SHARE)
            say(f"startup: a log of {megabytes} MB, {n_lines:,} lines, {n_events:,} events")
            ours = _process([*_OFFRAMP, "rebalances", "--zone", "UTC", str(log)])
            by_spark = _process([sys.executable, "-c", _BY_SPARK, str(log)])
            yield compare(f"offramp rebalances of a log of {megabytes} MB vs by Spark", ours, by_spark, goal, _ROUNDS)


def _groups() -> Iterator[Row]:
    """On the demo's lab; one that runs already is left running."""
    say("startup: starting the demo's lab")
    was_running = state.load() is not None
    subprocess.run([*_OFFRAMP, "lab", "up"], check=True, stdout=subprocess.DEVNULL)
    try:
        running = state.load()
        assert running is not None
        profile = load_profile(file=Path(running.profile_file))
        tool = [java_command(), "-Xmx256m", "-XX:+UseG1GC", "-Djava.awt.headless=true", "-cp"]
        tool += [jars.class_path(jars.SERVERS), _COMMAND, "--bootstrap-server", profile.bootstrap_servers]
        tool += ["--all-groups", "--describe", "--timeout", "60000"]
        ours = _process([*_OFFRAMP, "groups", "--profile-file", running.profile_file])
        peer = _process(tool)
        yield compare("offramp groups vs kafka-consumer-groups --describe", ours, peer, 3, _ROUNDS)
        lag = _process([*_OFFRAMP, "lag", "--profile-file", running.profile_file])
        yield compare("offramp lag vs kafka-consumer-groups --describe", lag, peer, None, _ROUNDS)
    finally:
        if not was_running:
            subprocess.run([*_OFFRAMP, "lab", "down"], check=True, stdout=subprocess.DEVNULL)


def _process(command: Sequence[str]) -> Timing:
    """A new process; it must end well."""

    def run() -> int:
        ended = subprocess.run(command, capture_output=True, env={**os.environ, "COLUMNS": "160"}, timeout=300)
        return ended.returncode

    run()
    return timed(run, lambda code: expect(f"exit code of {command[-1]}", code, 0))
