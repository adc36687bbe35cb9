"""``explore/group.ipynb`` run by papermill says what the lab knows, and fails when it could not know it."""

from __future__ import annotations

import nbformat
import papermill
import pytest
from kazoo.client import KazooClient

from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, texts
from tests.notebooks.shop import KAFKA, LOYALTY, ZOOKEEPER
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]

SOURCE = NOTEBOOKS / "explore" / "group.ipynb"
UNREADABLE = "unreadable"
N_CHARTS = 3


def run(shop, output, group_id):
    return execute(SOURCE, output, profile="lab", profile_file=str(shop.profile_file), group_id=group_id)


@pytest.fixture(scope="module")
def explored(shop, tmp_path_factory):
    """The executed notebook of the group with both stores."""
    return run(shop, tmp_path_factory.mktemp("explored") / "group.ipynb", LOYALTY)


@pytest.fixture
def unreadable(shop):
    """A group whose only member registered what no other member could read."""
    client = KazooClient(shop.lab.zookeeper_connect)
    client.start(15)
    try:
        client.create(f"/consumers/{UNREADABLE}/ids/{UNREADABLE}_host-1-abc", b"not json", makepath=True)
        yield UNREADABLE
    finally:
        client.delete(f"/consumers/{UNREADABLE}", recursive=True)
        client.stop()
        client.close()


def test_lag_is_what_was_written_and_not_read(shop, explored):
    rows = html_tables.with_columns(html_tables.of_notebook(explored), "committed_offset", "lag")
    committed, ends, lag = shop.committed(LOYALTY), shop.written["payments"], shop.lag(LOYALTY)
    assert set(lag.values()) == {10}
    found = [
        (row["store"], row["topic"], row["partition"], row["committed_offset"], row["log_end_offset"], row["lag"])
        for row in rows
    ]
    assert sorted(found) == sorted(
        (store, "payments", partition, committed[partition], ends[partition], lag[partition])
        for store in (ZOOKEEPER, KAFKA)
        for partition in ends
    )
    assert {row["expired_unread"] for row in rows} == {0}
    assert not any("error" in row for row in rows)


def test_owners_are_the_threads_that_the_consumer_reported(shop, explored):
    rows = html_tables.with_columns(html_tables.of_notebook(explored), "zookeeper_owner", "zookeeper_thread")
    member = shop.groups[LOYALTY].member
    assert {(row["topic"], row["partition"]): row["zookeeper_thread"] for row in rows} == member.group_assignment()
    assert {row["zookeeper_owner"] for row in rows} == {member.consumer_id}
    assert {row["n_owners"] for row in rows} == {1}


def test_both_stores_are_equal(shop, explored):
    rows = html_tables.with_columns(html_tables.of_notebook(explored), "verdict")
    assert [(row["partition"], row["verdict"]) for row in rows] == [(p, "equal") for p in shop.written["payments"]]


def test_charts_are_svg(explored):
    charts = texts(explored, "image/svg+xml")
    assert len(charts) == N_CHARTS
    assert all(chart.lstrip().startswith("<svg") for chart in charts)
    assert sum(f"Lag of {LOYALTY}" in chart for chart in charts) == 1
    assert f"{sum((10, 10, 10))} records behind" in charts[0]


def test_it_ends_with_everything_read(explored):
    assert "everything was read" in explored.cells[-1].outputs[0].text


@soak_only
def test_an_unknown_group_stops_it(shop, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        run(shop, tmp_path / "out.ipynb", "nobody")
    assert raised.value.ename == "NotFound"
    assert "'nobody'" in raised.value.evalue
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert texts(executed, "image/svg+xml") == []


@soak_only
def test_an_error_of_the_read_fails_its_last_cell(shop, unreadable, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        run(shop, tmp_path / "out.ipynb", unreadable)
    assert raised.value.ename == "PartialRead"
    assert "the registration is not JSON" in raised.value.evalue
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert [cell.outputs[0].output_type for cell in executed.cells[-1:]] == ["error"]
