"""``report/groups.ipynb`` as ``offramp report`` runs it: true numbers, one page that needs nothing else."""

from __future__ import annotations

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from tests.notebooks import html_tables
from tests.notebooks.html_pages import loaded
from tests.notebooks.shop import ARCHIVE, KAFKA, LEDGER, LOYALTY, ZOOKEEPER

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]  # the first of these makes two reports

N_CHARTS = 4


@pytest.fixture(scope="module")
def page(reports):
    """The second report."""
    return reports.reports[1].html.read_text(encoding="utf-8")


def test_a_page_that_loads_something_would_be_seen():
    page = '<img src="https://a/b"><link href="c.css"><a href="#d"><i style="background:url(//e)"><style>@import "f";'
    assert sorted(loaded(page)) == ["//e", "c.css", "f", "https://a/b"]


def test_the_page_is_one_file_that_loads_nothing(page):
    assert loaded(page) == []
    parsed = BeautifulSoup(page, "html.parser")
    assert parsed.find_all(["iframe", "object", "embed", "link"]) == []
    assert [tag.name for tag in parsed.find_all(True) for name in tag.attrs if name.startswith("on")] == []


def test_it_begins_with_a_brief(shop, reports):
    first, second = [BeautifulSoup(report.html.read_text("utf-8"), "html.parser") for report in reports.reports]
    figures = {box.find("span").get_text(): box.find("b").get_text() for box in second.select(".figure")}
    assert figures["groups"] == str(len(shop.groups))
    assert figures["could not be read"] == "0"
    sentences = [[line.get_text() for line in page.select(".brief li")] for page in (first, second)]
    assert sentences[0][0].startswith("This history holds no earlier report")
    assert re.match(r"Since .* UTC: the lag of 1 group grew, ", sentences[1][0])
    assert "Everything was read." in sentences[1]


def test_its_links_lead_somewhere(page):
    parsed = BeautifulSoup(page, "html.parser")
    places = {tag["id"] for tag in parsed.find_all(id=True)}
    targets = [link["href"].removeprefix("#") for link in parsed.select("a[href]:not(.anchor-link)")]
    assert len(targets) > 8
    assert [each for each in targets if each not in places] == []


def test_the_newest_page_has_a_fixed_name(reports):
    second = reports.reports[1]
    assert second.latest.read_bytes() == second.html.read_bytes()


def test_its_charts_are_drawn_in_it(page):
    charts = BeautifulSoup(page, "html.parser").find_all("svg")
    assert len(charts) == N_CHARTS
    assert all(chart.find("path") for chart in charts)
    ids = re.findall(r'<svg[^>]*>|\bid="([^"]+)"', "".join(map(str, charts)))
    named = [each for each in ids if each]
    assert len(named) == len(set(named)), "two charts share an id"


def test_every_group_has_its_line(shop, page):
    rows = html_tables.searchable(page)
    found = {row["group"]: (row["lag in ZooKeeper, records"], row["lag in Kafka, records"]) for row in rows}
    behind = {name: sum(shop.lag(name).values()) for name in shop.groups}
    assert found == {
        name: tuple(behind[name] if store in group.stores else None for store in (ZOOKEEPER, KAFKA))
        for name, group in shop.groups.items()
    }
    assert behind[LEDGER] == 0
    assert behind[LOYALTY] == 30


def test_the_second_report_reports_the_change_since_the_first(reports):
    before, after = reports.archive_lag
    assert (before, after) == (80, 120)
    for report, expected in zip(reports.reports, ((None, before, None), (before, after, after - before))):
        rows = html_tables.with_columns(html_tables.of_html(report.html.read_text("utf-8")), "lag_before", "change")
        (row,) = [row for row in rows if row["group_id"] == ARCHIVE]
        assert (row["lag_before"], row["lag"], row["change"]) == expected


def test_the_outcome_is_for_programs(shop, reports):
    first, second = reports.reports
    for report in (first, second):
        assert report.outcome["groups"] == len(shop.groups)
        assert report.outcome["read_errors"] == 0
    assert first.outcome["snapshot_id"] != second.outcome["snapshot_id"]


def test_the_executed_notebook_opens_again(reports):
    for report in reports.reports:
        notebook = nbformat.read(report.notebook, as_version=4)
        nbformat.validate(notebook)
        kinds = {output.output_type for cell in notebook.cells for output in cell.get("outputs", ())}
        assert "error" not in kinds
        assert "display_data" in kinds
