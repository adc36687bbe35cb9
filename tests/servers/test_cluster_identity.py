"""The addresses of a connected cluster lead to another cluster: no plan is made, and no run writes there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.clients.cluster import Cluster, connect
from kit.engine.model.states import RunState
from kit.errors import WrongCluster
from kit.moves.fleet.plan import FleetPlanRequest, plan_fleet
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, performer, plan_delete_groups
from kit.profile import load_profile
from tests.servers.offset_operations import OffsetOperations, when_acting

TOPIC, GROUP = "cluster-identity", "identity"


@pytest.fixture(scope="module")
def here(lab, tmp_path_factory) -> Iterator[Cluster]:
    lab.create_topic(TOPIC, 1)
    lab.produce(TOPIC, 50)
    with connected(lab, tmp_path_factory.mktemp("here")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def other(kraft_lab, tmp_path_factory) -> Iterator[Cluster]:
    with connected(kraft_lab, tmp_path_factory.mktemp("other")) as cluster:
        yield cluster


@pytest.fixture
def operations(here, tmp_path) -> OffsetOperations:
    made = OffsetOperations(here, tmp_path)
    made.performer = performer(here)
    made.commit(GROUP, TOPIC, {0: 20})
    return made


def connected(lab, folder: Path):
    file = folder / "offramp.toml"
    file.write_text(lab.profile_toml())
    return connect(load_profile(file=file))


@contextmanager
def brokers_moved(here: Cluster, other: Cluster) -> Iterator[None]:
    """Let the brokers' addresses of ``here`` lead to ``other``."""
    own = here.broker_client
    object.__setattr__(here, "broker_client", other.broker_client)
    try:
        yield
    finally:
        object.__setattr__(here, "broker_client", own)


@contextmanager
def zookeeper_moved(here: Cluster, cluster_id: str | None) -> Iterator[None]:
    """Let ZooKeeper's address of ``here`` lead to a tree that holds another cluster id, or none."""
    client, root = here.zookeeper, f"/moved-{cluster_id}"
    assert client is not None
    client.ensure_path(f"{root}/cluster")
    if cluster_id is not None:
        client.create(f"{root}/cluster/id", json.dumps({"version": "1", "id": cluster_id}).encode())
    client.chroot = root
    try:
        yield
    finally:
        client.chroot = ""
        client.delete(root, recursive=True)


def plan_of(cluster: Cluster):
    return plan_delete_groups(cluster, DeleteGroupsRequest((GROUP,)), "ann", datetime.now(UTC))


def test_plan_act_resume_and_undo_ask_the_brokers_which_cluster_answers_now(here, other, operations):
    plan, both = plan_of(here), f"{here.cluster_id}.*{other.cluster_id}"
    run = operations.run(plan)
    with brokers_moved(here, other):
        with pytest.raises(WrongCluster, match=both):
            plan_fleet(here, FleetPlanRequest("kafka"), "ann")
        with pytest.raises(WrongCluster, match=both):
            run.act()
    assert operations.offsets("kafka", GROUP) == {(TOPIC, 0): 20}

    moves = brokers_moved(here, other)
    run = operations.run(plan, tell=when_acting(moves.__enter__))
    result = run.act()
    assert result.state == RunState.FAILED
    assert here.cluster_id in result.sentence
    assert other.cluster_id in result.sentence
    with pytest.raises(WrongCluster, match=both):
        run.resume()
    moves.__exit__(None, None, None)
    assert operations.offsets("kafka", GROUP) == {(TOPIC, 0): 20}

    run.resume().raise_unless(RunState.VERIFIED)
    with brokers_moved(here, other), pytest.raises(WrongCluster, match=both):
        run.undo()
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.offsets("kafka", GROUP) == {(TOPIC, 0): 20}


@pytest.mark.parametrize("cluster_id", ["AnotherCluster", None])
def test_zookeeper_of_another_cluster_or_without_an_id_is_refused(here, operations, cluster_id):
    found = cluster_id or "no /cluster/id"
    run = operations.run(plan_of(here))
    with zookeeper_moved(here, cluster_id):
        for refused in (lambda: plan_fleet(here, FleetPlanRequest("kafka"), "ann"), run.act):
            with pytest.raises(WrongCluster, match=f"{here.cluster_id}.*{found}"):
                refused()
    run.act().raise_unless(RunState.VERIFIED)
