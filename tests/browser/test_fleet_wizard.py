"""The fleet's wizard in a real JupyterLab toggles real groups in waves, is stopped, and takes all of them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from kit.clients.cluster import connect
from kit.engine.model.record import list_runs
from kit.moves.fleet.plan import FleetPlanRequest
from kit.operations.operations import Operations
from kit.tables.groups import KAFKA
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.browser.wizard import RUN_MS, Wizard
from tests.notebooks.executed import fill_in
from tests.notebooks.fleet_site import GROUPS, FleetSite

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("fleet")]

PAUSE_S, READ_MS = 1800.0, 60_000.0
"""The test stops the run within the first pause. The circuit breaker has tests of its own: here no read is too slow."""


@pytest.fixture
def jupyter(fleet_site: FleetSite, tmp_path: Path) -> Iterator[Jupyter]:
    """On the runbook with its parameters filled in, not yet run."""
    given = {"profile_file": str(fleet_site.profile_file), "runs": str(tmp_path / "runs")}
    with jupyter_lab(fleet_site.lab, tmp_path) as running:
        fill_in("runbook/fleet", running.notebooks / "fleet.ipynb", **given, wave=2, min_stable_s=0.0)
        fleet_site.await_ready()
        yield running


def patient_plan(site: FleetSite, runs: Path) -> str:
    """The digest of a plan with limits that no field of the wizard has."""
    wanted = FleetPlanRequest(KAFKA, wave=2, pause_s=PAUSE_S, min_stable_s=0.0, max_read_ms=READ_MS)
    with connect(site.profile) as cluster:
        return Operations(cluster, runs).make_plan(wanted).digest


def approve(wizard: Wizard, subject: str) -> None:
    wizard.expect("✓ The plan can begin now")
    wizard.approve(subject, "Type “N groups”")


def test_waves_stop_and_all_back_at_once(fleet_site, jupyter, tab, tmp_path):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2400})
    notebook.open(jupyter.address("fleet.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.expect("4 groups; ready for Kafka's assignment: 4")
    wizard.expect("✓ The plan can begin now")
    expect(wizard.button("Execute the plan")).to_be_disabled()
    digest = patient_plan(fleet_site, tmp_path / "runs")
    notebook.execute(f"fleet.load_plan({digest!r}); fleet.wait()")
    wizard.expect(digest)
    approve(wizard, "4 groups")
    wizard.picture("fleet-wizard-plan")
    wizard.button("Execute the plan").click()
    wizard.expect("2 of 4 groups toggled by this run.", RUN_MS)
    wizard.expect(f"watching for {PAUSE_S:g} s")
    in_kafka = {name for name, mode in fleet_site.modes().items() if mode == KAFKA}
    assert in_kafka == set(GROUPS[:2])
    expect(wizard.all.locator("p", has_text="“All back at once” plans")).to_contain_text("2 now")
    for theme, is_light in (("JupyterLab Dark", False), ("JupyterLab Light", True)):
        notebook.use_theme(theme, is_light)
        wizard.picture(f"fleet-wizard-{'light' if is_light else 'dark'}")

    wizard.button("Stop").click()
    wizard.expect("… STOPPED")
    wizard.button("All back at once").click()
    wizard.expect("Toggle 2 groups to ZooKeeper's assignment")
    approve(wizard, "2 groups")
    wizard.button("Execute the plan").click()
    wizard.expect_end("✓ VERIFIED")
    assert KAFKA not in fleet_site.modes().values()
    fleet_site.await_in_kafka(0)
    assert [(run.state, run.subject) for run in list_runs(tmp_path / "runs")] == [
        ("STOPPED", "4 groups"),
        ("VERIFIED", "2 groups"),
    ]
    assert tab.elsewhere == []
