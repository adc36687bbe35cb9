"""No name of a stranger is run by a browser: not in pages, tables, charts and wizards, not beside a real kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import confluent_kafka
import nbformat
import polars as pl
import pytest
from playwright.sync_api import Page, expect

from kit.groups.show.searchable import Searchable
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.presentation.page import render_html
from kit.text.visible import visible
from tests import hostile_faces
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import RUN_MS, NotebookPage, picture
from tests.browser.offline import SCREENSHOTS
from tests.generators import hostile
from tests.notebooks.executed import fill_in
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(600)]

GROUP = f"[prod]orders<img src=x onerror={hostile.RAN}(101)>$x^2$"
CLIENT = f'"><img src=x onerror={hostile.RAN}(102)><script>{hostile.RAN}(103)</script>\x1b[31m'
TOPIC, PARTITIONS = "orders", 3
STAYS = {"max.poll.interval.ms": 1_800_000}
"""The settings of the member, which is not polled any more while a JupyterLab starts and the tests continue."""
WIZARD = """import kit, widgets
shown = widgets.migrate(kit.load_profile(None, {profile!r}), {group!r})
shown"""


@dataclass
class Heard:
    """All that a script of the list could do, and what a page fails over: a call, a dialog, an error."""

    ran: list[object] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.expose_function(hostile.RAN, lambda number: self.ran.append(number))
        page.on("dialog", lambda dialog: (self.ran.append(dialog.message), dialog.dismiss()))


@pytest.fixture
def heard(tab) -> Heard:
    listening = Heard()
    listening.listen(tab.page)
    return listening


OPEN_MS = 120_000
"""One page has every table and chart there is: seconds alone, half a minute on a machine with a load of 30."""


def opened(tab, tmp_path, html: str) -> Page:
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
    tab.page.goto(path.as_uri(), timeout=OPEN_MS)
    tab.page.evaluate("() => new Promise(done => setTimeout(done, 0))")
    return tab.page


@pytest.mark.parametrize("script", [hostile.SCRIPTS[number] for number in (0, 1, 3, 9, 10)])
def test_a_script_would_be_heard(tab, heard, tmp_path, script):
    opened(tab, tmp_path, script)
    wait_until(lambda: tab.page.evaluate("1") and heard.ran, "the script", 60)


def test_no_table_and_no_chart_runs_a_name(tab, heard, tmp_path):
    title = "".join(hostile.SCRIPTS)
    found = list(hostile_faces.names_in(title, hostile_faces.SHORT))
    page = opened(tab, tmp_path, "".join(f"<section>{html}</section>" for _, html in found))
    assert page.locator("section").count() == len(found)
    assert page.locator("img, script, iframe").count() == 0
    assert heard.ran == []


def test_the_searchable_table_runs_no_name(tab, heard, tmp_path):
    frame = pl.DataFrame({"group_id": hostile_faces.SHORT, "lag": range(len(hostile_faces.SHORT))})
    page = opened(tab, tmp_path, Searchable(frame, "".join(hostile.SCRIPTS))._repr_html_())
    page.evaluate("() => { document.querySelector('details').open = true }")
    page.locator(".dt-info").wait_for()
    page.locator(".dt-length select").select_option("1000")
    page.locator(".dt-info", has_text=f"Showing 1 to {len(hostile_faces.SHORT)} of").wait_for()
    assert page.locator("img, iframe").count() == 0
    assert heard.ran == []


@pytest.mark.parametrize("number", range(len(hostile_faces.ALL_IN_ONE)))
def test_no_wizard_and_no_page_runs_a_name(tab, heard, tmp_path, monkeypatch, number):
    (tmp_path / "runs").mkdir()
    wizards = hostile_faces.Wizards(tmp_path / "runs", hostile_faces.ALL_IN_ONE[number], monkeypatch)
    page = opened(tab, tmp_path, "".join(f"<section>{html}</section>" for html in wizards.html.values()))
    page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.locator("section").count() >= len(wizards.html)
    assert page.locator("img, script").count() == 0
    assert heard.ran == []


def test_the_report_of_a_notebook_runs_no_name(tab, heard, tmp_path):
    """Each name as a table's cell, as printed text and as an error."""
    frame = hostile_faces.of_every_type(hostile_faces.SHORT)
    from kit.groups.show import display

    outputs = [
        nbformat.v4.new_output("execute_result", {"text/html": display.table(frame).to_html()}, execution_count=1),
        nbformat.v4.new_output("stream", text="\n".join(hostile_faces.SHORT)),
        nbformat.v4.new_output("error", ename="NotFound", evalue=GROUP, traceback=list(hostile_faces.SHORT)),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=outputs)])
    page = opened(tab, tmp_path, render_html(notebook, GROUP))
    assert page.locator("img, script").count() == 0
    assert page.title() == visible(GROUP)
    assert heard.ran == []


@dataclass
class Site:
    lab: Lab
    jupyter: Jupyter


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    """A real group with such a name, of one real member with such a client id, and a JupyterLab beside it."""
    home = tmp_path_factory.mktemp("hostile")
    with Lab(brokers=1) as lab:
        profile = lab.folder / "offramp.toml"
        profile.write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topics({TOPIC: PARTITIONS})
        settings = {"bootstrap.servers": lab.bootstrap_servers, "group.id": GROUP, "client.id": CLIENT}
        consumer = confluent_kafka.Consumer({**settings, **STAYS, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([TOPIC])
            wait_until(
                lambda: consumer.poll(0.2) is None and len(consumer.assignment()) == PARTITIONS, "its share", 120
            )
            at = [confluent_kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
            consumer.commit(offsets=at, asynchronous=False)
            with jupyter_lab(lab, home) as running:
                fill_in("explore/rebalances", running.notebooks / "rebalances.ipynb", profile_file=str(profile))
                running.keep("wizard.ipynb", WIZARD.format(profile=str(profile), group=GROUP))
                yield Site(lab, running)
        finally:
            consumer.close()


def test_the_wizard_over_a_hostile_group_beside_a_kernel(site, tab, heard):
    notebook = NotebookPage(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 1400})
    notebook.open(site.jupyter.address("wizard.ipynb"))
    notebook.start_all()
    wizard = tab.page.locator(".offramp")
    expect(wizard.get_by_text(visible(CLIENT)).first).to_be_visible(timeout=RUN_MS)
    expect(wizard.get_by_text(f"Migration of group {visible(GROUP)}").first).to_be_visible()
    assert wizard.locator("img, script, mjx-container").count() == 0
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wizard.screenshot(path=SCREENSHOTS / "hostile-wizard.png")
    assert heard.ran == []
    assert tab.elsewhere == []


@soak_only
def test_the_rebalances_of_a_hostile_client_beside_a_kernel(site, tab, heard):
    notebook = NotebookPage(tab.page)
    notebook.open(site.jupyter.address("rebalances.ipynb"))
    notebook.run_all("offset commits")
    notebook.whole()
    cells = notebook.panel.locator("td", has_text=visible(CLIENT))
    assert cells.count() > 0
    assert notebook.outputs.locator("img[src='x'], script, mjx-container").count() == 0
    picture(tab.page, "hostile-rebalances")
    assert heard.ran == []
    assert tab.elsewhere == []
