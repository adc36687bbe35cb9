"""``explore/groups.ipynb`` by papermill: groups that nobody uses, since when, and a plan that deletes them if asked."""

from __future__ import annotations

import re
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kit.engine.model.plan import load_plan
from kit.engine.runs_folder import PLANS, runs_beside
from kit.moves.offsets.subject import DELETE_GROUPS
from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, printed, texts
from tests.notebooks.shop import ARCHIVE, LEDGER

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]

SOURCE = NOTEBOOKS / "explore" / "groups.ipynb"
RANDOM, QUIET = "console-consumer-4711", "quiet-report"


def run(shop, output, **parameters):
    return execute(SOURCE, output, profile="lab", profile_file=str(shop.profile_file), **parameters)


@pytest.fixture
def unused(shop):
    """Two groups without a member; gone again, for the tests of the report. The time is that of their commit."""
    committed_at = time.monotonic()
    offsets = [TopicPartition("payments", number, 5) for number in range(3)]
    for group in (RANDOM, QUIET):
        (future,) = shop.lab.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)]).values()
        future.result(30)
    yield committed_at
    for future in shop.lab.admin.delete_consumer_groups([RANDOM, QUIET]).values():
        future.result(30)


def test_unused_groups_are_drawn_listed_and_planned_for(shop, unused, tmp_path):
    notebook = run(shop, tmp_path / "out.ipynb", delete="random name")
    tables = html_tables.of_notebook(notebook)
    rows = {row["group_id"]: row for row in html_tables.with_columns(tables, "evidence") if row["store"] == "kafka"}
    assert {name: rows[name]["class"] for name in (RANDOM, QUIET)} == {RANDOM: "random name", QUIET: "idle"}
    said = re.fullmatch(r"The group has no member; the last commit was (\d+) minutes? ago\.", rows[QUIET]["evidence"])
    assert said, rows[QUIET]
    assert 0 <= int(said[1]) <= (time.monotonic() - unused) / 60
    assert not {LEDGER, ARCHIVE} & set(rows)
    assert [row["example"] for row in html_tables.with_columns(tables, "name_rule")] == [RANDOM]
    first, second = texts(notebook, "image/svg+xml")
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
