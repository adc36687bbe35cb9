"""The wizard in a real JupyterLab moves a real group under load to Kafka coordination and one stage back."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import papermill
import psutil
import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as NotInTime

from kit.lab import Lab
from kit.lab.ports import free_ports
from kit.lab.process import Process, wait_until
from kit.migrate.engine.record import list_runs, load_run
from tests.browser.conftest import SCREENSHOTS, SETTINGS, START_SECONDS, Jupyter, command, environment
from tests.browser.notebook_page import NotebookPage
from tests.interop.group import Group
from tests.notebooks.shop import NOTEBOOKS, ended
from tests.soak import IS_SOAK, soak_only

pytestmark = pytest.mark.timeout(900)

VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2", *(("1.1.1", "0.10.2.2") if IS_SOAK else ()))
GROUP = "shop"
PRESS_MS, STEP_MS, RUN_MS = 1_000, 30_000, 300_000
ENDED = re.compile("[✓✗…] (VERIFIED|UNDONE|STOPPED|FAILED|UNDO_HALTED|STALE)")
THERE, BACK = ("all KC", "OZKCC") if IS_SOAK else ("Kafka coordination", "all MEZKCC")


@dataclass
class Site:
    """A group of three old consumers under load, each in a JVM of its own, and a JupyterLab on its runbook."""

    lab: Lab
    group: Group
    jupyter: Jupyter
    server: Process

    def kernels(self) -> list[psutil.Process]:
        children = psutil.Process(self.server.pid).children(recursive=True)
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
        group = Group(lab, GROUP, {"orders": 12}, 300)
        try:
            for version in VERSIONS:
                group.add_old(version=version)
            group.await_agreed()
            prepare(home, str(profile_file))
            (port,) = free_ports(1)
            running = Jupyter(f"http://127.0.0.1:{port}", secrets.token_hex(16))
            started = lab.supervisor.start(
                "jupyter", command(port, home / "notebooks"), environment(home, running.token)
            )
            with ended(started) as server:
                server.wait_until(running.answers, "its first answer", START_SECONDS)
                yield Site(lab, group, running, server)
        finally:
            group.close()


def prepare(home, profile_file: str) -> None:
    """The runbook with its parameters filled in, not yet run; and settings of its own for JupyterLab."""
    (home / "notebooks").mkdir()
    given = {"profile_file": profile_file, "group_id": GROUP, "soak_s": 3.0, "min_stable_s": 0.0}
    source, target = NOTEBOOKS / "runbook" / "migrate_group.ipynb", home / "notebooks" / "migrate.ipynb"
    papermill.execute_notebook(source, target, given, prepare_only=True, progress_bar=False)
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")


class Wizard:
    """The wizard of a page, used as a person does."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.all = page.locator(".offramp").first  # The list of groups, and within it the wizard of the chosen one.

    def button(self, name: str) -> Locator:
        return self.all.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.all.get_by_label(label, exact=True)

    def expect(self, text: str, within_ms: int = STEP_MS) -> None:
        expect(self.all.get_by_text(text).first).to_be_visible(timeout=within_ms)

    def stage(self) -> str:
        return self.all.locator('[aria-current="step"]').inner_text()

    def expect_stage(self, stage: str) -> None:
        expect(self.all.locator('[aria-current="step"]')).to_contain_text(f". {stage}", timeout=STEP_MS)

    def approve(self, label: str = "Type the group's name", subject: str = GROUP) -> str:
        """Approve by keyboard alone; the digest."""
        digest = self.type_approval(label, subject)
        self.page.keyboard.press("Tab")
        expect(self.button("Approve this plan")).to_be_focused()
        self.page.keyboard.press("Enter")
        self.expect("✓ Approved by")
        return digest

    def type_approval(self, label: str, subject: str) -> str:
        """Type what has to be typed; the digest. The button waits for the whole text."""
        approve = self.button("Approve this plan")
        # What JupyterLab has scrolled out of view has an empty inner text: nothing would be typed.
        digest = self.all.locator("p", has_text="Digest").locator("code").text_content() or ""
        assert len(digest) == 64, digest
        self.expect(f"“Approve this plan” is disabled: type {subject} and the first 8 characters of the digest")
        expect(approve).to_be_disabled()
        self.field(label).focus()
        self.page.keyboard.type(subject)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(digest[:8])
        expect(approve).to_be_enabled(timeout=STEP_MS)
        return digest

    def carry_out(self) -> None:
        self.button("Carry out the plan").click()
        self.expect("is being carried out from here")
        expect(self.button("Stop")).to_be_enabled()
        self.expect_end("✓ VERIFIED")

    def expect_end(self, wanted: str) -> None:
        """Wait for the run's end; another end than the wanted one fails at once, with what the wizard says of it."""
        verdict = self.all.locator("p", has=self.page.locator("strong")).filter(has_text=ENDED).first
        refused = self.all.locator(".offramp-safety .alert").first
        expect(verdict.or_(refused).first).to_be_visible(timeout=RUN_MS)
        assert refused.count() == 0, refused.inner_text()
        expect(verdict).to_contain_text(wanted, timeout=STEP_MS)
        expect(self.all.get_by_text("can't draw this part")).to_have_count(0)

    def goes_on(self) -> bool:
        """Pressed as often as it takes; whether it goes on."""
        if self.button("Resume this run").is_enabled():
            with suppress(NotInTime):  # It was pressed before, and is disabled just now.
                self.button("Resume this run").click(timeout=PRESS_MS)
        return self.all.get_by_text("is being carried out from here").is_visible()

    def picture(self, name: str) -> None:
        """For people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.all.get_by_role("heading", name="Migration of group").scroll_into_view_if_needed()
        self.all.screenshot(path=SCREENSHOTS / f"{name}.png")


def test_forward_and_back_by_the_wizard_with_proof(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2200})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    assert wizard.stage().startswith("1. OZKCC")
    assert list_runs(site.runs) == ()

    wizard.field("To stage").select_option(THERE)
    wizard.expect("the plan and its approval are void")
    expect(wizard.button("Approve this plan")).to_be_disabled()
    expect(wizard.button("Carry out the plan")).to_be_disabled()
    wizard.button("Make the plan").click()
    wizard.expect("✓ The plan can begin now")
    digest = wizard.approve()
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
        wizard.button("Plan the way back").click()
    wizard.expect("✓ The plan can begin now")
    wizard.approve()
    wizard.carry_out()
    wizard.expect_stage(BACK)
    assert [run.state for run in list_runs(site.runs)] == ["VERIFIED", "VERIFIED"]
    assert tab.elsewhere == []

    site.group.everyone = site.lab.consumers(GROUP)
    site.group.await_all_read()
    proof = site.group.summary()
    assert (proof["lost"], proof["overlaps"], proof["doubtful_overlaps"]) == (0, 0, 0)


def test_a_reopened_notebook_shows_the_run_and_the_ways_back_stay_in_view(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1100, "height": 700})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.expect("✓ VERIFIED")
    wizard.expect(list_runs(site.runs)[-1].run_id)
    for label in ("5. The run", "1. Where the group stands"):
        # A click: JupyterLab goes back to the last cell that was run else.
        wizard.all.get_by_role("heading", name=label).click()
        for name in ("Stop", "Plan the way back", "Undo this run"):
            expect(wizard.button(name)).to_be_in_viewport()


@soak_only
def test_a_kernel_that_is_killed_in_the_midst_of_a_run(site, tab):
    """A new kernel shows where the run stands, and goes on with it once the dead one's lock has ended."""
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 1800})
    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.field("To stage").select_option("all MEZKCC" if IS_SOAK else "OZKCC")
    wizard.expect("the plan and its approval are void")  # the cells' plan: the new one is not to be taken for it
    wizard.button("Make the plan").click()
    wizard.expect("✓ The plan can begin now")
    wizard.approve()
    before = {run.run_id for run in list_runs(site.runs)}
    wizard.button("Carry out the plan").click()
    wait_until(lambda: has_acted(site.runs, before), "the first act", 60)
    (kernel,) = site.kernels()
    kernel.kill()
    kernel.wait(10)
    (killed,) = (run for run in list_runs(site.runs) if run.run_id not in before)
    assert killed.state in ("ACTING", "VERIFYING")

    notebook.open(site.jupyter.address("migrate.ipynb"))
    notebook.start_all()
    wizard.expect(killed.run_id)
    wait_until(wizard.goes_on, "the dead one's lock to end", 60)
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
