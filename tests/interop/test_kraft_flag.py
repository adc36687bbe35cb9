"""A finalising that was cut off half-way, the flag given back by a plan, and then the end, with what it leaves behind.

One broker, three controllers, in KRaft mode. Our process is killed after the first controller lost its flag. No plan
but the one to KRaft mode leads on; it gives the flag back, and the old run has ended. Then it is finalised: what
ZooKeeper held is in the run's folder, what stays there in the evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kit.engine.lock import CLUSTER_LOCKS
from kit.engine.model.progress import evidence
from kit.engine.model.record import load_run
from kit.errors import NothingToDo, UnsafePlan
from kit.kraft.metadata_file import load_metadata
from kit.kraft.move.frames import stays
from kit.kraft.move.recipes import parameters_of
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.text.quantity import quantity
from tests.interop.kraft_scene import KILLED, LOCK_S, KraftScene
from tests.soak import soak_only

pytestmark = [
    soak_only,
    pytest.mark.timeout(900),
]


def await_unlocked(lab: Lab) -> None:
    """The lock of a process that was killed ends with its session."""
    with connected(lab.zookeeper_connect) as client:
        wait_until(lambda: not client.get_children(CLUSTER_LOCKS), "the end of the lock", LOCK_S)


@pytest.fixture(scope="module")
def scene() -> Iterator[KraftScene]:
    """``noted``: the runs by what they did."""
    with Lab(brokers=1, controllers=3) as lab:
        lab.create_topic("orders", 2)
        lab.migration.reach("kraft")
        seen = KraftScene(lab)
        half, ended = seen.begin("finalised", kill_at="acted/03-finalise/*/CONFIRMED")
        assert ended.exit_code == KILLED
        seen.status("half")
        await_unlocked(lab)
        seen.refuse("zookeeper", UnsafePlan, "plan", "kraft", "--to", "zookeeper")
        seen.refuse("finalised", UnsafePlan, "plan", "kraft", "--to", "finalised", "--override", "soak")
        seen.noted["flag"] = seen.go("kraft")
        seen.status("flag")
        seen.refuse("again", NothingToDo, "plan", "kraft", "--to", "kraft")
        seen.noted["half, resumed"] = seen.resume(half)
        seen.noted["the end"] = seen.go("finalised")
        seen.status("the end")
        yield seen


def folder(scene: KraftScene) -> Path:
    """Return the folder of the run that finalised."""
    return scene.runs / scene.noted["the end"]


def evidence_of(scene: KraftScene, step_id: str) -> Mapping[str, Any]:
    """Return the folder of the run that finalised."""
    (found,) = [it for it in load_run(folder(scene)).events if (it.event, it.step_id) == ("verified", step_id)]
    return evidence(found)


def test_the_flag_can_be_returned_after_a_finalising_that_was_cut_off(scene):
    half, after = scene.statuses["half"], scene.statuses["flag"]
    assert sorted(each.has_flag for each in half.read.controllers) == [False, True, True]
    assert [each.check_id for each in half.findings if each.severity == "alarm"] == ["P01"]
    assert {each.has_flag for each in after.read.controllers} == {True}
    assert (after.state.phase, after.state.zk_state) == ("kraft", "MIGRATION")
    assert [each for each in after.findings if each.severity == "alarm"] == []


def test_only_the_controller_that_lacks_it_is_restarted(scene):
    (attempted,) = [each for each in scene.events(scene.noted["flag"]) if each["event"] == "attempted"]
    (lacking,) = [each.address for each in scene.statuses["half"].read.controllers if each.has_flag is False]
    words = parameters_of(load_run(scene.runs / scene.noted["flag"]).plan.steps[0])
    assert [f"controller {number}" for number in words.nodes] == [attempted["item"]]
    assert [words.controller_addresses[number] for number in words.nodes] == [lacking]


@pytest.mark.parametrize("to", ["zookeeper", "finalised"])
def test_until_then_every_other_plan_is_refused_and_names_the_right_one(scene, to):
    assert "no_contradiction: P01" in scene.refusals[to]
    assert "offramp plan kraft --to kraft" in scene.refusals[to]


def test_afterwards_there_is_nothing_to_give_back_and_the_old_run_has_ended(scene):
    assert "again" in scene.refusals, "it ended as an error of nothing to do"
    assert "can't be resumed or undone any more" in scene.noted["half, resumed"].stderr


def test_zookeepers_content_is_in_the_run_with_its_sum(scene):
    archived = evidence_of(scene, "01-archive")
    file = folder(scene) / archived["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == archived["sha256"]
    saved = load_metadata(file)
    assert saved.counts["partitions"] >= 2
    assert "/brokers/topics/orders" in saved.znodes.column("path").to_pylist()


def test_the_last_diff_is_in_the_run_with_its_sum(scene):
    compared = evidence_of(scene, "02-compare")
    data = (folder(scene) / compared["differences"]["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == compared["differences"]["sha256"]
    assert set(pl.read_parquet(data)["verdict"]) <= {"expected"}


def test_the_rest_in_zookeeper_is_in_the_plan_and_in_the_evidence(scene):
    record = load_run(folder(scene))
    rows = {row["kind"]: row for row in stays(record).to_dicts()}
    assert rows["topics"]["count"] >= 1
    assert "the operator of ZooKeeper" in rows["topics"]["may_delete"]
    assert rows["znodes of offramp"]["count"] >= 1
    risks = [each for each in record.plan.risks if each.startswith("Stays in ZooKeeper: ")]
    assert any(quantity(rows["topics"]["count"], "topic") in each for each in risks)
    assert scene.statuses["the end"].state.phase == "finalised"
