"""The wizard in a real JupyterLab moves a real group under load to Kafka coordination and one stage back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import TimeoutError as NotInTime, expect

from kit.engine.model.record import list_runs, load_run
from kit.lab import Lab
from kit.lab.process import wait_until
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.browser.wizard import RUN_MS, Wizard
from tests.interop.group import Group
from tests.notebooks.executed import fill_in
from tests.soak import IS_SOAK, soak_only

pytestmark = pytest.mark.timeout(900)

VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2", *(("1.1.1", "0.10.2.2") if IS_SOAK else ()))
GROUP = "shop"
RATE = 100
"""Records per second: members that get no processor for seconds stay within the lag that a plan tolerates."""
SETTINGS = {"zookeeper.session.timeout.ms": "60000"}
"""No member loses its session on a busy machine: that would be an overlap in the proof."""
PRESS_MS = 1_000
THERE, BACK = ("all KC", "OZKCC") if IS_SOAK else ("Kafka coordination", "all MEZKCC")


@dataclass
class Site:
    """A group of three old consumers under load, each in a JVM of its own, and a JupyterLab on its runbook."""

    lab: Lab
    group: Group
    jupyter: Jupyter

    def kernels(self) -> list[psutil.Process]:
        (server,) = (each for each in self.lab.supervisor.processes if each.name == "jupyter")
        children = psutil.Process(server.pid).children(recursive=True)
        return [each for each in children if "ipykernel_launcher" in " ".join(each.cmdline())]

    @property
    def runs(self) -> Path:
        return self.lab.folder / "runs"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("wizard")
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        group = Group(lab, GROUP, {"orders": 12}, RATE)
        try:
            for version in VERSIONS:
                group.add_old(version=version, settings=SETTINGS)
            group.await_agreed()
            given = {"profile_file": str(profile_file), "group_id": GROUP, "soak_s": 3.0, "min_stable_s": 0.0}
            with jupyter_lab(lab, home) as running:
                fill_in("runbook/migrate_group", running.notebooks / "migrate.ipynb", **given)
                yield Site(lab, group, running)
        finally:
            group.close()


def goes_on(wizard: Wizard) -> bool:
    """Pressed as often as it takes; whether the run continues."""
    if wizard.button("Resume this run").is_enabled():
        with suppress(NotInTime):  # It was pressed before, and is disabled just now.
            wizard.button("Resume this run").click(timeout=PRESS_MS)
    return wizard.all.get_by_text("This notebook executes the run").is_visible()


def test_forward_and_back_by_the_wizard_with_proof(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2200})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    expect(wizard.all.locator('[aria-current="step"]')).to_contain_text("1. OZKCC")
    assert list_runs(site.runs) == ()

    wizard.field("To stage").select_option(THERE)
    wizard.expect("the plan and its approval are void")
    expect(wizard.button("Approve this plan")).to_be_disabled()
    expect(wizard.button("Execute the plan")).to_be_disabled()
    wizard.button("Make the plan").click()
    wizard.expect("✓ The plan can begin now")
    digest = wizard.approve(GROUP)
    wizard.carry_out()
    wizard.expect_stage(THERE)
    assert [(run.state, run.plan_digest) for run in list_runs(site.runs)] == [("VERIFIED", digest)]
    expect(wizard.all.get_by_role("link", name="download it")).to_be_visible()
    expect(wizard.all.get_by_text("can't be read or was edited")).to_have_count(0)
    wizard.picture("wizard-light")
    notebook.use_theme("JupyterLab Dark", False)
    wizard.picture("wizard-dark")
    notebook.use_theme("JupyterLab Light", True)

    if IS_SOAK:
        wizard.field("To stage").select_option(BACK)
        wizard.button("Make the plan").click()
    else:
        wizard.button("Plan the rollback").click()
    wizard.expect("✓ The plan can begin now")
    wizard.approve(GROUP)
    wizard.carry_out()
    wizard.expect_stage(BACK)
    assert [run.state for run in list_runs(site.runs)] == ["VERIFIED", "VERIFIED"]
    assert tab.elsewhere == []

    site.group.everyone = site.lab.consumers(GROUP)
    site.group.await_all_read()
    proof = site.group.summary()
    assert (proof["lost"], proof["overlaps"], proof["doubtful_overlaps"]) == (0, 0, 0)


def test_a_reopened_notebook_shows_the_run_and_the_undos_stay_in_view(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1100, "height": 700})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.expect("✓ VERIFIED")
    wizard.expect(list_runs(site.runs)[-1].run_id)
    for label in ("5. The run", "1. Stage of the group"):
        # A click: JupyterLab goes back to the last cell that was run else.
        wizard.all.get_by_role("heading", name=label).click()
        for name in ("Stop", "Plan the rollback", "Undo this run"):
            expect(wizard.button(name)).to_be_in_viewport()


@soak_only
def test_a_kernel_that_is_killed_in_the_midst_of_a_run(site, tab):
    """A new kernel shows where the run stands, and continues with it once the dead one's lock has ended."""
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 1800})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.field("To stage").select_option("all MEZKCC" if IS_SOAK else "OZKCC")
    wizard.expect("the plan and its approval are void")  # the cells' plan: the new one is not to be taken for it
    wizard.button("Make the plan").click()
    wizard.expect("✓ The plan can begin now")
    wizard.approve(GROUP)
    before = {run.run_id for run in list_runs(site.runs)}
    wizard.button("Execute the plan").click()
    wait_until(lambda: has_acted(site.runs, before), "the first act", 120)
    (kernel,) = site.kernels()
    kernel.kill()
    kernel.wait(10)
    (killed,) = (run for run in list_runs(site.runs) if run.run_id not in before)
    assert killed.state in ("ACTING", "VERIFYING")

    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.start_all()
    wizard.expect(killed.run_id)
    wait_until(lambda: goes_on(wizard), "the dead one's lock to end", 120)
    wizard.expect("✓ VERIFIED", RUN_MS)
    (row,) = (run for run in list_runs(site.runs) if run.run_id not in before)
    assert (row.run_id, row.state) == (killed.run_id, "VERIFIED")
    site.group.producer = site.lab.start_producer(list(site.group.topics), 100)
    site.group.everyone = site.lab.consumers(GROUP)
    site.group.await_all_read()
    proof = site.group.summary()
    assert (proof["lost"], proof["overlaps"], proof["doubtful_overlaps"]) == (0, 0, 0)


def has_acted(runs: Path, before: set[str]) -> bool:
    new = [load_run(runs / run.run_id) for run in list_runs(runs) if run.run_id not in before]
    return any(event.event == "acted" for run in new for event in run.events)
