"""The notebooks about a move to KRaft, by papermill on one lab: before it, in dual write, and when nothing answers.

That of a rehearsal is in ``tests/servers/test_kraft_rehearsal.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import papermill
import pytest
from bs4 import BeautifulSoup
from click.testing import Result
from typer.testing import CliRunner

from kit.engine.model.record import list_runs
from kit.errors import StoresDiffer
from kit.kraft.verbs.kraft import app
from kit.lab import Lab, faults
from kit.lab.entities import QUOTAS, set_quotas
from kit.lab.servers.migrating import connected
from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute, printed, texts
from tests.notebooks.html_pages import loaded
from tests.notebooks.node_files import collect_node_files
from tests.servers.kraft_walk import KraftWalk, know_their_version

pytestmark = pytest.mark.timeout(900)  # The first test runs seven notebooks on a cluster in three phases.

EXPLORE, PREFLIGHT = NOTEBOOKS / "explore" / "kraft.ipynb", NOTEBOOKS / "runbook" / "kraft_preflight.ipynb"
BACK, END = (NOTEBOOKS / "runbook" / f"kraft_{name}.ipynb" for name in ("rollback", "finalise"))
SILENT_S = 300
SETTLE_S = 120
"""A diff ends as soon as nothing is in flight. What differs is only diverged once a second read has confirmed it."""


class KraftNotebooks:
    """The executed notebooks by moment, and what they raised; ``folder`` has what they wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks: dict[str, nbformat.NotebookNode] = {}
        self.raised: dict[str, papermill.PapermillExecutionError] = {}
        self.reported: Result | None = None

    def run(self, moment: str, source: Path, **parameters: object) -> None:
        output = self.folder / f"{moment}.ipynb"
        try:
            self.notebooks[moment] = execute(source, output, **parameters)
        except papermill.PapermillExecutionError as error:
            self.raised[moment] = error
            self.notebooks[moment] = nbformat.read(output, as_version=4)

    def table(self, moment: str, *columns: str) -> list[html_tables.Row]:
        return html_tables.with_columns(html_tables.of_notebook(self.notebooks[moment]), *columns)

    def chart(self, moment: str, said: str) -> str:
        (found,) = [each for each in texts(self.notebooks[moment], "image/svg+xml") if said in each]
        return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> KraftNotebooks:
    found = KraftNotebooks(tmp_path_factory.mktemp("kraft"))
    with Lab(brokers=1, controllers=1) as lab:
        walk = KraftWalk(lab)
        profile = {"profile_file": str(walk.file)}
        lab.create_topic("orders", 2)
        set_quotas(lab.migration, QUOTAS)
        found.run("too early", PREFLIGHT, **profile)
        lab.migration.reach("controllers")
        walk.await_status("controllers", know_their_version, "the version of the controller, from the log")
        nodes, made = str(collect_node_files(lab, found.folder / "nodes")), str(found.folder / "made")
        found.run("ready", PREFLIGHT, settings_dir=nodes, write_settings=made, **profile)
        lab.migration.reach("dual-write")
        runs = {"runs": str(found.folder / "runs")}
        found.run("plan back", BACK, overrides="R03_known", **runs, **profile)
        found.run("plan end", END, **runs, **profile)
        with connected(lab.zookeeper_connect) as client:
            held = {"version": 1, "config": {"retention.ms": "7"}}
            client.set("/config/topics/orders", json.dumps(held).encode())
        settled = walk.run("diff", "kraft", "diff", "--settle-s", str(SETTLE_S))
        assert "hold different values: 1 diverged" in settled.output, settled.output  # nothing is on its way any more
        history = ("--history", str(found.folder / "history"))
        for _ in range(
            2
        ):  # An observation may settle for as long as the next observation is away; after the last one nothing waits.
            must(walk, "watch", *history, "--every", str(SETTLE_S), "--count", "1")
        found.run("dual write", EXPLORE, history=history[1], settle_s=float(SETTLE_S), **profile)
        found.reported = CliRunner().invoke(app, ["report", *history, "--output", str(found.folder / "reports")])
        (soak,) = (found.folder / "reports").glob("*-soak-lab/kraft_soak.ipynb")
        found.notebooks["soak"] = nbformat.read(soak, as_version=4)
        for broker in lab.migration.migrating:
            faults.kill(broker)
            # Until its session ends the broker is also a node without an address, and the phase is dual write.
            faults.await_gone(lab, f"/brokers/ids/{broker.broker_id}")
        for controller in lab.migration.controllers:
            faults.kill(controller)
        found.run("silent", EXPLORE, **profile)
    return found


def must(walk: KraftWalk, *words: str) -> None:
    """A verb of ``offramp kraft`` that must end well."""
    ended = walk.run(words[0], "kraft", *words)
    assert ended.exit_code == 0, ended.output


def test_a_preflight_that_does_not_know_all_raises_and_shows_what(seen):
    assert seen.raised["too early"].ename == "PartialRead"
    rows = seen.table("too early", "answer", "remedy")
    assert {row["answer"] for row in rows} >= {"not known"}
    assert {row["phase"] for row in rows} <= {"controllers", "dual write", "rollback", "any", "settings"}


def test_a_preflight_of_a_sound_cluster_passes_and_counts_what_is_there(seen):
    assert "ready" not in seen.raised
    assert "answers are met" in seen.notebooks["ready"].cells[-1].outputs[0].text
    counts = {row["what"]: row["count"] for row in seen.table("ready", "what", "count")}
    assert (counts["topics"], counts["partitions"]) == (1, 2)
    assert counts["quotas"] == sum(map(len, QUOTAS.values()))


def test_its_settings_are_those_of_the_files_it_wrote(seen):
    rows = seen.table("ready", "file", "action", "name")
    made = {file.name: file.read_text() for file in (seen.folder / "made").iterdir()}
    assert {row["file"] for row in rows} == set(made)
    modes = {"broker-1.migration", "broker-1.kraft", "broker-1.zookeeper"}
    assert {name.removesuffix(".properties") for name in made} > modes
    kraft = [row for row in rows if row["file"] == "broker-1.kraft.properties"]
    assert ("set", "process.roles", "broker") in {(row["action"], row["name"], row["value"]) for row in kraft}
    for row in kraft:
        is_set = f"\n{row['name']}=" in made["broker-1.kraft.properties"]
        assert is_set == (row["action"] == "set"), row


def test_in_dual_write_phase_nodes_and_differing_values_are_shown(seen):
    assert "dual write" not in seen.raised
    strip, nodes = seen.chart("dual write", "Cluster lab"), seen.chart("dual write", "Nodes")
    assert "1 broker, 1 controller" in strip
    assert "migration mode" in nodes
    (row,) = seen.table("dual write", "verdict", "kraft_value")
    assert (row["entity"], row["item"], row["verdict"]) == ("topics/orders", "retention.ms", "diverged")
    assert (row["zookeeper_value"], row["kraft_value"]) == (7, None)
    assert "diverged" in seen.chart("dual write", "ZooKeeper beside KRaft")


def test_run_all_plans_the_rollback_and_writes_nothing(seen):
    """The plan of ``kraft_migrate`` is in ``tests/browser/test_kraft_wizard.py``."""
    assert "plan back" not in seen.raised
    assert "nothing was changed; the plan can begin now" in seen.notebooks["plan back"].cells[-1].outputs[0].text
    rows = [row for row in seen.table("plan back", "item", "before", "after", "undo") if row["item"] == "broker 1"]
    assert [(row["before"], row["after"]) for row in rows] == [("migration mode", "zookeeper mode")]
    assert list_runs(seen.folder / "runs") == ()


def test_a_cluster_in_dual_write_is_not_finalised(seen):
    assert seen.raised["plan end"].ename == "PlanError"
    assert "The next plan must go to 'kraft'" in seen.raised["plan end"].evalue


def test_a_soak_with_a_value_that_diverged_reports_it_and_fails(seen):
    assert seen.reported.exit_code == StoresDiffer.exit_code, seen.reported.output
    assert "UTC, is diverged; the report and offramp kraft diff list the values" in seen.reported.output
    (row,) = seen.table("soak", "kind", "entity", "is_open", "cause")
    assert (row["entity"], row["item"], row["is_open"], row["n_looks"]) == ("topics/orders", "retention.ms", "yes", 2)
    (stretch,) = seen.table("soak", "phase", "verdict", "max_lag")
    assert (stretch["verdict"], stretch["n_looks"]) == ("diverged", 2)
    assert "Observations: 2" in seen.chart("soak", "Cluster lab")


def test_its_page_is_made_all_the_same_and_begins_with_a_brief(seen):
    page = (seen.folder / "reports" / "soak-lab.html").read_text(encoding="utf-8")
    assert loaded(page) == []
    parsed = BeautifulSoup(page, "html.parser")
    assert "1 value diverged at some time, 1 still in the last observation" in parsed.select_one(".brief").get_text()
    assert len(parsed.find_all("svg")) == 1


def test_each_fact_has_its_age(seen):
    ages = [row["age_s"] for row in seen.table("dual write", "fact", "age_s")]
    assert len(ages) > 8
    assert all(0 <= age < SILENT_S for age in ages)


def test_the_timeline_has_the_observations_of_the_history(seen):
    assert "Observations: 2" in seen.chart("dual write", "Dual write over time")


def test_without_an_answer_of_any_node_it_reports_that_and_fails(seen):
    assert seen.raised["silent"].ename == "PartialRead"
    assert "does not answer as a broker" in seen.raised["silent"].evalue
    assert "2 of 2 don't answer" in seen.chart("silent", "Cluster lab")
    told = printed(seen.notebooks["silent"])
    assert "Cluster lab: phase unknown." in told
    assert "There is nothing to compare" in told
