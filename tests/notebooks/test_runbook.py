"""The runbooks by papermill and nbval on a real group: only what is approved writes, and it is verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
import pytest

from kit.clients.cluster import connect
from kit.engine.model.record import list_runs
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.moves.group.group_state import read_group_state
from kit.moves.group.plan import GroupPlanRequest
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.interop.group import Group
from tests.notebooks import html_tables, nbval, znodes
from tests.notebooks.executed import NOTEBOOKS, execute, printed, texts
from tests.soak import IS_SOAK, first, soak_only

pytestmark = pytest.mark.timeout(900)

MIGRATE, ROLLBACK = NOTEBOOKS / "runbook" / "migrate_group.ipynb", NOTEBOOKS / "runbook" / "rollback_group.ipynb"
REPORT = NOTEBOOKS / "report" / "migration.ipynb"
VERSIONS = ("1.1.1", "0.10.2.2", "0.8.2.2", *(("1.1.1", "0.10.2.2") if IS_SOAK else ()))
THERE = "all KC" if IS_SOAK else "all MEZKCC"
RATE = 100
"""Records per second: members that get no processor for seconds stay within the lag that a plan tolerates."""
SETTINGS = {"auto.commit.interval.ms": "1000", "zookeeper.session.timeout.ms": "60000"}
"""No member loses its session on a busy machine: then only a migration changes the group."""
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
        given: dict[str, object] = {"runs": str(self.runs)}
        if notebook != REPORT:
            given |= {"profile_file": str(self.profile_file), "group_id": "shop", "min_stable_s": 0.0}
        return execute(notebook, output, **given | parameters)

    def tree(self) -> znodes.Tree:
        """Every znode that a migration could touch."""
        return znodes.tree(self.group.zookeeper, WATCHED)

    def committed(self) -> dict:
        """(store, topic, partition) → committed offset."""
        with connect(load_profile(file=self.profile_file)) as cluster:
            positions = read_group_state(cluster, "shop").offsets
        return {pair: (found.zookeeper, found.kafka) for pair, found in positions.items()}

    def stage(self) -> str:
        with connect(load_profile(file=self.profile_file)) as cluster:
            return read_group_state(cluster, "shop").stage

    def halt_load(self) -> None:
        """Stop producing and wait until all is committed and no rebalance runs: then only a migration writes."""
        self.group.await_all_read()
        wait_until(self._is_all_committed, "the last commits", 120)
        self.group.await_agreed()

    def _is_all_committed(self) -> bool:
        with connect(load_profile(file=self.profile_file)) as cluster:
            return all(found.lag == 0 for found in read_group_state(cluster, "shop").offsets.values())

    def load(self) -> None:
        self.group.producer = self.lab.start_producer(list(self.group.topics), RATE)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        group = Group(lab, "shop", {"orders": 6}, RATE)
        try:
            for version in VERSIONS:
                group.add_old(version=version, settings=SETTINGS)
            group.await_agreed(seconds=120)
            yield Site(lab, group, tmp_path_factory.mktemp("site") / "runs", profile_file)
        finally:
            group.close()


@pytest.fixture(scope="module")
def quiet(site):
    """The site while nobody but a migration would write."""
    site.halt_load()
    return site


def test_run_all_writes_nothing_to_the_cluster(quiet, tmp_path):
    before, offsets = quiet.tree(), quiet.committed()
    found = quiet.run(MIGRATE, tmp_path / "out.ipynb")
    assert (
        f"nothing was changed; the plan can begin now: found {len(VERSIONS)} OZKCC" in found.cells[-1].outputs[0].text
    )
    assert (znodes.changes(before, quiet.tree()), quiet.committed()) == ({}, offsets)
    rows = html_tables.with_columns(html_tables.of_notebook(found), "title", "item", "before", "after")
    assert [(row["before"], row["after"]) for row in rows] == [("OZKCC", "MEZKCC"), (None, None)]
    shares = html_tables.with_columns(html_tables.of_notebook(found), "flavour", "n_partitions")
    assert [row["flavour"] for row in shares] == ["OZKCC"] * len(VERSIONS)
    assert sum(int(row["n_partitions"]) for row in shares) == 6
    assert len(list((quiet.runs / "plans").iterdir())) == 1
    nbval.check(quiet.lab, [tmp_path / "out.ipynb"], tmp_path)
    assert (znodes.changes(before, quiet.tree()), quiet.committed(), list_runs(quiet.runs)) == ({}, offsets, ())


@soak_only
def test_without_an_approval_nothing_is_executed(quiet, tmp_path):
    before, offsets = quiet.tree(), quiet.committed()
    with pytest.raises(papermill.PapermillExecutionError, match="was not approved: nothing was done") as raised:
        quiet.run(MIGRATE, tmp_path / "out.ipynb", dry_run=False)
    assert raised.value.ename == "ApprovalError"
    told = printed(nbformat.read(tmp_path / "out.ipynb", as_version=4))
    assert "offramp approve " in told
    digest = told.split("digest is ")[1][:64]
    with pytest.raises(papermill.PapermillExecutionError, match="was not approved") as raised:
        quiet.run(MIGRATE, tmp_path / "again.ipynb", dry_run=False, approval_digest=digest)
    assert raised.value.ename == "ApprovalError"
    with pytest.raises(papermill.PapermillExecutionError, match="which is no rollback"):
        quiet.run(ROLLBACK, tmp_path / "back.ipynb", dry_run=False, approval_digest=digest)
    assert (znodes.changes(before, quiet.tree()), quiet.committed(), list_runs(quiet.runs)) == ({}, offsets, ())


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
def test_a_wrong_value_stops_it_before_anything_is_done(quiet, tmp_path, parameters, error):
    before = quiet.tree()
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        quiet.run(MIGRATE, tmp_path / "out.ipynb", **parameters)
    assert raised.value.ename == error
    assert znodes.changes(before, quiet.tree()) == {}


def approve(site: Site, to_stage: str) -> str:
    """The digest of a plan that somebody made and approved elsewhere."""
    with connect(load_profile(file=site.profile_file)) as cluster:
        operations = Operations(cluster, site.runs)
        plan = operations.make_plan(GroupPlanRequest("shop", to_stage, soak_s=2.0, min_stable_s=0.0))
        operations.approve(plan, "shop", plan.digest[:8])
        return plan.digest


def test_an_approved_plan_is_executed_explained_and_undone_under_load(site, tmp_path):
    site.load()
    digest = approve(site, THERE)
    found = site.run(MIGRATE, tmp_path / "there.ipynb", dry_run=False, approval_digest=digest[:12])
    assert "is VERIFIED: Every step was executed and verified." in found.cells[-1].outputs[0].text
    assert site.stage() == THERE
    (row,) = list_runs(site.runs)
    assert (row.state, row.plan_digest) == ("VERIFIED", digest)

    explained = site.run(REPORT, tmp_path / "report.ipynb")
    outcomes = html_tables.with_columns(html_tables.of_notebook(explained), "outcome", "before", "after")
    assert [each["outcome"] for each in outcomes] == ["CONFIRMED"] * len(outcomes)
    assert len(outcomes) >= len(VERSIONS)
    assert len(texts(explained, "image/svg+xml")) == 1
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
