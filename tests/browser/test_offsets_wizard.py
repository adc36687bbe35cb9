"""The wizard for offsets in a real JupyterLab copies a group's offsets from ZooKeeper to Kafka, and takes them back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import papermill
import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient
from playwright.sync_api import expect

from kit.lab import Lab
from kit.lab.ports import free_ports
from kit.migrate.engine.record import list_runs
from tests.browser.conftest import SCREENSHOTS, SETTINGS, START_SECONDS, Jupyter, command, environment
from tests.browser.notebook_page import NotebookPage
from tests.browser.test_wizard import STEP_MS, Wizard
from tests.notebooks.shop import NOTEBOOKS, ended

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
        prepare(tmp_path, str(profile_file))
        zookeeper = KazooClient(lab.zookeeper_connect)
        zookeeper.start(15)
        (port,) = free_ports(1)
        running = Jupyter(f"http://127.0.0.1:{port}", secrets.token_hex(16))
        try:
            notebooks = command(port, tmp_path / "notebooks")
            with ended(lab.supervisor.start("jupyter", notebooks, environment(tmp_path, running.token))) as server:
                server.wait_until(running.answers, "its first answer", START_SECONDS)
                found = Site(lab, zookeeper, running)
                found.commit()
                yield found
        finally:
            zookeeper.stop()
            zookeeper.close()


def prepare(home, profile_file: str) -> None:
    """The runbook with its parameters filled in, not yet run; and settings of its own for JupyterLab."""
    (home / "notebooks").mkdir()
    source, target = NOTEBOOKS / "runbook" / "move_offsets.ipynb", home / "notebooks" / "offsets.ipynb"
    given = {"profile_file": profile_file, "groups": GROUP, "topics": TOPIC, "partitions": "0, 1"}
    papermill.execute_notebook(source, target, given, prepare_only=True, progress_bar=False)
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")


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
    expect(wizard.button("Carry out the plan")).to_be_disabled()
    wizard.button("Make the plan").click()
    wizard.expect("Offsets that change in Kafka: 4.")
    wizard.expect("→ forwards: 1, by 10 records in all")
    wizard.expect("900 is beyond the log's end: lowered to 100")
    wizard.expect("✓ The plan can begin now")
    assert site.in_kafka() == IN_KAFKA
    for theme, is_light in (("JupyterLab Dark", False), ("JupyterLab Light", True)):
        notebook.use_theme(theme, is_light)
        picture(wizard, f"offsets-wizard-{'light' if is_light else 'dark'}")

    digest = wizard.approve("Type the group or “N groups”", GROUP)
    wizard.button("Carry out the plan").click()
    wizard.expect("✓ VERIFIED")
    copied = IN_ZOOKEEPER | {2: 100}
    assert (site.in_kafka(), site.in_zookeeper()) == (copied, IN_ZOOKEEPER)
    wizard.expect("Partitions that differ: 1 of 4.")

    expect(wizard.button("Undo this run")).to_be_disabled()
    wizard.field("To undo, type the group or “N groups”").fill(GROUP)
    expect(wizard.button("Undo this run")).to_be_enabled(timeout=STEP_MS)
    wizard.button("Undo this run").click()
    wizard.expect("✓ UNDONE")
    assert (site.in_kafka(), site.in_zookeeper()) == (IN_KAFKA, IN_ZOOKEEPER)
    runs = list_runs(site.lab.folder / "runs")
    assert [(run.state, run.plan_digest) for run in runs] == [("UNDONE", digest)]
    assert tab.elsewhere == []


def picture(wizard: Wizard, name: str) -> None:
    """For people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wizard.all.get_by_role("heading", name="Moving committed offsets").scroll_into_view_if_needed()
    wizard.all.screenshot(path=SCREENSHOTS / f"{name}.png")
