"""The fleet's wizard in a real JupyterLab toggles real groups in waves, is stopped, and takes all of them back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import papermill
import pytest
from playwright.sync_api import expect

from kit.lab.ports import free_ports
from kit.lab.process import wait_until
from kit.migrate.engine.record import list_runs
from kit.tables.groups import KAFKA
from tests.browser.conftest import SCREENSHOTS, SETTINGS, START_SECONDS, Jupyter, command, environment
from tests.browser.notebook_page import NotebookPage
from tests.browser.test_wizard import RUN_MS, STEP_MS, Wizard
from tests.notebooks.fleet_site import GROUPS, FleetSite
from tests.notebooks.shop import NOTEBOOKS, ended

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("fleet")]


@pytest.fixture
def jupyter(fleet_site: FleetSite, tmp_path: Path) -> Iterator[Jupyter]:
    prepare(fleet_site, tmp_path)
    (port,) = free_ports(1)
    running = Jupyter(f"http://127.0.0.1:{port}", secrets.token_hex(16))
    started = fleet_site.lab.supervisor.start(
        "jupyter", command(port, tmp_path / "notebooks"), environment(tmp_path, running.token)
    )
    with ended(started) as server:
        server.wait_until(running.answers, "its first answer", START_SECONDS)
        yield running


def prepare(site: FleetSite, home: Path) -> None:
    """The runbook with its parameters filled in, not yet run; and settings of its own for JupyterLab."""
    (home / "notebooks").mkdir()
    given = {"profile_file": str(site.profile_file), "runs": str(home / "runs"), "wave": 2, "min_stable_s": 0.0}
    source, target = NOTEBOOKS / "runbook" / "fleet.ipynb", home / "notebooks" / "fleet.ipynb"
    papermill.execute_notebook(source, target, given, prepare_only=True, progress_bar=False)
    settings = home / "config" / "labconfig" / "default_setting_overrides.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")


def approve(wizard: Wizard, subject: str) -> None:
    wizard.expect("✓ The plan can begin now")
    wizard.approve("Type “N groups”", subject)


def picture(wizard: Wizard, name: str) -> None:
    """For people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wizard.all.get_by_role("heading", name="Toggle of the fleet").scroll_into_view_if_needed()
    wizard.all.screenshot(path=SCREENSHOTS / f"{name}.png")


def test_waves_stop_and_all_back_at_once(fleet_site, jupyter, tab, tmp_path):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2400})
    notebook.open(jupyter.address("fleet.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.expect("4 groups; ready for Kafka's assignment: 4")
    expect(wizard.button("Carry out the plan")).to_be_disabled()
    approve(wizard, "4 groups")
    picture(wizard, "fleet-wizard-plan")
    wizard.button("Carry out the plan").click()
    wizard.expect("2 of 4 groups toggled by this run.", RUN_MS)
    wizard.expect("watching for 60 s")
    in_kafka = {name for name, mode in fleet_site.modes().items() if mode == KAFKA}
    assert in_kafka == set(GROUPS[:2])
    expect(wizard.all.locator("p", has_text="“All back at once” plans")).to_contain_text("2 now", timeout=STEP_MS)
    for theme, is_light in (("JupyterLab Dark", False), ("JupyterLab Light", True)):
        notebook.use_theme(theme, is_light)
        picture(wizard, f"fleet-wizard-{'light' if is_light else 'dark'}")

    wizard.button("Stop").click()
    wizard.expect("… STOPPED")
    wizard.button("All back at once").click()
    wizard.expect("Toggle 2 groups to ZooKeeper's assignment")
    approve(wizard, "2 groups")
    wizard.button("Carry out the plan").click()
    wizard.expect("✓ VERIFIED", RUN_MS)
    assert KAFKA not in fleet_site.modes().values()
    wait_until(lambda: fleet_site.n_in_kafka() == 0, "every member follows ZooKeeper's assignment", 30)
    assert [(run.state, run.subject) for run in list_runs(tmp_path / "runs")] == [
        ("STOPPED", "4 groups"),
        ("VERIFIED", "2 groups"),
    ]
    assert tab.elsewhere == []
