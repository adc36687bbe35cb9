"""The monitor's model: search, pages, partitions, pause, failures; a page is drawn, however many groups there are."""

from __future__ import annotations

import pytest

from kit.errors import OfframpError, PartialRead
from kit.lab.process import wait_until
from kit.tables import schema
from kit.tables.polars import rows_of
from tests.models.looks import ToyLooks
from widgets.live import html
from widgets.live.model import PARTITIONS, ROWS, Monitor
from widgets.live.view import MonitorView


@pytest.fixture
def looks() -> ToyLooks:
    return ToyLooks()


@pytest.fixture
def model(looks):
    found = Monitor("lab", looks)
    yield found
    found.close()


def test_stalled_groups_come_first_and_costs_are_summed(model):
    assert model.risks == {"unknown": 50}
    assert model.cost.endswith(" 1 poll so far: 1,214 requests. Rates need 2 polls, and a trend needs 4.")
    model.refresh()
    assert model.risks == {"standing": 25, "unknown": 25}
    assert (
        model.cost
        == "The last observation: 0.2 s, 14 requests to brokers and 1,200 to ZooKeeper. 2 polls so far: 2,428 "
        "requests. Rates need 2 polls, and a trend needs 4."
    )
    rows, first, n = model.shown()
    assert (len(rows), first, n) == (ROWS, 0, 50)
    assert rows["group_id"][0] == "group-00001"
    assert rows["lags"].to_list()[0] == [30, 50]
    for _ in range(2):
        model.refresh()
    assert model.risks == {"standing": 25, "steady": 25}
    assert model.cost.endswith(" 4 polls so far: 4,856 requests.")


def test_search_and_pages(model):
    model.turn(1)
    assert model.shown()[1] == ROWS
    model.turn(5)
    assert (model.shown()[1], len(model.shown()[0])) == (2 * ROWS, 10)
    model.search = "GROUP 0004"
    assert (model.page, model.shown()[2]) == (0, 11)
    model.search = "nobody"
    assert model.shown()[0].is_empty()
    model.turn(-1)
    assert model.page == 0


def test_the_partitions_of_the_opened_group():
    model = Monitor("lab", ToyLooks(3, 150))
    model.refresh()
    model.group_id = "group-00001"
    rows, n = model.partitions()
    assert (len(rows), n) == (PARTITIONS, 150)
    assert set(rows["trend"]) == {"standing"}
    assert rows.row(0, named=True)["written_per_s"] == 1.0
    model.group_id = "gone"
    assert model.partitions()[1] == 0


def test_a_failed_observation_is_reported_and_changes_nothing(model, looks):
    looks.failure = "no broker answers"
    model.refresh()
    assert (model.error, model.last.number) == ("no broker answers", 1)
    with pytest.raises(OfframpError, match="the last poll of lab failed: no broker answers"):
        model.verify()
    looks.failure = ""
    model.refresh()
    assert (model.error, model.last.number) == ("", 2)
    assert model.verify() == "lab, poll 2: 50 groups, everything was read."


def test_unread_parts_are_reported(model, looks):
    failed = rows_of(schema.READ_ERRORS, source="kafka", group_id="g", subject="lab/g", error="refused")
    looks.read_errors = failed
    model.refresh()
    with pytest.raises(PartialRead, match="refused"):
        model.verify()
    looks.read_errors = failed.with_columns(is_unsupported=True)
    model.refresh()
    assert model.verify().endswith("members, offsets and lag are unknown: g.")


def test_a_pause_asks_the_cluster_no_more(model, looks):
    model.every_s = 1.0
    model.start_watching()
    wait_until(lambda: looks.number >= 2, "an observation of the watch", 20)
    model.is_paused = True
    wait_until(lambda: model._one_look.acquire(blocking=False), "the last observation", 20)
    model._one_look.release()
    at_pause = looks.number
    model.start_watching()  # Another view of it, say.
    assert model._watch is None
    model.is_paused = False
    wait_until(lambda: looks.number > at_pause, "an observation after the pause", 20)


def test_only_one_page_is_sent_however_many_groups_there_are():
    small, large = (MonitorView(Monitor("lab", ToyLooks(n))) for n in (40, 3_000))
    sizes = [len(view._rows.value) for view in (small, large)]
    for view in (small, large):
        view.model.close()
    assert large.model.shown()[2] == 3_000
    assert sizes[1] < 1.1 * sizes[0]
    assert len(large._names) == ROWS


def test_a_click_on_a_name_opens_its_partitions(model):
    view = MonitorView(model)
    model.stop_watching()
    assert view._close.layout.display == "none"
    view._names[1].click()
    assert model.group_id == model.shown()[0]["group_id"][1]
    assert "2 partitions" in view._opened.value
    view._close.click()
    assert (model.group_id, view._opened.value) == (None, "")


def test_lines_have_gaps_and_words():
    drawn = html.line([0, None, 10, 20])
    assert drawn.count("<polyline") == 1
    assert drawn.count("<circle") == 1
    assert 'aria-label="recent lag: from 0 to 20"' in drawn
    assert 'aria-label="recent lag: unknown"' in html.line([None, None])
    assert "nan" not in html.line([0, 0])
