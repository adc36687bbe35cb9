"""The fleet's runbook by papermill on real groups: what is not approved writes nothing, the rest is verified."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from kit.clients.cluster import connect
from kit.engine.model.record import list_runs
from kit.moves.fleet.plan import FleetPlanRequest
from kit.operations.operations import Operations
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.notebooks import html_tables, nbval, znodes
from tests.notebooks.executed import NOTEBOOKS, execute
from tests.notebooks.fleet_site import GROUPS, TOPIC, FleetSite
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("fleet")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet") / "runs"


def run(site: FleetSite, output: Path, runs: Path, **parameters: object) -> nbformat.NotebookNode:
    """Run the runbook without waiting for stable members; raises what papermill raises."""
    given = {"profile_file": str(site.profile_file), "runs": str(runs), "min_stable_s": 0.0, "pause_s": 1.0}
    return execute(NOTEBOOKS / "runbook" / "fleet.ipynb", output, **given | parameters)


@soak_only
def test_run_all_writes_nothing_to_the_cluster(fleet_site, runs, tmp_path):
    before = fleet_site.tree()
    found = run(fleet_site, tmp_path / "out.ipynb", runs, wave=2)
    assert "nothing was changed; the plan can begin now: 2 groups settled" in found.cells[-1].outputs[0].text
    with pytest.raises(papermill.PapermillExecutionError, match="was not approved: nothing was done") as raised:
        run(fleet_site, tmp_path / "again.ipynb", runs, wave=2, dry_run=False)
    assert raised.value.ename == "ApprovalError"
    assert len(list((runs / "plans").iterdir())) == 2
    nbval.check(fleet_site.lab, [tmp_path / "out.ipynb"], tmp_path)
    assert (znodes.changes(before, fleet_site.tree()), list_runs(runs)) == ({}, ())
    rows = html_tables.with_columns(html_tables.of_notebook(found), "group_id", "stage", "ready")
    assert [(row["group_id"], row["stage"], row["ready"]) for row in rows] == [
        (name, "all MEZKCC", "✓ yes") for name in GROUPS
    ]
    changes = html_tables.with_columns(html_tables.of_notebook(found), "item", "before", "after")
    assert [row["after"] for row in changes] == [KAFKA, KAFKA, None, KAFKA, KAFKA]


def approve(site: FleetSite, runs: Path, request: FleetPlanRequest) -> str:
    """Return the digest of a plan that somebody made and approved elsewhere."""
    with connect(site.profile) as cluster:
        operations = Operations(cluster, runs)
        plan = operations.make_plan(request)
        operations.approve(plan, "4 groups", plan.digest[:8])
        return plan.digest


def test_approved_plans_toggle_real_groups_under_load_and_take_them_back(fleet_site, runs, tmp_path):
    producer = fleet_site.lab.start_producer(TOPIC, 50)
    try:
        fleet_site.await_ready()
        # Other tests take the processor meanwhile; the circuit breaker has tests of its own.
        wanted = FleetPlanRequest(KAFKA, wave=2, pause_s=1.0, min_stable_s=0.0, max_read_ms=60_000.0)
        digest = approve(fleet_site, runs, wanted)
        found = run(fleet_site, tmp_path / "there.ipynb", runs, dry_run=False, approval_digest=digest[:12])
        assert "is VERIFIED: Every step was executed and verified." in found.cells[-1].outputs[0].text
        assert fleet_site.modes() == dict.fromkeys(GROUPS, KAFKA)
        fleet_site.await_in_kafka(len(GROUPS))

        fleet_site.await_ready(ZOOKEEPER)
        digest = approve(fleet_site, runs, FleetPlanRequest(ZOOKEEPER, wave=0, min_stable_s=0.0))
        run(fleet_site, tmp_path / "back.ipynb", runs, to=ZOOKEEPER, dry_run=False, approval_digest=digest)
        assert fleet_site.modes() == dict.fromkeys(GROUPS, ZOOKEEPER)
        fleet_site.await_in_kafka(0)
        assert [(row.state, row.subject) for row in list_runs(runs)] == [("VERIFIED", "4 groups")] * 2
    finally:
        producer.stop()
