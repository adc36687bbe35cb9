"""The monitor in a real JupyterLab: who is stalled comes first, a name opens its partitions, a pause is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition
from playwright.sync_api import Locator, expect

from kit.errors import LabError
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.notebooks.executed import fill_in
from widgets.live import html
from widgets.live.view import STYLE_OF_MONITOR as MONITOR_STYLE
from widgets.run.style import STYLE

pytestmark = pytest.mark.timeout(600)

SHOWN_MS = 180_000
TOPIC = "orders"
OTHERS = 30
HOSTILE = "<img src=x onerror=alert(1)> " + "long " * 30
SOME_GROUPS = re.compile(r"\d+ ✗ standing")
HEIGHTS = """panel => {
    const top = each => each.getBoundingClientRect().top;
    const names = panel.querySelectorAll('.offramp-names button');
    return [...panel.querySelectorAll('.offramp-rows tbody tr')].map((row, at) => top(row) - top(names[at] ?? panel));
}"""
"""The pixels by which each row begins lower than the name beside it."""
LAST_LOOK = "import threading; [each.join() for each in threading.enumerate() if each.name == 'offramp: watching']"
"""An observation that continues when the monitor is paused is the last one: this waits for its end."""


@dataclass
class Site:
    lab: Lab
    jupyter: Jupyter


def commit(lab: Lab, group: str, offset: int, partitions: int = 4) -> None:
    offsets = [TopicPartition(TOPIC, partition, offset) for partition in range(partitions)]
    with closing(Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group})) as consumer:
        consumer.commit(offsets=offsets, asynchronous=False)


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topic(TOPIC, 4)
        lab.produce(TOPIC, 400)
        for number in range(OTHERS):
            commit(lab, f"idle-{number:02d}", 100)
        commit(lab, "stuck", 10)
        commit(lab, HOSTILE, 60)
        with jupyter_lab(lab, tmp_path) as running:
            fill_in("explore/monitor", running.notebooks / "monitor.ipynb", profile_file=str(profile_file))
            yield Site(lab, running)


def await_rows_beside_names(monitor: Locator, count: int) -> None:
    """Wait until each of so many rows is as high as the name beside it: an observation draws one after the other."""
    found: list[float] = []

    def are_beside() -> bool:
        found[:] = monitor.evaluate(HEIGHTS)
        return len(found) == count and all(-4 <= each <= 4 for each in found)

    try:
        wait_until(are_beside, f"{count} rows beside their names", SHOWN_MS / 1000)
    except LabError as error:
        raise AssertionError(f"{error}\n{found}") from None


PAGE = """<html style="font-size: 16px"><body style="margin: 0; font-family: system-ui, Helvetica, sans-serif">{style}
<div class="offramp offramp-monitor" style="width: 1000px">
<div class="offramp-page" style="display: flex">
<div class="offramp-names"></div><div class="offramp-rows">{rows}</div>
</div></div></body></html>"""
WIDEST = {"store": "zookeeper", "trend": "beyond the end", "lag": 123_456_789, "lag_per_s": 12_345.6,
          "read_per_s": 98_765.4, "written_per_s": 98_765.4, "lags": [1, 5, None, 3], "n_unknown": 20_000}  # fmt: skip
OVERHANG = "rows => rows.scrollWidth - rows.clientWidth"


def test_the_table_fits_a_thousand_pixels(tab):
    tab.page.set_content(PAGE.format(style=STYLE + MONITOR_STYLE, rows=html.groups(pl.DataFrame([WIDEST]))))
    assert tab.page.locator(".offramp-rows").evaluate(OVERHANG) == 0


def test_the_monitor_follows_the_cluster(site, tab):
    producer = site.lab.start_producer(TOPIC, 40)
    reader = site.lab.start_new_consumer("reader", TOPIC)
    notebook = NotebookPage(tab.page)
    notebook.open(site.jupyter.address("monitor.ipynb"))
    notebook.run_all("everything was read")
    notebook.whole()
    monitor = notebook.panel.locator(".offramp-monitor")
    status = monitor.get_by_role("status")
    names = monitor.locator(".offramp-names button:visible")

    # These groups have no members while the topic grows: they are stalled; the search narrows them down.
    expect(status).to_contain_text(SOME_GROUPS, timeout=SHOWN_MS)
    expect(names).to_have_count(20)
    expect(monitor).to_contain_text(f"1–20 of {OTHERS + 3}")
    expect(names.first).to_have_text("stuck")  # The most lag of the stalled groups.
    expect(monitor).to_contain_text(
        re.compile(r"The last observation: \d+\.\d s, \d+ requests to brokers and \d+ to ZooKeeper")
    )
    lines = monitor.locator(".offramp-rows svg")
    expect(lines.last).to_be_in_viewport()
    await_rows_beside_names(monitor, 20)
    monitor.get_by_role("button", name="Next page").click()
    expect(monitor).to_contain_text(f"21–{OTHERS + 3} of {OTHERS + 3}")
    expect(names).to_have_count(OTHERS + 3 - 20)
    search = monitor.get_by_placeholder("part of a group name")
    search.fill("img LONG")
    expect(names).to_have_count(1)
    assert names.first.inner_text().startswith("<img src=x")
    search.fill("reader")
    expect(monitor.locator(".offramp-rows tbody tr")).to_have_count(1)
    expect(names.first).to_have_text("reader")

    # A name opens its partitions, which follow the observations.
    names.first.click()
    expect(monitor).to_contain_text("Group reader: 4 partitions.")
    search.fill("")
    notebook.screenshots("monitor")
    monitor.get_by_role("button", name="Close this group").click()
    expect(monitor).not_to_contain_text("Group reader")

    # Paused, nothing is asked: a group that comes is not seen before it continues.
    monitor.get_by_role("button", name="Pause").click()
    expect(monitor.get_by_role("button", name="Paused")).to_be_visible()
    notebook.execute(LAST_LOOK)
    commit(site.lab, "late-comer", 0)
    search.fill("late-comer")
    expect(monitor).to_contain_text("No name of")
    monitor.get_by_role("button", name="Paused").click()
    expect(names).to_have_count(1, timeout=SHOWN_MS)
    expect(names.first).to_have_text("late-comer")
    assert tab.elsewhere == []
    producer.process.stop()
    reader.stop()
