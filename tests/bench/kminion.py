"""KMinion, where a binary of it is given: one scrape is the time of one ``GET /metrics``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from kit.lab import Lab
from kit.lab.ports import free_ports
from kit.lab.process import Process
from tests.bench.clock import Timing, expect, timed
from tests.bench.site import Site

VARIABLE = "KMINION"
HOW_TO_GIVE = f"""{VARIABLE} is not set: the comparison with KMinion is left out. It is a Go program (repository
          redpanda-data/kminion, module github.com/cloudhut/kminion/v2). In a checkout of it:
              go build -o kminion .
          and then: {VARIABLE}=<path of that file> make bench"""
_LAG = b"\nkminion_kafka_consumer_group_topic_partition_lag{"
_START_SECONDS = 30.0
# Its defaults for groups; what we don't read (log folders, topics' configuration) is left out as far as it can be.
_CONFIG = """logger:
  level: warn
kafka:
  brokers: [{brokers}]
minion:
  consumerGroups:
    enabled: true
    scrapeMode: adminApi
    granularity: partition
    allowedGroups: ["/.*/"]
  topics:
    enabled: true
    granularity: partition
    allowedTopics: ["/.*/"]
    infoMetric:
      configKeys: []
  logDirs:
    enabled: false
  endToEnd:
    enabled: false
exporter:
  namespace: kminion
  host: 127.0.0.1
  port: {port}
"""


def binary() -> Path | None:
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else None


@contextmanager
def served(lab: Lab) -> Iterator[tuple[int, Process]]:
    """Start it beside the lab's servers; gives its port, once it is ready."""
    (port,) = free_ports(1)
    config = lab.folder / "kminion.yaml"
    config.write_text(_CONFIG.format(brokers=lab.bootstrap_servers, port=port), encoding="utf-8")
    process = lab.supervisor.start("kminion", [str(binary())], environment={"CONFIG_FILEPATH": str(config)})
    try:
        process.wait_until(partial(_answers, port), "ready", _START_SECONDS)
        yield port, process
    finally:
        process.stop(10)


@contextmanager
def running(site: Site) -> Iterator[Timing]:
    """The timing of a scrape, after the first."""
    with served(site.lab) as (port, process):
        scrape = timed(partial(scraped, port, "/metrics"), partial(_check, site, process))
        scrape()
        yield scrape


def _answers(port: int) -> bool:
    try:
        scraped(port, "/ready")
    except (OSError, HTTPException):
        return False
    return True


def scraped(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise HTTPException(f"{path} was answered with {response.status}")
        return text
    finally:
        connection.close()


def _check(site: Site, process: Process, metrics: bytes) -> None:
    expect(f"lags it exports (its log: {process.last_lines()})", metrics.count(_LAG), site.sizes.committed)
