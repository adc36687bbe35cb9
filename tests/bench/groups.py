"""Groups, members, committed offsets and log ends: our snapshot beside three other tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import OffsetSpec

from kit.groups.snapshot import observe
from kit.lab.java import jars
from kit.spark.java import java_command
from tests.bench import kminion, reader
from tests.bench.clock import Timing, compare, expect, in_turn, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, PARTITIONS, Site, group_name

_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_TIMEOUT_MS = 300_000
_VERBS = ("groups", "lag")
# The options that kafka-run-class.sh gives a tool, with four times the heap: 256 MB is little for 200,000 rows.
_COMMAND_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
_COMMAND_LOGGING = """log4j.rootLogger=WARN, E
log4j.appender.E=org.apache.log4j.ConsoleAppender
log4j.appender.E.Target=System.err
log4j.appender.E.layout=org.apache.log4j.SimpleLayout
"""


def compared(site: Site) -> Iterator[Row]:
    """Ours against kafka-python's calls, KMinion (where one is given) and Kafka's own command line."""
    what = f"{site.sizes.groups:,} groups × {PARTITIONS}"
    with site.connect(BROKERS_ONLY) as cluster:
        ours = timed(lambda: observe(cluster), lambda found: _check_snapshot(site, found))
        ours()
        say(f"{what}: in turn with kafka-python's own calls")
        yield _beside_bare_calls(site, what, ours)
        if kminion.binary() is None:
            say(kminion.HOW_TO_GIVE)
        else:
            say(f"{what}: in turn with KMinion's scrape")
            with kminion.running(site) as scrape:
                yield compare(f"{what} vs KMinion's scrape", ours, scrape, 2)
        say(f"{what}: in turn with kafka-consumer-groups --all-groups --describe")
        yield from _beside_command_line(site, what, ours)


def _check_snapshot(site: Site, found: Any) -> None:
    expect("groups of the snapshot", found.groups.height, site.sizes.groups)
    expect("committed offsets of the snapshot", found.committed_offsets.height, site.sizes.committed)
    expect("unknown log ends of the snapshot", found.log_offsets["log_end_offset"].null_count(), 0)
    expect("errors of the snapshot", found.read_errors.height, 0)


def _beside_bare_calls(site: Site, what: str, ours: Timing) -> Row:
    admin = KafkaAdminClient(bootstrap_servers=site.lab.bootstrap_servers, client_id="bench")
    try:
        bare = timed(lambda: _bare_calls(admin), lambda found: expect("offsets it found", found, site.sizes.committed))
        bare()
        return compare(f"{what} vs kafka-python's admin calls", ours, bare, 1)
    finally:
        admin.close()


def _bare_calls(admin: KafkaAdminClient) -> int:
    """The same four reads as the library's user writes them, into its own dictionaries."""
    by_broker: dict[int, list[str]] = {}
    for node in (broker["broker_id"] for broker in admin.describe_cluster()["brokers"]):
        by_broker[node] = [group["group_id"] for group in admin.list_groups(broker_ids=[node])]
    described: dict[str, Any] = {}
    for node, groups in by_broker.items():
        described |= admin.describe_groups(groups, group_coordinator_id=node)
    offsets = admin.list_group_offsets(list(described))
    partitions = {partition for of_group in offsets.values() for partition in of_group}
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return sum(partition in ends for of_group in offsets.values() for partition in of_group)


def _beside_command_line(site: Site, what: str, ours: Timing) -> Iterator[Row]:
    """A person waits for that command's start too, so ours is also shown as a new process, imports and all."""
    peer = _command_line(site)
    new_process = timed(partial(reader.run, site.profiles, BROKERS_ONLY, reader.SNAPSHOT))
    ways = {"ours": ours, "ours as a new process": new_process, **{verb: _verb(site, verb) for verb in _VERBS}}
    *seconds, peer_seconds = in_turn(f"{what} vs kafka-consumer-groups", {**ways, "peer": peer}, 3)
    yield Row(f"{what} vs kafka-consumer-groups", seconds[0], peer_seconds, "s", 15)
    yield Row(f"{what} vs kafka-consumer-groups, both new processes", seconds[1], peer_seconds, "s", None)
    for verb, verb_seconds in zip(_VERBS, seconds[2:]):
        yield Row(f"offramp {verb}: {what} vs kafka-consumer-groups", verb_seconds, peer_seconds, "s", 8)


def _verb(site: Site, verb: str) -> Timing:
    """The whole command as a new process, every group in a file."""
    output = site.lab.folder / f"offramp-{verb}.txt"
    command = [sys.executable, "-m", "kit", verb, "--profile", BROKERS_ONLY, "--profile-file", str(site.profiles)]

    def run() -> None:
        with output.open("wb") as rows:
            subprocess.run(command, stdout=rows, check=True, timeout=_TIMEOUT_MS / 1000)

    return timed(run, lambda _: expect(f"groups that offramp {verb} printed", _rows(output), site.sizes.groups))


def _command_line(site: Site) -> Timing:
    """A fresh process each time, its rows in a file."""
    logging = site.lab.folder / "tools-log4j.properties"
    logging.write_text(_COMMAND_LOGGING, encoding="utf-8")
    output = site.lab.folder / "kafka-consumer-groups.txt"
    options = [*_COMMAND_OPTIONS, f"-Dlog4j.configuration=file:{logging}"]
    command = [java_command(), *options, "-cp", jars.class_path(jars.SERVERS), _COMMAND]
    command += ["--bootstrap-server", site.lab.bootstrap_servers, "--all-groups", "--describe"]
    command += ["--timeout", str(_TIMEOUT_MS)]

    def run() -> None:
        with output.open("wb") as rows, output.with_suffix(".errors").open("wb") as errors:
            subprocess.run(command, stdout=rows, stderr=errors, check=True, timeout=_TIMEOUT_MS / 1000)

    return timed(run, lambda _: expect("rows it printed", _rows(output), site.sizes.committed))


def _rows(output: Path) -> int:
    first = group_name(0).partition("-")[0] + "-"
    with output.open(encoding="utf-8") as lines:
        return sum(line.startswith(first) for line in lines)
