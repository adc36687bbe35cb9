"""``explore/groups.ipynb`` by papermill: groups that nobody uses, since when, and a plan that deletes them if asked."""

from __future__ import annotations

import nbformat
import papermill
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kit.migrate.engine.plan import load_plan
from kit.migrate.offsets.delete_groups import DELETE_GROUPS
from kit.migrate.runs_folder import PLANS, runs_beside
from tests.notebooks import html_tables
from tests.notebooks.shop import ARCHIVE, LEDGER, NOTEBOOKS

pytestmark = pytest.mark.xdist_group("shop")

SOURCE = NOTEBOOKS / "explore" / "groups.ipynb"
RANDOM, QUIET = "console-consumer-4711", "quiet-report"


def run(shop, output, **parameters):
    given = {"profile": "lab", "profile_file": str(shop.profile_file), **parameters}
    papermill.execute_notebook(SOURCE, output, given, cwd=SOURCE.parent, progress_bar=False)
    return nbformat.read(output, as_version=4)


def printed(notebook) -> str:
    return "".join(output.text for cell in notebook.cells for output in cell.get("outputs", ()) if "text" in output)


@pytest.fixture
def unused(shop):
    """Two groups without a member; gone again, for the tests of the report."""
    offsets = [TopicPartition("payments", number, 5) for number in range(3)]
    for group in (RANDOM, QUIET):
        (future,) = shop.lab.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)]).values()
        future.result(30)
    yield
    for future in shop.lab.admin.delete_consumer_groups([RANDOM, QUIET]).values():
        future.result(30)


def test_who_is_unused_is_drawn_listed_and_planned_for(shop, unused, tmp_path):
    notebook = run(shop, tmp_path / "out.ipynb", delete="random name")
    tables = html_tables.of_notebook(notebook)
    rows = {row["group_id"]: row for row in html_tables.with_columns(tables, "evidence") if row["store"] == "kafka"}
    assert {name: rows[name]["class"] for name in (RANDOM, QUIET)} == {RANDOM: "random name", QUIET: "idle"}
    assert rows[QUIET]["evidence"] == "It has no member; the last commit was 0 minutes ago."
    assert not {LEDGER, ARCHIVE} & set(rows)
    assert [row["example"] for row in html_tables.with_columns(tables, "name_rule")] == [RANDOM]
    charts = [
        output.get("data", {}).get("image/svg+xml") for cell in notebook.cells for output in cell.get("outputs", ())
    ]
    first, second = filter(None, charts)
    assert all(text in first for text in ("1 idle", "1 random name", ">kafka<", ">zookeeper<"))
    assert "up to an hour" in second
    text = printed(notebook)
    assert f"Delete group '{RANDOM}' with 3 offsets from kafka" in text
    folder = runs_beside(shop.profile) / PLANS
    plans = [load_plan(file) for file in folder.glob("*.json")]
    assert [plan.targets for plan in plans if plan.kind == DELETE_GROUPS] == [(RANDOM,)]
    assert "everything was read" in text


def test_without_the_topic_the_age_is_unknown_and_nothing_is_planned(shop, unused, tmp_path):
    notebook = run(shop, tmp_path / "out.ipynb", groups=QUIET, offsets_topic=False)
    (row,) = html_tables.with_columns(html_tables.of_notebook(notebook), "evidence")
    assert (row["class"], row["days_since_commit"]) == (None, None)
    assert "No plan: `delete` names no class." in printed(notebook)
