"""Everything opens on 10,000 groups of 20 partitions and 2,400 groups in ZooKeeper: a part of ``make soak``.

To fill that lab takes a minute and a half, so no quick run has it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from kit.groups.report import run_report
from kit.health.live import Polls
from kit.profile import load_profile
from tests.bench.site import PARTITIONS, WHOLE, Site, Sizes, filled, group_name
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage, picture
from tests.browser.wizard import Wizard
from tests.notebooks.executed import fill_in
from tests.soak import soak_only

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("size"),
    soak_only,
]

SIZES = Sizes()
REPORT_MB = 5
OPEN_MS = 120_000
GROUP = group_name(7)
OPENED = {
    "runbook/migrate_group": ({"group_id": GROUP}, "OZKCC"),
    "runbook/fleet": ({}, f"{SIZES.groups:,} groups"),
    "runbook/move_offsets": ({"groups": GROUP}, f"ZooKeeper has {PARTITIONS} offsets"),
    "explore/monitor": ({}, f"of {SIZES.groups:,}"),
}
"""The notebooks that open in a browser: their parameters, and a text that each shows of what it read. A wizard can
plan none of them.
"""
EXPLORED: dict[str, dict[str, Any]] = {
    "explore/group": {"group_id": GROUP},
    "explore/lag_explained": {"group_id": GROUP},
    "explore/groups": {},
    "explore/health": {},
}
"""The notebooks that run in a browser to their end: their parameters."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with filled(SIZES) as found:
        yield found


@pytest.fixture(scope="module")
def jupyter(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    home = tmp_path_factory.mktemp("size")
    with jupyter_lab(site.lab, home) as running:
        for name, parameters in (EXPLORED | {name: parameters for name, (parameters, _) in OPENED.items()}).items():
            given = {"profile": WHOLE, "profile_file": str(site.profiles), **parameters}
            if name.startswith("runbook/"):
                given["runs"] = str(home / "runs")
            fill_in(name, running.notebooks / f"{Path(name).name}.ipynb", **given)
        yield running


def listed(site: Site, *words: str) -> list[dict[str, Any]]:
    """The rows of a verb, as JSON."""
    rows: list[dict[str, Any]] = json.loads(
        run(*words, "--profile", WHOLE, "--profile-file", str(site.profiles), "--json")
    )
    return rows


def run(*words: str) -> str:
    """A verb as a new process; what it printed, and how long it took for whoever reads the soak's output."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "kit", *words], capture_output=True, text=True, timeout=600)
    print(f"offramp {' '.join(words[:3])}: {time.monotonic() - started:.1f} s")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_listing_has_every_group(site):
    assert len({row["group_id"] for row in listed(site, "groups")}) == SIZES.groups
    stores = Counter(
        row["store"] for row in listed(site, "lag")
    )  # Left-over offsets of old consumers in Kafka count nowhere.
    assert stores == {"zookeeper": SIZES.registered_groups, "kafka": SIZES.groups - SIZES.registered_groups}
    assert len(listed(site, "lag", "--group", GROUP)) == 2 * PARTITIONS
    assert len(listed(site, "readiness")) == SIZES.groups
    assert listed(site, "ownership") == []
    assert len({row["group_id"] for row in listed(site, "groups", "--idle")}) == SIZES.groups
    assert len(listed(site, "lag", "--time")) == SIZES.committed
    assert len(listed(site, "lag", "--outlook", "--over-s", "5")) == SIZES.committed


def test_an_observation_asks_as_often_as_documented(site):
    with site.connect(WHOLE) as cluster:
        look = Polls(cluster).take()
    print(f"an observation: {look.cost}")
    assert (look.n_requests, look.n_zookeeper_requests) == (45, 123)


def test_metrics_have_every_partition_and_a_plan_every_group(site, tmp_path):
    given = ["--profile", WHOLE, "--profile-file", str(site.profiles)]
    metrics = tmp_path / "all.prom"
    run("export", "--once", "--no-times", "--limit", str(SIZES.committed), "--textfile", str(metrics), *given)
    exported = metrics.read_text(encoding="utf-8")
    assert exported.count("\nofframp_consumer_group_topic_partition_lag{") == SIZES.committed
    planning = ["plan", "delete-groups", "--groups", "bench-.*", "--at-most", str(SIZES.groups)]
    run(*planning, "--runs", str(tmp_path / "runs"), *given)
    assert "deletion" in run("plan", "list", "--runs", str(tmp_path / "runs"), "--json")


def test_two_snapshots_make_a_report_on_health(site, tmp_path):
    given = ["--profile", WHOLE, "--profile-file", str(site.profiles)]
    for _ in range(2):
        run("snapshot", "--history", str(tmp_path / "history"), *given)
    run("history", "report", str(tmp_path / "history"), "--output", str(tmp_path / "reports"), *given)
    (page,) = (tmp_path / "reports").glob("health-*.html")
    assert page.stat().st_size <= REPORT_MB * 1e6


def test_the_report_is_one_page_of_a_size_that_opens(site, tab, tmp_path):
    """The second one, too: it compares with the first."""
    for name in ("first", "second"):
        started, used = time.monotonic(), _cpu_seconds()
        made = run_report(load_profile(WHOLE, site.profiles), tmp_path, ".*")
        size = made.html.stat().st_size / 1e6
        print(f"{name} report: {time.monotonic() - started:.0f} s, {_cpu_seconds() - used:.0f} CPU s, {size:.1f} MB")
        assert made.outcome["groups"] == SIZES.groups
        assert size <= REPORT_MB
    started = time.monotonic()
    tab.page.goto(made.html.as_uri())
    tab.page.get_by_text(f"Groups to search and to sort: {SIZES.groups:,}").wait_for(timeout=OPEN_MS)
    print(f"the page is open after {time.monotonic() - started:.1f} s")
    for theme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=theme)
        picture(tab.page, f"size-report-{theme}")


def _cpu_seconds() -> float:
    """Return the processor time of processes that have ended, the kernel and Spark among them."""
    return sum(os.times()[2:4])


@pytest.mark.parametrize("name", EXPLORED)
def test_a_notebook_to_explore_runs_and_stays_small(jupyter, tab, name):
    notebook, file = NotebookPage(tab.page), f"{Path(name).name}.ipynb"
    notebook.open(jupyter.address(file))
    started = time.monotonic()
    notebook.run_all("everything was read")
    print(f"{name}: {time.monotonic() - started:.0f} s")
    notebook.screenshots(f"size-{Path(name).name}")
    if name == "explore/health":
        first = notebook.outputs.locator("select option").first.inner_text()
        expect(notebook.outputs.filter(has_text=f"group {first.split()[0]}")).to_have_count(1)  # The worst is first.
    tab.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    saved = (jupyter.notebooks / file).read_text(encoding="utf-8")
    assert "everything was read" in saved
    assert len(saved) < REPORT_MB * 1e6


@pytest.mark.parametrize("name", OPENED)
def test_each_wizard_and_the_monitor_open(jupyter, tab, name):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    notebook.open(jupyter.address(f"{Path(name).name}.ipynb"))
    notebook.start_all()
    started = time.monotonic()
    wizard.expect(OPENED[name][1], OPEN_MS)
    print(f"{name}: open after {time.monotonic() - started:.1f} s")
    notebook.screenshots(f"size-{Path(name).name}")
