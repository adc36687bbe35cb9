"""A rollback while the copy from ZooKeeper is in progress, and after a znode aborted the copy.

One broker, three controllers. ZooKeeper answers the controllers slowly, so that the copy is under way for some time: a
rollback is refused. Then malformed SCRAM credentials abort each copy: two controllers end by it, and the third one has
no majority. KRaft's claim is left in ZooKeeper, and no controller leads. Two plans repair that. ``make soak``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kit.errors import PlanError, UnsafePlan
from kit.kraft.story import read_story
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from tests.interop.kraft_scene import KraftScene
from tests.soak import soak_only

pytestmark = [pytest.mark.timeout(900), soak_only]
MALFORMED = "/config/users/ann"
SLOW_S = 5.0
"""The delay of a request of a controller to ZooKeeper. The copy takes about ten requests."""


def begin(seen: KraftScene) -> None:
    """Begin a slow copy: the move to KRaft's dual write without a plan, which would wait for the end of the copy."""
    lab = seen.lab
    seen.carry_out("controllers", "controllers")
    faults.delay_controllers_to_zookeeper(lab, SLOW_S)
    (broker,) = lab.migration.migrating
    lab.move_node("broker", broker.broker_id, "restart", "migration")
    with connected(lab.zookeeper_connect) as client:
        wait_until(lambda: is_claimed(client), "KRaft's claim", 120)
        broker.await_started()
        seen.refuse_plan("copying", "zookeeper", UnsafePlan)
        seen.noted["offset"] = json.loads(client.get("/migration")[0])["kraft_metadata_offset"]


def is_claimed(client: KazooClient) -> bool:
    found = client.exists("/controller")
    return found is not None and found.ephemeralOwner == 0


def abort(seen: KraftScene) -> None:
    """A broker reads all credentials when it starts, so it is up before these exist."""
    lab = seen.lab
    with connected(lab.zookeeper_connect) as client:
        client.create(MALFORMED, b'{"version": 1, "config": {"SCRAM-SHA-256": "malformed"}}', makepath=True)
        faults.delay_controllers_to_zookeeper(lab, 0)
        nodes = [faults.running(each) for each in lab.migration.controllers]
        wait_until(lambda: sum(each.running for each in nodes) == 1, "the end of two controllers", 120)
    seen.status("aborted")
    seen.noted["story"] = read_story(sorted(lab.folder.glob("controller-*.log"))).summary
    seen.refuse_plan("aborted", "zookeeper", PlanError)


def repair(seen: KraftScene) -> None:
    with connected(seen.lab.zookeeper_connect) as client:
        client.delete(MALFORMED)
    seen.refuse_plan("one of three", "repair", UnsafePlan)
    for name, overrides in (("repair /controller", ("voters_known",)), ("repair brokers", ())):
        plan = seen.carry_out(name, "repair", *overrides)
        assert plan.parameters["to_phase"] == name
        seen.status(name)


@pytest.fixture(scope="module")
def scene() -> Iterator[KraftScene]:
    with Lab(brokers=1, controllers=3) as lab:
        lab.create_topic("orders", 2)
        producer = lab.start_producer("orders", rate=50)
        seen = KraftScene(lab)
        for verb in (begin, abort, repair):
            verb(seen)
        producer.stop()
        seen.read_back("orders", 2)
        yield seen


def test_while_the_copy_is_under_way_no_rollback_begins(scene):
    assert scene.noted["offset"] == -1
    assert "no_copy: the copy from ZooKeeper is in progress" in scene.refusals["copying"]


def test_an_aborted_copy_is_not_called_dual_write(scene):
    assert scene.statuses["aborted"].state.phase == "unknown"
    assert "offramp plan kraft --repair" in scene.refusals["aborted"]


def test_the_logs_report_what_aborted_the_copy(scene):
    """Kafka's log names no znode here: the credentials are parsed before it says whose they are."""
    assert "a znode under /config/users" in scene.noted["story"]
    assert "malformed" in scene.noted["story"]


def test_an_aborted_copy_is_repaired_and_brokers_get_their_controller_back(scene):
    assert "voters_known: controller 127.0.0.1:" in scene.refusals["one of three"]
    steps = [each.kind for each in scene.plans["repair /controller"].steps]
    assert steps == ["stop controllers", "repair ZooKeeper", "wipe controllers"]
    control = scene.statuses["repair /controller"].read.control
    assert (control.is_controller_persistent, control.has_migration, control.controller_id) == (False, False, 1)
    assert scene.statuses["repair brokers"].state.phase == "zookeeper"


def test_no_acknowledged_record_is_lost(scene, record_property):
    scene.report(record_property, "a copy that was aborted by a znode, repaired")
    assert scene.n_acknowledged > 500
    assert scene.lost == set()
