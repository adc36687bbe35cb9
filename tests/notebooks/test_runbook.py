"""The runbooks by papermill and nbval on a real group: only what is approved writes, and it is verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
import pytest
from kazoo.exceptions import NoNodeError

from kit.cluster import connect
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.migrate.engine.record import list_runs
from kit.migrate.group.group_state import read_group_state
from kit.migrate.group.plan import GroupPlanRequest
from kit.migrate.operations import Operations
from kit.profile import load_profile
from tests.interop.group import Group
from tests.notebooks import html_tables, nbval
from tests.notebooks.shop import NOTEBOOKS
from tests.soak import IS_SOAK, first, soak_only

pytestmark = pytest.mark.timeout(900)

MIGRATE, ROLLBACK = NOTEBOOKS / "runbook" / "migrate_group.ipynb", NOTEBOOKS / "runbook" / "rollback_group.ipynb"
REPORT = NOTEBOOKS / "report" / "migration.ipynb"
VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2", *(("1.1.1", "0.10.2.2") if IS_SOAK else ()))
THERE = "all KC" if IS_SOAK else "all MEZKCC"
WATCHED = ("/consumers", "/offramp", "/admin", "/config")


@dataclass
class Site:
    """A group of three old consumers under load, each in a JVM of its own, and where its runs are kept."""

    lab: Lab
    group: Group
    runs: Path
    profile_file: Path

    def run(self, notebook: Path, output: Path, **parameters):
        """Executed by papermill; raises what papermill raises."""
        given = {
            "profile_file": str(self.profile_file),
            "group_id": "shop",
            "runs": str(self.runs),
            "min_stable_s": 0.0,
        }
        given = {"runs": str(self.runs)} if notebook == REPORT else given
        papermill.execute_notebook(notebook, output, {**given, **parameters}, cwd=output.parent, progress_bar=False)
        return nbformat.read(output, as_version=4)

    def tree(self) -> dict[str, tuple[int, ...]]:
        """Every znode that a migration could touch, with all that a write to it or below it would change."""
        found: dict[str, tuple[int, ...]] = {}
        todo = list(WATCHED)
        while todo:
            path = todo.pop()
            try:
                children, stat = self.group.zookeeper.get_children(path, include_data=True)
            except NoNodeError:
                continue
            found[path] = (stat.czxid, stat.mzxid, stat.version, stat.cversion, stat.pzxid)
            todo += [f"{path}/{child}" for child in children]
        return found

    def committed(self) -> dict:
        """(store, topic, partition) → committed offset."""
        with connect(load_profile(file=self.profile_file)) as cluster:
            positions = read_group_state(cluster, "shop").offsets
        return {pair: (found.zookeeper, found.kafka) for pair, found in positions.items()}

    def stage(self) -> str:
        with connect(load_profile(file=self.profile_file)) as cluster:
            return read_group_state(cluster, "shop").stage

    def halt_load(self) -> None:
        """Stop producing and wait until everything is committed: then nobody but a migration writes."""
        self.group.await_all_read()
        wait_until(self._is_all_committed, "the last commits", 90)

    def _is_all_committed(self) -> bool:
        with connect(load_profile(file=self.profile_file)) as cluster:
            return all(found.lag == 0 for found in read_group_state(cluster, "shop").offsets.values())

    def load(self) -> None:
        self.group.producer = self.lab.start_producer(list(self.group.topics), 200)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        group = Group(lab, "shop", {"orders": 6}, 200)
        try:
            for version in VERSIONS:
                group.add_old(version=version, settings={"auto.commit.interval.ms": "1000"})
            group.await_agreed()
            yield Site(lab, group, tmp_path_factory.mktemp("site") / "runs", profile_file)
        finally:
            group.close()


@pytest.fixture(scope="module")
def quiet(site):
    """The site while nobody but a migration would write."""
    site.halt_load()
    return site


def said(notebook) -> str:
    """All text that the cells printed."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output.get("text", "") for output in outputs)


def test_run_all_writes_nothing_to_the_cluster(quiet, tmp_path):
    before, offsets = quiet.tree(), quiet.committed()
    found = quiet.run(MIGRATE, tmp_path / "out.ipynb")
    assert (
        f"nothing was changed; the plan can begin now: found {len(VERSIONS)} OZKCC" in found.cells[-1].outputs[0].text
    )
    assert (quiet.tree(), quiet.committed()) == (before, offsets)
    rows = html_tables.with_columns(html_tables.of_notebook(found), "title", "item", "before", "after")
    assert [(row["before"], row["after"]) for row in rows] == [("OZKCC", "MEZKCC"), (None, None)]
    shares = html_tables.with_columns(html_tables.of_notebook(found), "flavour", "n_partitions")
    assert [row["flavour"] for row in shares] == ["OZKCC"] * len(VERSIONS)
    assert sum(int(row["n_partitions"]) for row in shares) == 6
    assert len(list((quiet.runs / "plans").iterdir())) == 1
    nbval.check(quiet.lab, [tmp_path / "out.ipynb"], tmp_path)
    assert (quiet.tree(), quiet.committed(), list_runs(quiet.runs)) == (before, offsets, ())


@soak_only
def test_without_an_approval_nothing_is_carried_out(quiet, tmp_path):
    before, offsets = quiet.tree(), quiet.committed()
    with pytest.raises(papermill.PapermillExecutionError, match="was not approved: nothing was done") as raised:
        quiet.run(MIGRATE, tmp_path / "out.ipynb", dry_run=False)
    assert raised.value.ename == "ApprovalError"
    told = said(nbformat.read(tmp_path / "out.ipynb", as_version=4))
    assert "offramp approve " in told
    digest = told.split("digest is ")[1][:64]
    with pytest.raises(papermill.PapermillExecutionError, match="was not approved") as raised:
        quiet.run(MIGRATE, tmp_path / "again.ipynb", dry_run=False, approval_digest=digest)
    assert raised.value.ename == "ApprovalError"
    with pytest.raises(papermill.PapermillExecutionError, match="which is no way back"):
        quiet.run(ROLLBACK, tmp_path / "back.ipynb", dry_run=False, approval_digest=digest)
    assert (quiet.tree(), quiet.committed(), list_runs(quiet.runs)) == (before, offsets, ())


@pytest.mark.parametrize(
    ("parameters", "error"),
    first(
        [
            ({"cluster_id": "another"}, "WrongCluster"),
            ({"approval_digest": "0" * 8, "dry_run": False}, "NotFound"),
            ({"group_id": ""}, "InputError"),
            ({"group_id": "nobody"}, "NotFound"),
            ({"to_stage": "nowhere"}, "InputError"),
            ({"to_stage": "OZKCC"}, "NothingToDo"),
            ({"approval_digest": "0", "dry_run": False}, "InputError"),
        ],
        2,
    ),
)
def test_what_can_not_be_stops_it_before_anything_is_done(quiet, tmp_path, parameters, error):
    before = quiet.tree()
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        quiet.run(MIGRATE, tmp_path / "out.ipynb", **parameters)
    assert raised.value.ename == error
    assert quiet.tree() == before


def approve(site: Site, to_stage: str) -> str:
    """The digest of a plan that somebody made and approved elsewhere."""
    with connect(load_profile(file=site.profile_file)) as cluster:
        operations = Operations(cluster, site.runs)
        plan = operations.plan_group(GroupPlanRequest("shop", to_stage, soak_s=2.0, min_stable_s=0.0))
        operations.approve(plan, "shop", plan.digest[:8])
        return plan.digest


def test_an_approved_plan_is_carried_out_explained_and_taken_back_under_load(site, tmp_path):
    site.load()
    digest = approve(site, THERE)
    found = site.run(MIGRATE, tmp_path / "there.ipynb", dry_run=False, approval_digest=digest[:12])
    assert "is VERIFIED: Every step was carried out and verified." in found.cells[-1].outputs[0].text
    assert site.stage() == THERE
    (row,) = list_runs(site.runs)
    assert (row.state, row.plan_digest) == ("VERIFIED", digest)

    explained = site.run(REPORT, tmp_path / "report.ipynb")
    outcomes = html_tables.with_columns(html_tables.of_notebook(explained), "outcome", "before", "after")
    assert [each["outcome"] for each in outcomes] == ["CONFIRMED"] * len(outcomes)
    assert len(outcomes) >= len(VERSIONS)
    charts = [output.data for cell in explained.cells for output in cell.get("outputs", ()) if "data" in output]
    assert sum("image/svg+xml" in each for each in charts) == 1
    assert "VERIFIED" in explained.cells[-1].outputs[0].text

    rehearsed = site.run(ROLLBACK, tmp_path / "rehearsed.ipynb", run_id=row.run_id)
    assert "Dry run: nothing was changed" in rehearsed.cells[-1].outputs[0].text
    nbval.check(site.lab, [tmp_path / "report.ipynb", tmp_path / "rehearsed.ipynb"], tmp_path)
    with pytest.raises(papermill.PapermillExecutionError, match="nothing was undone"):
        site.run(ROLLBACK, tmp_path / "refused.ipynb", run_id=row.run_id, dry_run=False)
    assert site.stage() == THERE
    back = site.run(ROLLBACK, tmp_path / "back.ipynb", run_id=row.run_id, dry_run=False, approval_digest=digest[:8])
    assert "is UNDONE" in back.cells[-1].outputs[0].text
    assert site.stage() == "OZKCC"

    site.group.everyone = site.lab.consumers("shop")
    site.group.await_all_read()
    proof = site.group.summary()
    assert (proof["lost"], proof["overlaps"], proof["doubtful_overlaps"]) == (0, 0, 0)
