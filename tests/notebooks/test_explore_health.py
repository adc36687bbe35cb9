"""``explore/health.ipynb`` by papermill: what the shop's groups are behind, since when, and what Burrow's rules say."""

from __future__ import annotations

import pytest

from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, texts
from tests.notebooks.shop import ALERTS, ARCHIVE, LEDGER, LOYALTY
from tests.soak import IS_SOAK

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]

SOURCE = NOTEBOOKS / "explore" / "health.ipynb"


@pytest.fixture(scope="module")
def explored(shop, request, tmp_path_factory):
    """It chooses the group itself. In the soak's form with the history of two reports, for which it starts Spark."""
    output = tmp_path_factory.mktemp("health") / "out.ipynb"
    history = request.getfixturevalue("reports").reports[0].html.parents[1] / "history" if IS_SOAK else ""
    given = {"profile": "lab", "profile_file": str(shop.profile_file), "over_s": 3.0, "history": str(history)}
    return execute(SOURCE, output, **given)


def test_groups_that_are_stalled_come_first_with_their_age_and_evidence(shop, explored):
    rows = html_tables.with_columns(html_tables.of_notebook(explored), "group_id", "age", "status", "evidence")
    found = {row["group_id"]: row for row in rows if row["lag"]}
    assert set(found) == {LOYALTY, ARCHIVE}
    assert [row["group_id"] for row in rows[-2:]] == sorted((ALERTS, LEDGER))
    for name, row in found.items():
        assert row["lag"] == sum(shop.lag(name).values())
        assert row["status"] == "STOP"
        assert "records wait" in row["evidence"]
        assert " s" in row["age"] or "min" in row["age"]
        assert row["closed_in"] == "never at this rate"
        assert " d" in row["unread_deleted_in"]


def test_the_worst_group_is_shown_by_partition_and_over_its_history(shop, explored):
    tables = html_tables.of_notebook(explored)
    worst = html_tables.with_columns(tables, "group_id", "age", "status", "evidence")[0]["group_id"]
    rows = html_tables.with_columns(tables, "partition", "read_per_s", "evidence")
    stores, topic = shop.groups[worst].stores, shop.groups[worst].topic
    assert sorted((row["store"], row["topic"], row["partition"], row["lag"]) for row in rows) == sorted(
        (store, topic, partition, behind) for store in stores for partition, behind in shop.lag(worst).items()
    )
    charts = texts(explored, "image/svg+xml")
    titles = ["Age of the oldest", f"Lag of {worst}"]
    titles += [f"rules said of {worst}", "The largest lag"] * IS_SOAK
    assert [next(title for title in titles if title in chart) for chart in charts] == titles
    assert "everything was read" in explored.cells[-1].outputs[0].text
