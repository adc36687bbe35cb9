"""The wizard for offsets in a real JupyterLab copies a group's offsets from ZooKeeper to Kafka, and takes them back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient
from playwright.sync_api import expect

from kit.engine.model.record import list_runs
from kit.lab import Lab
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.browser.wizard import Wizard
from tests.notebooks.executed import fill_in
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(600)

GROUP, TOPIC = "ledger", "orders"
IN_ZOOKEEPER = {0: 40, 1: 60, 2: 900, 3: 25}
"""One of them is beyond its log's end, 100."""
IN_KAFKA = {0: 30}


@dataclass
class Site:
    """A group whose offsets in Kafka are behind, or not there; and a JupyterLab on the runbook."""

    lab: Lab
    zookeeper: KazooClient
    jupyter: Jupyter

    def in_kafka(self) -> dict[int, int]:
        """By a client of its own; a partition without a committed offset is left out."""
        with closing(self._client()) as consumer:
            found = consumer.committed([TopicPartition(TOPIC, number) for number in IN_ZOOKEEPER], timeout=20)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def commit(self) -> None:
        for number, offset in IN_ZOOKEEPER.items():
            self.zookeeper.create(offset_path(number), str(offset).encode(), makepath=True)
        with closing(self._client()) as consumer:
            consumer.commit(offsets=[TopicPartition(TOPIC, *each) for each in IN_KAFKA.items()], asynchronous=False)

    def _client(self) -> Consumer:
        return Consumer({"bootstrap.servers": self.lab.bootstrap_servers, "group.id": GROUP})

    def in_zookeeper(self) -> dict[int, int]:
        return {number: int(self.zookeeper.get(offset_path(number))[0]) for number in IN_ZOOKEEPER}


def offset_path(number: int) -> str:
    return f"/consumers/{GROUP}/offsets/{TOPIC}/{number}"


@pytest.fixture
def site(tmp_path) -> Iterator[Site]:
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topic(TOPIC, len(IN_ZOOKEEPER))
        lab.produce(TOPIC, 100 * len(IN_ZOOKEEPER))
        zookeeper = KazooClient(lab.zookeeper_connect)
        zookeeper.start(15)
        try:
            with jupyter_lab(lab, tmp_path) as running:
                given = {"groups": GROUP, "topics": TOPIC, "partitions": "0, 1"}
                fill_in(
                    "runbook/move_offsets",
                    running.notebooks / "offsets.ipynb",
                    profile_file=str(profile_file),
                    **given,
                )
                found = Site(lab, zookeeper, running)
                found.commit()
                yield found
        finally:
            zookeeper.stop()
            zookeeper.close()


def test_a_copy_and_its_undo_by_the_wizard(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2400})
    notebook.open(site.jupyter.address("offsets.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.expect("Offsets that change in Kafka: 2.")
    wizard.field("Partitions").fill("")
    wizard.field("Partitions").press("Tab")
    wizard.expect("the plan and its approval are void")
    wizard.expect("ZooKeeper has 4 offsets")
    expect(wizard.button("Execute the plan")).to_be_disabled()
    wizard.button("Make the plan").click()
    wizard.expect("Offsets that change in Kafka: 4.")
    wizard.expect("→ forwards: 1, by 10 records in all")
    wizard.expect("900 is beyond the log's end: lowered to 100")
    wizard.expect("✓ The plan can begin now")
    assert site.in_kafka() == IN_KAFKA
    for theme, is_light in (("JupyterLab Dark", False), ("JupyterLab Light", True)):
        notebook.use_theme(theme, is_light)
        wizard.picture(f"offsets-wizard-{'light' if is_light else 'dark'}")

    digest = wizard.approve(GROUP, "Type the group or “N groups”")
    wizard.button("Execute the plan").click()
    wizard.expect_end("✓ VERIFIED")
    copied = IN_ZOOKEEPER | {2: 100}
    assert (site.in_kafka(), site.in_zookeeper()) == (copied, IN_ZOOKEEPER)
    wizard.expect("Partitions that differ: 1 of 4.")

    expect(wizard.button("Undo this run")).to_be_disabled()
    wizard.field("To undo, type the group or “N groups”").fill(GROUP)
    expect(wizard.button("Undo this run")).to_be_enabled()
    wizard.button("Undo this run").click()
    wizard.expect_end("✓ UNDONE")
    assert (site.in_kafka(), site.in_zookeeper()) == (IN_KAFKA, IN_ZOOKEEPER)
    runs = list_runs(site.lab.folder / "runs")
    assert [(run.state, run.plan_digest) for run in runs] == [("UNDONE", digest)]
    assert tab.elsewhere == []


@pytest.fixture
def today(tmp_path) -> Iterator[Site]:
    """Kafka 4.4, which has no ZooKeeper."""
    with Lab(brokers=1, kraft=True) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topic(TOPIC, len(IN_ZOOKEEPER))
        lab.produce(TOPIC, 100 * len(IN_ZOOKEEPER))
        with jupyter_lab(lab, tmp_path) as running:
            given = {"groups": GROUP, "what": "reset", "target": "kafka", "to": "earliest", "allow_backwards": True}
            fill_in(
                "runbook/move_offsets", running.notebooks / "offsets.ipynb", profile_file=str(profile_file), **given
            )
            found = Site(lab, None, running)
            with closing(found._client()) as consumer:
                consumer.commit(offsets=[TopicPartition(TOPIC, number, 30) for number in range(3)], asynchronous=False)
            yield found


@soak_only
def test_a_reset_and_its_undo_by_the_wizard_without_zookeeper(today, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2400})
    notebook.open(today.jupyter.address("offsets.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.expect("Offsets that change in Kafka: 3.")
    wizard.picture("offsets-wizard-today")
    wizard.approve(GROUP, "Type the group or “N groups”")
    wizard.button("Execute the plan").click()
    wizard.expect_end("✓ VERIFIED")
    assert today.in_kafka() == dict.fromkeys(range(3), 0)
    wizard.field("To undo, type the group or “N groups”").fill(GROUP)
    wizard.button("Undo this run").click()
    wizard.expect_end("✓ UNDONE")
    assert today.in_kafka() == dict.fromkeys(range(3), 30)
    wizard.picture("offsets-wizard-today-undone")
