"""``explore/lag_explained.ipynb`` by papermill: each disagreement of the tools in a sentence, a number and a cell."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, printed, texts
from tests.notebooks.shop import LOYALTY
from tests.servers.deletion import delete_topic

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shop")]

SOURCE = NOTEBOOKS / "explore" / "lag_explained.ipynb"
ODD = "odd-offsets"


def run(shop, output, group_id):
    return execute(SOURCE, output, profile="lab", profile_file=str(shop.profile_file), group_id=group_id)


@pytest.fixture
def odd(shop):
    """A group that is before the log's start, beyond its end, and well; gone again, for the tests of the report."""
    admin = shop.lab.admin
    shop.lab.create_topic(ODD, 3)
    shop.lab.produce(ODD, 300)
    offsets = [TopicPartition(ODD, number, offset) for number, offset in ((0, 10), (1, 105), (2, 60))]
    (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(ODD, offsets)]).values()
    future.result(30)
    admin.delete_records([TopicPartition(ODD, 0, 40)])[TopicPartition(ODD, 0)].result(30)
    yield
    admin.delete_consumer_groups([ODD])[ODD].result(30)
    delete_topic(shop.lab, ODD)


def test_disagreements_are_explained_and_drawn(shop, odd, tmp_path):
    notebook = run(shop, tmp_path / "out.ipynb", ODD)
    rows = html_tables.with_columns(html_tables.of_notebook(notebook), "sentence")
    sentences = {row["partition"]: row["sentence"] for row in rows}
    assert set(sentences) == {0, 1}
    assert sentences[0] == (
        "30 records were deleted before the group read them: Kafdrop shows the 60 that still exist; "
        "the other tools show 90."
    )
    assert sentences[1].startswith("The committed offset is 5 records beyond the end of the log: ")
    sums = html_tables.with_columns(html_tables.of_notebook(notebook), "tool", "partitions")
    found = {row["tool"]: row["lag"] for row in sums}
    assert found["kafka-consumer-groups"] == 90 - 5 + 40
    assert found["Burrow"] == 90 + 40
    assert found["Kafdrop"] == 60 + 40
    (chart,) = texts(notebook, "image/svg+xml")
    assert all(text in chart for text in ("Kafdrop", f"{ODD}-0", f"{ODD}-1", "another number", ">60<", ">-5<"))
    assert f"{ODD}-2" not in chart
    assert "everything was read" in notebook.cells[-1].outputs[0].text


def test_a_group_about_which_all_agree(shop, tmp_path):
    notebook = run(shop, tmp_path / "out.ipynb", LOYALTY)
    n_rows = 2 * len(shop.written["payments"])
    assert f"All tools show the same lag: {n_rows} of {n_rows} partitions." in printed(notebook)
    assert len(texts(notebook, "image/svg+xml")) == 1
