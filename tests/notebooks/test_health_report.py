"""``report/health.ipynb`` by papermill over a history whose incidents are known: who, from when to when, how bad."""

from __future__ import annotations

import re

import papermill
import pytest
from bs4 import BeautifulSoup

from kit.lab.lab import QUICK_SPARK
from tests.generators import health_history
from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, printed, texts
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(600)

SOURCE = NOTEBOOKS / "report" / "health.ipynb"
MINUTES = 240
PROFILE = f'[clusters.lab]\nbootstrap_servers = "127.0.0.1:1"\n{QUICK_SPARK}'


def halted(minute: int) -> int:
    """From minute 100 to 160 it commits nothing; at 170 it has caught up."""
    if minute < 100 or minute >= 170:
        return 100 * minute
    return 10_000 if minute < 160 else 10_000 + 700 * (minute - 160)


def run(folder, output, **parameters):
    profile_file = output.parent / "offramp.toml"
    profile_file.write_text(PROFILE)
    return execute(SOURCE, output, history=str(folder), profile_file=str(profile_file), **parameters)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("health")
    groups = {
        ("steady", "kafka"): lambda minute: 100 * minute - 5 if minute else 0,
        ("halted", "kafka"): halted,
        ("dead", "kafka"): lambda minute: 100 * min(minute, 180),
        ("moved", "zookeeper"): lambda minute: 3,
        ("moved", "kafka"): lambda minute: 100 * minute,
    }
    health_history.write(folder / "history", MINUTES, groups, holes=frozenset(range(40, 60)))
    return run(folder / "history", folder / "out.ipynb", target_age_s=600.0, holes="t")


@pytest.fixture(scope="module")
def folder_of_two_days(tmp_path_factory):
    """26 hours; a group stops after 24, another one is silent for an hour with a lag that is no trouble."""
    folder = tmp_path_factory.mktemp("long") / "history"
    groups = {
        ("steady", "kafka"): lambda minute: 100 * minute,
        ("halted", "kafka"): lambda minute: 100 * minute if minute < 100 or minute >= 160 else 10_000,
        ("dead", "kafka"): lambda minute: 100 * min(minute, 1440),
    }
    looks = frozenset(range(0, 1560, 10))
    health_history.write(folder, 1560, groups, holes=frozenset(range(1560)) - looks)
    return folder


def minute_of(text: str) -> int:
    found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text)
    assert found
    at = health_history.datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S")
    return round((at.replace(tzinfo=health_history.UTC) - health_history.START).total_seconds() / 60)


def test_each_incident_has_its_begin_and_its_end(made):
    rows = html_tables.with_columns(html_tables.of_notebook(made), "begin", "end")
    found = {row["group_id"]: [minute_of(row[name]) for name in ("begin", "alarm", "end")] for row in rows}
    assert found.keys() == {"halted", "dead"}
    # Burrow's window is ten looks of two minutes: the alarm comes when the silence is longer than that.
    begin, alarm, end = found["halted"]
    assert begin == 100
    assert 118 <= alarm <= 122
    assert 160 <= end <= 170
    begin, alarm, end = found["dead"]
    assert (begin, end) == (180, MINUTES)
    assert 198 <= alarm <= 202


def test_the_brief_names_them_the_period_and_its_hole(made):
    (page,) = [text for text in texts(made, "text/html") if 'class="brief"' in text]
    told = [line.get_text() for line in BeautifulSoup(page, "html.parser").select("li")]
    assert told[0].startswith("From 2026-11-22 22:00:00 UTC to 2026-11-23 02:00:00 UTC, one observation per 2 min.")
    assert "The longest gap is 22 min" in told[0]
    assert any(line.startswith("halted: from ") and "1 partition, up to " in line for line in told)
    assert any(line.startswith("dead: from ") and "has not ended" in line for line in told)
    assert told[-1] == "2 of 4 groups were always within 1,000 records."


def test_each_incident_has_its_cause_with_evidence(made):
    rows = html_tables.with_columns(html_tables.of_notebook(made), "cause", "evidence")
    assert {row["group_id"]: row["cause"] for row in rows} == dict.fromkeys(("halted", "dead"), "no members")
    (outcome,) = texts(made, "application/vnd.offramp.outcome+json")
    assert {row["group_id"] for row in outcome["incidents"]} == {"halted", "dead"}


@soak_only
def test_hours_select_the_groups_to_read_over_more_than_a_day(folder_of_two_days, tmp_path):
    """Also of a silence of less than two hours with a lag below the target, as that of ``halted`` is."""
    given = {"hours": 30.0, "target_lag": 7000, "target_age_s": 600.0}
    notebook = run(folder_of_two_days, tmp_path / "out.ipynb", **given)
    assert "27 hours made again; of 2 groups the observations are read." in printed(notebook)
    tables = html_tables.of_notebook(notebook)
    incidents = html_tables.with_columns(tables, "begin", "end")
    begins = {row["group_id"]: minute_of(row["begin"]) for row in incidents}
    assert begins == {"dead": 1440, "halted": 100}
    (end,) = [minute_of(row["end"]) for row in incidents if row["group_id"] == "halted"]
    assert end == 160
    within = {
        row["group_id"]: float(row["within_percent"]) for row in html_tables.with_columns(tables, "within_percent")
    }
    assert within["steady"] == within["halted"] == 100
    assert within["dead"] == pytest.approx(100 * (1 - 40 / 1560), abs=0.01)  # by its observations: over from 1520 on
    young = {row["group_id"]: float(row["young_percent"]) for row in html_tables.with_columns(tables, "young_percent")}
    assert young["steady"] == 100
    assert 80 < young["dead"] < 100


def test_no_group_is_called_late_where_offsets_may_be_no_records(made):
    """Without ``holes`` the same silence makes ``dead`` late: see the report on more than a day."""
    rows = html_tables.with_columns(html_tables.of_notebook(made), "young_percent")
    assert {row["group_id"]: float(row["young_percent"]) for row in rows}["dead"] == 100
    assert "Logs with holes: those of t. There no record is said to be older." in printed(made)


def test_shares_are_of_the_time(made):
    rows = html_tables.with_columns(html_tables.of_notebook(made), "within_percent")
    within = {row["group_id"]: float(row["within_percent"]) for row in rows}
    assert within["steady"] == within["moved"] == 100
    over = [
        minute
        for minute in range(0, MINUTES, 2)
        if minute not in range(40, 60) and 100 * minute - halted(minute) > 1000
    ]
    assert within["halted"] == pytest.approx(100 * (1 - 2 * len(over) / MINUTES), abs=0.01)


def test_its_pictures(made):
    timeline, heatmap = texts(made, "image/svg+xml")
    assert "STOP" in timeline
    assert "halted · t-0" in timeline
    assert "steady" not in timeline
    assert "steady" in heatmap
    assert "moved" in heatmap


def test_it_ends_with_everything_read(made):
    assert "everything was read" in made.cells[-1].outputs[0].text


def test_without_a_history_it_reports_it(tmp_path):
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        run(tmp_path / "nothing", tmp_path / "out.ipynb")
    assert raised.value.ename == "HistoryError"
    assert "To begin one: offramp snapshot" in raised.value.evalue
