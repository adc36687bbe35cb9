"""The wizards of protocols in a real JupyterLab move groups to the consumer protocol and back, under load.

One group: there with all members stopped, which is chosen in the wizard, and back one by one. Many: in waves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kit.clients.cluster import connect
from kit.engine.model.record import list_runs
from kit.lab import Lab
from kit.lab.members.new_consumers import NewMember
from kit.profile import load_profile
from tests.browser.jupyter import Jupyter, jupyter_lab
from tests.browser.notebook_page import NotebookPage
from tests.browser.wizard import Wizard
from tests.notebooks.executed import fill_in
from tests.servers.protocol_group import ProtocolGroup, assert_each_once

pytestmark = pytest.mark.timeout(600)

GROUP = "search"


@dataclass
class Site:
    """A group of two classic members under load, and a JupyterLab on the runbook."""

    group: ProtocolGroup
    jupyter: Jupyter


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    tmp_path = tmp_path_factory.mktemp("protocols")
    with Lab(brokers=1, kraft=True) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        with connect(load_profile(file=profile_file)) as cluster, jupyter_lab(lab, tmp_path) as running:
            group = ProtocolGroup(lab, cluster, GROUP)
            group.start([NewMember(GROUP, [GROUP], f"{GROUP}-{number}") for number in range(2)])
            given = {"profile_file": str(profile_file), "group_id": GROUP, "soak_s": 3.0}
            given |= {"clients_ready": True}
            fill_in("runbook/consumer_protocol", running.notebooks / "protocol.ipynb", **given)
            yield Site(group, running)


def test_to_the_consumer_protocol_and_back_by_the_wizard(site, tab):
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2200})
    notebook.open(site.jupyter.address("protocol.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.expect_stage("classic")
    wizard.expect("✓ The plan can begin now")
    wizard.field("Replace members").select_option("stopped")
    wizard.button("Make the plan").click()
    wizard.expect(f"Stop all 2 members of {GROUP}")
    wizard.expect("✓ The plan can begin now")
    wizard.picture("protocol-wizard-stopped")
    digest = wizard.approve(GROUP)
    wizard.carry_out()
    wizard.expect_stage("consumer")
    wizard.picture("protocol-wizard-light")
    wizard.field("Replace members").select_option("rolling")
    wizard.button("Plan the rollback").click()
    wizard.expect("✓ The plan can begin now")
    back = wizard.approve(GROUP)
    wizard.carry_out()
    wizard.expect_stage("classic")
    runs = [run for run in list_runs(site.group.lab.folder / "runs") if run.subject == GROUP]
    assert {(run.state, run.plan_digest) for run in runs} == {("VERIFIED", digest), ("VERIFIED", back)}
    assert tab.elsewhere == []
    assert_each_once(site.group)


def test_many_groups_to_the_consumer_protocol_in_waves_and_back_by_the_wizard(site, tab):
    lab = site.group.lab
    groups = [ProtocolGroup(lab, site.group.cluster, f"mail-{number}", rate=20.0) for number in range(2)]
    for each in groups:
        each.start([NewMember(each.name, [each.name], f"{each.name}-0")])
    given = {"profile_file": str(lab.folder / "offramp.toml"), "pattern": "mail-.*", "soak_s": 0.0, "pause_s": 2.0}
    fill_in("runbook/protocol_fleet", site.jupyter.notebooks / "protocols.ipynb", **given, clients_ready=True)
    notebook, wizard = NotebookPage(tab.page), Wizard(tab.page)
    tab.page.set_viewport_size({"width": 1500, "height": 2200})
    notebook.open(site.jupyter.address("protocols.ipynb"))
    notebook.run_all("nothing was changed")
    wizard.all.scroll_into_view_if_needed()
    wizard.field("Groups at a time").fill("1")
    wizard.field("Groups at a time").press("Tab")
    wizard.button("Make the plan").click()
    wizard.expect("2 groups, made by")
    wizard.expect("✓ The plan can begin now")
    wizard.picture("protocol-fleet-wizard-plan")
    wizard.approve("2 groups", "Type “N groups”")
    wizard.carry_out()
    wizard.expect("2 of 2 groups moved by this run.")
    assert [each.settled(1).stage for each in groups] == ["consumer"] * 2
    wizard.picture("protocol-fleet-wizard-light")
    wizard.field("To undo, type “N groups”").fill("2 groups")
    wizard.button("Undo this run").click()
    wizard.expect_end("✓ UNDONE")
    assert [each.settled(1).stage for each in groups] == ["classic"] * 2
    assert tab.elsewhere == []
    for each in groups:
        assert_each_once(each)
