"""The wizard of a move to KRaft in a real JupyterLab: a real cluster to dual write, and back to ZooKeeper.

The long form (``make soak``) goes there twice, to KRaft mode, takes that back, goes again, and finalises, which a
second person approves elsewhere. The controllers of the short form are started by the lab.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from kit.clients.cluster import connect
from kit.engine.model.plan import load_plan
from kit.engine.model.record import list_runs
from kit.engine.runs_folder import plan_files
from kit.lab import Lab
from kit.profile import load_profile
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.kraft_screens import look
from tests.browser.notebook_page import WIDTH, NotebookPage
from tests.browser.offline import Tab
from tests.browser.wizard import RUN_MS, Wizard
from tests.interop.kraft_scene import OVERRIDES, approve_as_bob, vouch
from tests.notebooks import html_tables
from tests.notebooks.executed import fill_in
from tests.notebooks.node_files import collect_node_files
from tests.soak import IS_SOAK, soak_only

pytestmark = pytest.mark.timeout(900)

EXPLORE, PREFLIGHT = "explore/kraft", "runbook/kraft_preflight"
PASSES = dict.fromkeys(("controllers", "dual write", "kraft"), "answers are met")
PASSES |= {"zookeeper": "the answers of some checks are unknown", "finalised": "there is no move to prepare"}
PLANNED = re.compile("Plan [0-9a-f]{8} has")
COMPARED = ("dual write", "kraft")
PHRASES = {"zookeeper": "roll back lab", "finalised": "finalise lab"}
BEGUN = "controllers"


@dataclass
class KraftSite:
    """A cluster whose controllers wait, and a JupyterLab on the notebooks of its move."""

    lab: Lab
    jupyter: Jupyter

    @property
    def runs(self) -> Path:
        return self.lab.folder / "runs"

    @property
    def profile_file(self) -> str:
        return str(self.lab.folder / "offramp.toml")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[KraftSite]:
    home = tmp_path_factory.mktemp("kraft")
    with Lab(brokers=1, controllers=1) as lab:
        (lab.folder / "offramp.toml").write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topic("orders", 2)
        lab.migration.reach(BEGUN)
        with connect(load_profile(file=lab.folder / "offramp.toml")) as cluster:
            vouch(cluster, lab.folder / "runs")
        with jupyter_lab(lab, home) as running:
            yield KraftSite(lab, running)


class KraftWizard(Wizard):
    """The wizard of a page."""

    def approve_move(self, to: str) -> None:
        self.expect("✓ The plan can begin now")
        self.approve(PHRASES.get(to, f"move to {to} lab"), "Type the plan's phrase")

    def plan(self, to: str) -> None:
        self.field("To phase").select_option(to)
        self.make_plan(to)

    def make_plan(self, to: str) -> None:
        """With what has to be overridden; the wizard says when it knows that."""
        if to in OVERRIDES:
            self.field("Override gates").fill(",".join(OVERRIDES[to]))
            self.field("Override gates").press("Enter")
            self.expect(f"The next plan overrides {', '.join(OVERRIDES[to])}.")
        status = self.all.locator('p[role="status"]')
        before = status.text_content() or ""
        self.button("Make the plan").click()
        # Until then the plan before this one is in view, and that it can begin.
        expect(status).not_to_have_text(before)
        expect(status).to_have_text(PLANNED)

    def go(self, to: str) -> None:
        self.plan(to)
        self.approve_move(to)
        self.carry_out()
        self.expect_stage(to)


def opened(site: KraftSite, tab: Tab, name: str, to: str) -> KraftWizard:
    """The runbook with what a plan to that phase has to override, run."""
    target = site.jupyter.notebooks / f"{name}.ipynb"
    fill_in(f"runbook/{name}", target, profile_file=site.profile_file, overrides=",".join(OVERRIDES[to]))
    notebook = NotebookPage(tab.page)
    tab.page.set_viewport_size(
        {"width": WIDTH, "height": 2400}
    )  # A cell that JupyterLab scrolls out of view is not drawn.
    notebook.open(site.jupyter.address(f"{name}.ipynb"))
    notebook.run_all("nothing was changed")
    wizard = KraftWizard(tab.page)
    title = wizard.all.locator("h2").first
    title.scroll_into_view_if_needed()
    title.click()  # JupyterLab goes back to the last cell that was run else.
    return wizard


def test_to_dual_write_and_back(site, tab):
    wizard = opened(site, tab, "kraft_migrate", "dual write")
    wizard.expect_stage("controllers")
    assert list_runs(site.runs) == ()
    expect(wizard.button("Execute the plan")).to_be_disabled()
    wizard.approve_move("dual write")
    wizard.carry_out()
    wizard.expect_stage("dual write")
    wizard.picture("kraft-wizard")
    if IS_SOAK:
        look_around(site, tab, "dual write")

    wizard.button("Plan the rollback").click()
    wizard.expect("✗ R03_known: ")
    expect(wizard.field("Override gates")).to_have_value("")
    wizard.make_plan("zookeeper")
    wizard.approve_move("zookeeper")
    wizard.carry_out()
    wizard.expect_stage("zookeeper")
    assert [run.state for run in list_runs(site.runs)] == ["VERIFIED", "VERIFIED"]
    assert tab.elsewhere == []


@soak_only
@pytest.mark.timeout(1800)  # Ten notebooks are opened beside the wizards.
def test_there_and_back_by_every_notebook_and_to_the_end(site, tab):
    wizard = opened(site, tab, "kraft_migrate", "controllers")
    look_around(site, tab, "zookeeper")
    for phase in ("controllers", "dual write", "kraft"):
        wizard.go(phase)
        look_around(site, tab, phase)
    wizard.field("To undo, type the plan's phrase").fill("move to kraft lab")
    wizard.button("Undo this run").click()
    wizard.expect("✓ UNDONE", RUN_MS)
    wizard.expect_stage("dual write")
    wizard.go("kraft")
    wizard.picture("kraft-wizard-kraft")

    back = opened(site, tab, "kraft_rollback", "zookeeper")
    back.approve_move("zookeeper")
    back.carry_out()
    back.expect_stage("zookeeper")
    back.picture("kraft-wizard-back")

    wizard = opened(site, tab, "kraft_migrate", "controllers")
    for phase in ("controllers", "dual write", "kraft"):
        wizard.go(phase)
    end = opened(site, tab, "kraft_finalise", "finalised")
    end.expect("✓ The plan can begin now")
    end.type_approval("finalise lab", "Type the plan's phrase")
    end.button("Approve this plan").click()
    end.expect("made this plan: another person has to approve it")
    approve_as_bob(site.runs, max(map(load_plan, plan_files(site.runs)), key=lambda each: each.made_at))
    end.expect("✓ Approved by Bob")
    end.carry_out()
    end.expect_stage("finalised")
    expect(end.button("Plan the rollback")).to_be_disabled()
    end.picture("kraft-wizard-finalised")
    look_around(site, tab, "finalised")


def look_around(site: KraftSite, tab: Tab, phase: str) -> None:
    """Beside the wizard: what ``explore/kraft`` and the preflight say of the phase, with the nodes' own files."""
    name, given = phase.replace(" ", "-"), {"profile_file": site.profile_file}
    seen = look(site.jupyter, tab, EXPLORE, f"kraft-{name}", **given)
    assert f"Cluster lab: phase {phase}." in seen.told
    assert seen.n_charts == 2 + (phase in COMPARED)
    assert seen.error == ""
    is_running = phase != "zookeeper"  # The profile names controllers that do not run yet.
    but = "" if is_running else ", except from the controllers, which do not run yet"
    assert f"everything was read{but}." in seen.told
    assert ("the same." in seen.told) == (phase in COMPARED)

    nodes = collect_node_files(site.lab, Path(tempfile.mkdtemp(dir=site.jupyter.home))) if is_running else ""
    told = look(site.jupyter, tab, PREFLIGHT, f"kraft-preflight-{name}", settings_dir=str(nodes), **given)
    assert {"topics", "partitions"} <= {row["what"] for row in html_tables.with_columns(told.tables, "what", "count")}
    assert PASSES[phase] in told.outputs[-1]
