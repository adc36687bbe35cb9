"""The notebooks in a real JupyterLab, and the report, in a real browser without a network."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.notebook_page import NotebookPage, is_drawn, picture
from tests.notebooks import html_tables
from tests.notebooks.shop import ARCHIVE, KAFKA
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]


def test_a_request_to_another_machine_would_be_noted(tab):
    tab.page.goto("about:blank")
    tab.page.set_content('<img src="http://198.51.100.1/a.png"><img src="https://cdn.example/b.js">')
    assert sorted(tab.elsewhere) == ["http://198.51.100.1/a.png", "https://cdn.example/b.js"]


@pytest.mark.parametrize("cell", ["1 / 0", "import sys; print('a warning', file=sys.stderr)"])
def test_a_red_output_of_a_notebook_ends_a_test(jupyter, tab, cell):
    jupyter.keep("red.ipynb", cell, "print('the end')")
    notebook = NotebookPage(tab.page)
    notebook.open(jupyter.address("red.ipynb"))
    with pytest.raises(AssertionError, match=r"ZeroDivisionError|a warning"):
        notebook.run_all("the end")


def test_exploring_the_group_with_the_most_lag(shop, jupyter, tab):
    notebook = NotebookPage(tab.page)
    notebook.open(jupyter.address("explore/group.ipynb"))
    notebook.run_all("everything was read")
    notebook.whole()
    assert notebook.charts.count() == 3
    assert all(is_drawn(chart) for chart in notebook.charts.locator("img, svg").all())
    rows = html_tables.with_columns(notebook.tables(), "committed_offset", "lag")
    found = {(row["store"], row["topic"], row["partition"]): row["lag"] for row in rows}
    assert found == {(KAFKA, "clicks", partition): lag for partition, lag in shop.lag(ARCHIVE).items()}
    assert min(shop.lag(ARCHIVE).values()) > 0
    notebook.screenshot("explore-light")
    notebook.use_theme("JupyterLab Dark", False)
    notebook.screenshot("explore-dark")
    notebook.use_theme("JupyterLab Light", True)  # the server keeps it for the next test
    assert tab.elsewhere == []
    assert notebook.alignment_of("lag") == {"right"}


@soak_only
def test_the_report_of_all_groups(shop, jupyter, tab):
    notebook = NotebookPage(tab.page)
    notebook.open(jupyter.address("report/groups.ipynb"))
    notebook.run_all("is in the history")
    notebook.whole()
    assert notebook.charts.count() == 4
    assert all(is_drawn(chart) for chart in notebook.charts.locator("img, svg").all())
    every = notebook.panel.locator("details.whole-table")
    every.locator("summary").click()
    for group in shop.groups:
        expect(every.get_by_role("cell", name=group, exact=True)).to_be_visible()
    notebook.screenshot("report-light")
    assert tab.elsewhere == []


def test_the_reports_page(shop, reports, tab):
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    address = reports.reports[1].html.as_uri()
    tab.page.goto(address)
    charts = tab.page.locator("svg")
    assert charts.count() == 4
    assert all(is_drawn(chart) for chart in charts.all())
    every = tab.page.locator("details.whole-table")
    every.locator("summary").click()
    for group in shop.groups:
        expect(every.get_by_role("cell", name=group, exact=True)).to_be_visible()
    picture(tab.page, "report-page")
    assert asked == [address]
    assert tab.elsewhere == []
