"""Measure the time that a person waits at each verb, new processes on both sides: help, groups of a small cluster,
a short log.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from kit.errors import SetupError
from kit.lab import Lab, state
from kit.lab.java import jars
from kit.profile import load_profile
from kit.rebalances.logs.local import SMALL
from kit.spark.java import java_command
from tests.bench.clock import Timing, compare, expect, say
from tests.bench.logs import write_log
from tests.bench.rows import Row
from tests.bench.site import Site

_OFFRAMP = (sys.executable, "-m", "kit")
_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RELEASE = "KAFKA_HOME"
_HOW_TO_GIVE = f"""{RELEASE} is not set: java starts the class of Kafka's command. People start it by the script
          of a release, which examines each jar and starts JMX. {RELEASE}=<an unpacked release of Kafka> make bench"""
_BY_SPARK = """
import sys
from kit.rebalances.sources import read_rebalances
from kit.spark.session import spark_session
print(len(read_rebalances(spark_session(), sys.argv[1], zone="UTC").describe()))
"""
_SHARE = 0.001
_ROUNDS = 5
_LABS, _PATIENCE_S = 3, 30.0


def compared(site: Site) -> Iterator[Row]:
    """``offramp --help``, ``offramp groups``, a lab in dual write, and ``offramp rebalances``."""
    import_typer = _process([sys.executable, "-c", "import typer"])
    yield compare("offramp --help vs import typer", _process([*_OFFRAMP, "--help"]), import_typer, 1 / 2.5, 2 * _ROUNDS)
    yield from _groups()
    yield _dual_write()
    with TemporaryDirectory() as folder:
        for megabytes, goal in ((1, 5), (SMALL >> 20, None)):
            log = Path(folder) / f"{megabytes}.log"
            n_lines, n_events = write_log(log, megabytes, _SHARE)
            say(f"startup: a log of {megabytes} MB, {n_lines:,} lines, {n_events:,} events")
            ours = _process([*_OFFRAMP, "rebalances", "--zone", "UTC", str(log)])
            by_spark = _process([sys.executable, "-c", _BY_SPARK, str(log)])
            yield compare(f"offramp rebalances of a log of {megabytes} MB vs by Spark", ours, by_spark, goal, _ROUNDS)


def _dual_write() -> Row:
    """Beside the time that a person may be made to wait: from nothing to a cluster in dual write, one node of each."""
    say("startup: a lab from nothing to dual write")
    seconds = []
    for _ in range(_LABS):
        began = time.perf_counter()
        with Lab(brokers=1, controllers=1) as lab:
            lab.migration.reach("dual-write")
            seconds.append(time.perf_counter() - began)
    return Row("a lab of one node of each to dual write vs 30 s", median(seconds), _PATIENCE_S, "s", 1)


def _groups() -> Iterator[Row]:
    """On the demo's lab; one that runs already is left running."""
    say("startup: starting the demo's lab")
    was_running = state.load() is not None
    subprocess.run([*_OFFRAMP, "lab", "up"], check=True, stdout=subprocess.DEVNULL)
    try:
        running = state.load()
        assert running is not None
        profile = load_profile(file=Path(running.profile_file))
        question = ["--bootstrap-server", profile.bootstrap_servers, "--all-groups", "--describe", "--timeout", "60000"]
        for name, command, goal in _peers():
            for by, clock in (("", time.perf_counter), (" by CPU", _cpu_seconds)):
                peer = _process([*command, *question], clock)
                for verb in ("groups", "lag"):
                    ours = _process([*_OFFRAMP, verb, "--profile-file", running.profile_file], clock)
                    yield compare(f"offramp {verb} vs {name} --describe{by}", ours, peer, goal, _ROUNDS)
    finally:
        if not was_running:
            subprocess.run([*_OFFRAMP, "lab", "down"], check=True, stdout=subprocess.DEVNULL)


def _peers() -> Iterator[tuple[str, list[str], float | None]]:
    """The command as people start it, where a release is given; its class alone has the goal where none is."""
    java = [java_command(), "-Xmx256m", "-XX:+UseG1GC", "-Djava.awt.headless=true", "-cp"]
    release = os.environ.get(RELEASE)
    if release:
        script = Path(release) / "bin" / "kafka-consumer-groups.sh"
        if not script.is_file():
            raise SetupError(f"{RELEASE} is {release}, and {script} is not there: name an unpacked release of Kafka")
        yield script.name, [str(script)], 3
    else:
        say(_HOW_TO_GIVE)
    yield "kafka-consumer-groups", [*java, jars.class_path(jars.SERVERS), _COMMAND], None if release else 3


def _process(command: Sequence[str], clock: Callable[[], float] = time.perf_counter) -> Timing:
    """A new process, by this clock; it must end well."""

    def run() -> float:
        started = clock()
        ended = subprocess.run(command, capture_output=True, env={**os.environ, "COLUMNS": "160"}, timeout=300)
        seconds = clock() - started
        expect(f"exit code of {command[-1]}", ended.returncode, 0)
        return seconds

    run()
    return run


def _cpu_seconds() -> float:
    """Return the processor time of all processes that this one has waited for: on a busy machine the truer clock."""
    spent = os.times()
    return spent.children_user + spent.children_system
