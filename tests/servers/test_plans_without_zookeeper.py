"""Plans of offsets and groups on a cluster without ZooKeeper: planned, approved, executed, resumed, undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import Cluster, connect
from kit.engine.execution.run import Run
from kit.engine.model.plan import Plan
from kit.engine.model.states import RunState
from kit.errors import LockLost, PlanError, RunError, UnsafePlan
from kit.kraft.move.plan import KraftPlanRequest
from kit.lab import Lab
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.group.plan import GroupPlanRequest
from kit.moves.locks.held_locks import break_locks, held_locks
from kit.moves.locks.kafka_lock import KafkaLock, LockGroups
from kit.moves.offsets.delete_groups import DeleteGroupsRequest
from kit.moves.offsets.plan import PlanOptions, Reset, export_offsets, plan_delete, plan_import, plan_reset, select
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.notebooks.executed import NOTEBOOKS, execute
from tests.servers.offset_operations import OffsetOperations, when_acting

RUNBOOK = NOTEBOOKS / "runbook" / "move_offsets.ipynb"
TOPIC = "without-zookeeper"
OPTIONS = PlanOptions(made_by="ann", now=datetime.now(UTC), allow_backwards=True)


@pytest.fixture(scope="module")
def profile(kraft_lab: Lab) -> Path:
    path = kraft_lab.folder / "without-zookeeper.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic(TOPIC, 2)
    kraft_lab.produce(TOPIC, 200)
    return path


@pytest.fixture(scope="module")
def cluster(profile: Path) -> Iterator[Cluster]:
    with connect(load_profile(file=profile)) as connected:
        yield connected


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path) -> OffsetOperations:
    return OffsetOperations(cluster, tmp_path)


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> Operations:
    return Operations(cluster, tmp_path)


def begun(desk: Operations, plan: Plan, tell=None) -> Run:
    desk.save_plan(plan)
    desk.approve(plan, plan.subject, plan.digest[:8], approver="Bob")
    return (desk if tell is None else Operations(desk.cluster, desk.runs, tell=tell)).begin(plan)


def reset_of(desk: Operations, group: str, offset: int) -> Plan:
    return plan_reset(desk.cluster, "kafka", select(groups=group), Reset("offset", offset), OPTIONS)


def at(first: int, second: int) -> dict:
    return {(TOPIC, 0): first, (TOPIC, 1): second}


def test_the_verbs_reset_offsets_show_the_proof_and_take_it_back(site, profile, tmp_path):
    site.commit("by-verbs", TOPIC, {0: 10, 1: 20})
    runs = ["--runs", str(tmp_path / "runs"), "--profile-file", str(profile)]

    def typed(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, *runs], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    typed("plan", "offsets", "reset", "--store", "kafka", "--group", "by-verbs", "--to", "40")
    (plan,) = (tmp_path / "runs" / "plans").glob("????????????.json")
    typed("approve", plan.stem, "--subject", "by-verbs", "--digest", plan.stem)
    typed("act", plan.stem)
    assert site.offsets("kafka", "by-verbs") == at(40, 40)
    (run,) = [each.name for each in (tmp_path / "runs").iterdir() if (each / "report.html").exists()]
    assert "VERIFIED" in typed("verify", run)
    typed("undo", run)
    assert site.offsets("kafka", "by-verbs") == at(10, 20)


def test_a_stopped_run_is_resumed_and_a_later_run_ends_its_undo(site, desk):
    site.commit("resumed", TOPIC, {0: 10, 1: 20})
    first = begun(desk, reset_of(desk, "resumed", 40))
    first.request_stop("Ann")
    assert first.act().state == RunState.STOPPED
    assert site.offsets("kafka", "resumed") == at(10, 20)
    first.resume().raise_unless(RunState.VERIFIED)
    later = begun(desk, reset_of(desk, "resumed", 50))
    later.act().raise_unless(RunState.VERIFIED)
    with pytest.raises(RunError, match=f"run {later.run_id} changed group resumed after run {first.run_id}"):
        first.undo()
    later.undo().raise_unless(RunState.UNDONE)
    assert site.offsets("kafka", "resumed") == at(40, 40)


def test_offsets_are_deleted_imported_and_whole_groups_deleted_and_brought_back(site, desk, tmp_path):
    site.commit("kept", TOPIC, {0: 10, 1: 20})
    file = tmp_path / "offsets.jsonl"
    export_offsets(desk.cluster, file, "kafka", select(groups="kept"), OPTIONS.now)
    with pytest.raises(UnsafePlan, match="2 offsets are in Kafka alone, because this cluster has no ZooKeeper"):
        plan_delete(desk.cluster, "kafka", select(groups="kept"), OPTIONS)
    sure = replace(OPTIONS, allow_backwards=False, overrides=("kept_elsewhere",))
    deletion = begun(desk, plan_delete(desk.cluster, "kafka", select(groups="kept"), sure))
    deletion.act().raise_unless(RunState.VERIFIED)
    assert site.offsets("kafka", "kept") == {}
    brought = plan_import(desk.cluster, file, "kafka", PlanOptions("ann", OPTIONS.now, new_groups=True))
    begun(desk, brought).act().raise_unless(RunState.VERIFIED)
    assert site.offsets("kafka", "kept") == at(10, 20)
    whole = begun(desk, desk.make_plan(DeleteGroupsRequest(("kept",)), made_by="ann"))
    whole.act().raise_unless(RunState.VERIFIED)
    assert "kept" not in site.everything().kafka
    whole.undo().raise_unless(RunState.UNDONE)
    assert site.offsets("kafka", "kept") == at(10, 20)


def test_a_run_whose_lock_is_broken_writes_nothing_more(site, desk):
    site.commit("broken", TOPIC, {0: 10, 1: 20})
    run = begun(
        desk, reset_of(desk, "broken", 40), when_acting(lambda: break_locks(desk.cluster, "broken", run_of(desk)))
    )
    result = run.act()
    assert (result.state, "lost" in result.sentence) == (RunState.STOPPED, True)
    assert site.offsets("kafka", "broken") == at(10, 20)
    run.resume().raise_unless(RunState.VERIFIED)


def run_of(desk: Operations) -> str:
    (held,) = held_locks(desk.cluster)
    assert held.run_id is not None
    return held.run_id


def test_the_verbs_of_locks_show_who_has_one_and_break_it_by_its_run(cluster, profile):
    lock = KafkaLock(LockGroups(cluster))
    lock.acquire(["shown"], "run-7")

    def typed(*words: str, answer: str = "") -> tuple[int, str]:
        done = CliRunner().invoke(app, ["lock", *words, "--profile-file", str(profile)], input=answer)
        return done.exit_code, done.output

    code, output = typed("show", "shown")
    assert (code, "run-7" in output, "kafka" in output) == (0, True, True), output
    assert typed("break", "shown", answer="run-8\n")[0] == 2
    lock.assert_held()
    assert typed("break", "nobodys", "--run", "run-7")[0] == 8
    code, output = typed("break", "shown", answer="run-7\n")
    assert (code, "run run-7 stops before its next write" in output) == (0, True), output
    with pytest.raises(LockLost):
        lock.assert_held()
    lock.release()
    assert "no run holds the lock of group shown" in typed("show", "shown")[1]


def test_the_runbook_resets_offsets_by_an_approved_plan(site, profile, tmp_path):
    """Papermill runs the wizard's model: a dry run writes nothing, and the run of the approved plan is verified."""
    site.commit("by-runbook", TOPIC, {0: 10, 1: 20})
    given = {"profile_file": str(profile), "runs": str(tmp_path / "runs"), "groups": "by-runbook"}
    wanted = given | {"what": "reset", "to": "40", "target": "kafka"}
    execute(RUNBOOK, tmp_path / "dry.ipynb", **wanted)
    assert site.offsets("kafka", "by-runbook") == at(10, 20)
    desk = Operations(site.cluster, tmp_path / "runs")
    plan = desk.plan(str(desk.plan_files()[0]))
    desk.approve(plan, plan.subject, plan.digest[:8], approver="Bob")
    execute(RUNBOOK, tmp_path / "run.ipynb", **wanted, approval_digest=plan.digest, dry_run=False)
    assert site.offsets("kafka", "by-runbook") == at(40, 40)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--to-earliest", "--allow-backwards"], at(0, 0)),
        (["--to-latest"], at(100, 100)),
        (["--to-offset", "50"], at(50, 50)),
        (["--shift-by", "5"], at(15, 25)),
        (["--shift-by", "-5", "--allow-backwards"], at(5, 15)),
        (["--by-duration", "P3650D", "--allow-backwards"], at(0, 0)),
        (["--to-datetime", "2020-01-31T12:00:00.000", "--allow-backwards"], at(0, 0)),
        (["--from-file", "FILE"], at(30, 40)),
    ],
)
def test_the_options_of_kafkas_own_tool_are_understood(site, profile, tmp_path, words, wanted):
    """Without ``--store``: the group has offsets in one store alone."""
    site.commit("tool", TOPIC, {0: 10, 1: 20})
    file = tmp_path / "offsets.csv"
    file.write_text(f'"{TOPIC}",0,30\n"{TOPIC}",1,40\n')
    typed = [str(file) if word == "FILE" else word for word in words]
    options = ["--profile-file", str(profile), "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(
        app,
        [*["plan", "offsets", "reset", "-g", "tool"], *typed, "--json", *options],
    )
    assert done.exit_code == 0, done.output
    (step,) = json.loads(done.stdout)["steps"]
    assert [each["after"] for each in step["changes"]] == list(wanted.values())


@pytest.mark.parametrize("kind", ["group", "fleet", "kraft"])
def test_plans_that_need_zookeeper_are_refused_when_they_are_planned(desk, kind):
    ask = {
        "group": lambda: desk.make_plan(GroupPlanRequest("any", "all KC")),
        "fleet": lambda: desk.make_plan(FleetPlanRequest("kafka")),
        "kraft": lambda: desk.make_plan(KraftPlanRequest("dual write")),
    }[kind]
    with pytest.raises(PlanError, match="has no zookeeper_connect"):
        ask()


def test_a_profile_that_hides_the_brokers_zookeeper_makes_no_plan(lab, tmp_path):
    """Runs of the others would lock in ZooKeeper, and the two would not exclude each other."""
    path = tmp_path / "offramp.toml"
    lines = lab.profile_toml().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("zookeeper_connect")))
    lab.create_topic(TOPIC, 1)
    lab.produce(TOPIC, 10)
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, tmp_path)
        site.commit("hidden", TOPIC, {0: 1})
        plan = reset_of(Operations(cluster, tmp_path), "hidden", 5)
        with pytest.raises(PlanError, match="uses ZooKeeper, but the profile has no zookeeper_connect"):
            Operations(cluster, tmp_path).save_plan(plan)
