"""An observation at all groups as the monitor shows it, and a scrape of the exporter: what each takes beside the
reading.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection
from importlib import import_module
from typing import Any

from kit.health.export.metrics import Count, metrics_of
from kit.health.export.readings import Readings
from kit.health.export.serving import Server, page_of
from kit.health.live import Poll, Polls
from tests.bench import kminion
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, Site

LIMIT_S = 0.5
"""The longest time of a refresh; the row has it as its peer."""
SCRAPE_GOAL = 2
_LOOKS = 12
_LAG = b"\nofframp_consumer_group_topic_partition_lag{"


def compared(site: Site) -> Iterator[Row]:
    """Rows of the lab that was filled; the monitor's twelve observations are there before the clock runs."""
    with site.connect(BROKERS_ONLY) as cluster:
        looks = Polls(cluster)
        model = import_module("widgets.live.model").Monitor(cluster.name, looks)  # ipywidgets has no types
        for _ in range(_LOOKS):
            model.refresh()
        again = model.last
        name = f"monitor's refresh, {len(again.partitions):,} partitions vs {LIMIT_S:g} s of a processor"
        yield compare(name, partial(_work, model, again), lambda: LIMIT_S, 1)
        yield from _scrapes(site, Readings(cluster, limit=len(again.partitions), has_times=False))


def _work(model: Any, look: Poll) -> float:
    """Return the seconds of processor: beside a fixed limit, seconds on the wall would show how busy the machine is."""
    gc.collect()
    begun = time.process_time()
    shown = _refresh(model, look)
    seconds = time.process_time() - begun
    expect("rows shown", shown.count("<svg"), 20)
    return seconds


def _refresh(model: Any, look: Poll) -> str:
    """From a snapshot to what is sent to the browser."""
    partitions = Polls.partitions_of(look.snapshot, look.at)
    model.groups = model.of_late.add(partitions)
    html = import_module("widgets.live.html")
    rows, _, _ = model.shown()
    return str(html.groups(rows) + html.summary(model.risks, look.at, model.cost))


def _scrapes(site: Site, readings: Readings) -> Iterator[Row]:
    if kminion.binary() is None:
        say(kminion.HOW_TO_GIVE)
        return
    server = Server("127.0.0.1", 0)
    server.page = page_of(metrics_of(readings.take(), Count(1, 0, 1), 60.0))
    port = int(server.server_address[1])
    with server.serving(), kminion.running(site) as peer:
        ours = timed(partial(_get, port), lambda page: expect("lags exported", page.count(_LAG), site.sizes.committed))
        yield compare("a scrape of all partitions vs KMinion's", ours, peer, SCRAPE_GOAL)


def _get(port: int) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()
    finally:
        connection.close()
