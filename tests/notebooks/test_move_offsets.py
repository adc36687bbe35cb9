"""The runbook for offsets by papermill on a real group: what is not approved writes nothing, the rest is verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import papermill
import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient

import widgets
from kit.clients.cluster import connect
from kit.engine.model.record import list_runs
from kit.errors import IllegalMove, InputError, NotFound
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.notebooks import html_tables, nbval, znodes
from tests.notebooks.executed import NOTEBOOKS, execute
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(600)

NOTEBOOK = NOTEBOOKS / "runbook" / "move_offsets.ipynb"
GROUP, TOPIC, READ = "ledger", "orders", 50


@dataclass
class Site:
    """A group that an old consumer left behind, at record 50 of 70 of two partitions; and where runs are kept."""

    lab: Lab
    zookeeper: KazooClient
    runs: Path
    profile_file: Path

    def run(self, output: Path, **parameters):
        """Executed by papermill; raises what papermill raises."""
        given = {"profile_file": str(self.profile_file), "groups": GROUP, "runs": str(self.runs)}
        return execute(NOTEBOOK, output, **given, **parameters)

    def open(self):
        """The model, as another kernel would make it."""
        return widgets.open_offsets(load_profile(file=self.profile_file), self.runs)

    def in_kafka(self) -> list[int]:
        """By a client of its own; -1001: there is none."""
        settings = {"bootstrap.servers": self.lab.bootstrap_servers, "group.id": GROUP}
        with closing(Consumer(settings)) as consumer:
            found = consumer.committed([TopicPartition(TOPIC, number) for number in (0, 1)], timeout=20)
        return [each.offset for each in found]

    def in_zookeeper(self) -> list[tuple[bytes, int]]:
        """Data and version of the offset znodes."""
        paths = [f"/consumers/{GROUP}/offsets/{TOPIC}/{number}" for number in (0, 1)]
        return [(data, stat.version) for data, stat in map(self.zookeeper.get, paths)]

    def is_left_behind(self) -> bool:
        """Return whether its member is gone and has committed everything."""
        is_empty = not self.zookeeper.get_children(f"/consumers/{GROUP}/ids")
        return is_empty and [data for data, _ in self.in_zookeeper()] == [str(READ).encode()] * 2

    def everything(self):
        tree = znodes.tree(self.zookeeper, ("/consumers", "/offramp"))
        groups = self.lab.admin.list_consumer_groups(request_timeout=20).result().valid
        return tree, self.in_kafka(), sorted(each.group_id for each in groups), list_runs(self.runs)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    with Lab(brokers=1) as lab:
        profile_file = lab.folder / "offramp.toml"
        profile_file.write_text(lab.profile_toml(), encoding="utf-8")
        lab.create_topic(TOPIC, 2)
        lab.produce(TOPIC, 2 * READ)
        old = lab.start_old_consumer(GROUP, TOPIC)
        old.process.wait_until(lambda: len(old.records()) == 2 * READ, "all records delivered", 120)
        old.stop()
        lab.produce(TOPIC, 40)
        zookeeper = KazooClient(lab.zookeeper_connect)
        zookeeper.start(15)
        try:
            found = Site(lab, zookeeper, tmp_path_factory.mktemp("site") / "runs", profile_file)
            wait_until(found.is_left_behind, f"{GROUP} without a member, at record {READ}", 60)
            yield found
        finally:
            zookeeper.stop()
            zookeeper.close()


@pytest.fixture(scope="module")
def rehearsed(site, tmp_path_factory):
    """The notebook after a dry run, and what was there before and after it."""
    before = site.everything()
    found = site.run(tmp_path_factory.mktemp("rehearsed") / "out.ipynb")
    return found, before, site.everything()


def approved(site: Site) -> str:
    """The digest of the dry run's plan, approved by somebody elsewhere."""
    with connect(load_profile(file=site.profile_file)) as cluster:
        operations = Operations(cluster, site.runs)
        (file,) = operations.plan_files()
        plan = operations.plan(str(file))
        operations.approve(plan, GROUP, plan.digest[:8])
        return plan.digest


def test_run_all_shows_both_stores_and_writes_nothing(rehearsed):
    found, before, after = rehearsed
    assert "nothing was changed; the plan can begin now: 1 group has no members" in found.cells[-1].outputs[0].text
    assert after == before
    tables = html_tables.of_notebook(found)
    seen = html_tables.with_columns(tables, "zookeeper", "kafka", "zookeeper_lag")
    assert [(row["zookeeper"], row["kafka"], row["zookeeper_lag"]) for row in seen] == [(READ, None, 20)] * 2
    rows = html_tables.with_columns(tables, "before", "after", "direction")
    assert [(row["before"], row["after"], row["direction"]) for row in rows] == [(None, READ, "first")] * 2
    assert before[1] == [-1001, -1001]


def test_a_plan_that_is_not_approved_is_refused(site, rehearsed, tmp_path):
    before = site.everything()
    (file,) = (site.runs / "plans").iterdir()
    with pytest.raises(papermill.PapermillExecutionError) as raised:
        site.run(tmp_path / "out.ipynb", approval_digest=file.stem, dry_run=False)
    assert raised.value.ename == "ApprovalError"
    with closing(site.open()) as moves:
        for digest, error in (("0" * 8, NotFound), (file.stem[:7], InputError), (f"{file.stem}x", NotFound)):
            with pytest.raises(error):
                moves.prepare(digest)
            with pytest.raises(IllegalMove, match="there is no plan"):
                moves.act()
    assert site.everything() == before


def test_an_approved_copy_is_executed_verified_and_undone(site, rehearsed, tmp_path):
    digest, znodes = approved(site), site.in_zookeeper()
    found = site.run(tmp_path / "out.ipynb", what="copy", approval_digest=digest[:12], dry_run=False)
    assert "is VERIFIED: Every step was executed and verified." in found.cells[-1].outputs[0].text
    assert (site.in_kafka(), site.in_zookeeper()) == ([READ, READ], znodes)
    (row,) = list_runs(site.runs)
    assert (row.state, row.plan_digest) == ("VERIFIED", digest)
    outcomes = html_tables.with_columns(html_tables.of_notebook(found), "item", "outcome", "after")
    assert [each["outcome"] for each in outcomes] == ["CONFIRMED"] * 2

    with closing(site.open()) as moves:
        moves.groups = GROUP
        moves.refresh()
        assert moves.committed.offsets["kafka"].to_list() == [READ, READ]
        moves.undo(GROUP)
        assert moves.wait(200)
        assert moves.record.state == "UNDONE"
        moves.refresh()
        assert moves.committed.offsets["kafka"].to_list() == [None, None]
    assert (site.in_kafka(), site.in_zookeeper()) == ([-1001, -1001], znodes)


@soak_only
def test_a_dry_run_passes_under_nbval(site, tmp_path):
    """Last: it leaves a plan of its own."""
    before = site.everything()
    site.run(tmp_path / "out.ipynb")
    nbval.check(site.lab, [tmp_path / "out.ipynb"], tmp_path)
    assert site.everything() == before
