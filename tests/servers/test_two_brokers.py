"""Undos beside brokers that come and go: leaders that change, and a broker that knows no topic yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event

import pytest
from confluent_kafka.cimpl import NewTopic

from kit import connect
from kit.clients.broker_client import BrokerClient
from kit.engine.execution.run import Run
from kit.engine.model.states import RunState
from kit.lab import faults
from kit.lab.topics import knows_all
from kit.moves.offsets import group_deleter
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, performer, plan_delete_groups
from kit.moves.offsets.fetch import fetch_topics
from kit.moves.offsets.moves import Stored
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import OffsetOperations, ProcessLock
from tests.servers.tuned_lab import TunedLab

TOPIC, FIRST, SECOND = "led", "undone-first", "undone-second"
NOW = datetime.now(UTC)
NO_BROKER = 99


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[OffsetOperations]:
    """Broker 1 coordinates all groups; broker 2 leads the topic while it runs, and both have its records."""
    folder = tmp_path_factory.mktemp("two")
    settings = {"auto.leader.rebalance.enable": "false"}
    with TunedLab(settings, brokers=2) as lab:
        homes = {"__consumer_offsets": [[1]] * 3, TOPIC: [[2, 1]]}
        compact = {"__consumer_offsets": {"cleanup.policy": "compact"}}
        topics = [
            NewTopic(name, num_partitions=len(of), replica_assignment=of, config=compact.get(name, {}))
            for name, of in homes.items()
        ]
        for future in lab.admin.create_topics(topics).values():
            future.result(SECONDS)
        path = folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            site = OffsetOperations(cluster, folder / "runs")
            site.lab, site.performer = lab, performer(cluster)
            awaited(lambda: epoch(site), lambda found: found == 0, "the topic's leader")
            lab._partitions[TOPIC] = 1
            lab.produce(TOPIC, 100)
            yield site


def epoch(site: OffsetOperations) -> int | None:
    topic = fetch_topics(site.cluster).get(TOPIC)
    return None if topic is None else topic.leader_epochs.get(0)


def plan(site: OffsetOperations, *groups: str):
    return plan_delete_groups(site.cluster, DeleteGroupsRequest(groups), "ann", NOW)


def taken_up(site: OffsetOperations, run: Run, tell=None) -> Run:
    return Run(run.folder, site.performer, ProcessLock(), poll_s=0.1, tell=tell)


def in_sync(site: OffsetOperations) -> list[int]:
    return site.lab.admin.list_topics(TOPIC, SECONDS).topics[TOPIC].partitions[0].isrs


def test_a_second_undo_after_the_leader_changed_restores_no_epoch_of_the_future(site, monkeypatch):
    """The undo is stopped after the first group. Then the leader changes, and a consumer commits for that group."""
    monkeypatch.setattr(group_deleter, "GROUPS_PER_BATCH", 1)
    for group in (FIRST, SECOND):
        site.commit(group, TOPIC, {0: Stored(20, "m", 0)})
    run = site.run(plan(site, FIRST, SECOND))
    run.act().raise_unless(RunState.VERIFIED)
    again = taken_up(site, run, lambda event: event.event == "undone" and again.request_stop("ann"))
    assert again.undo().state == RunState.UNDO_HALTED
    assert (site.stored("kafka", FIRST), site.stored("kafka", SECOND)) == ({(TOPIC, 0): Stored(20, "m", 0)}, {})
    faults.stop(faults.broker(site.lab, 2))
    awaited(lambda: epoch(site), lambda found: found == 1, "the other leader")
    site.commit(FIRST, TOPIC, {0: Stored(70, "later", 1)})
    taken_up(site, run).undo().raise_unless(RunState.UNDONE)
    assert site.stored("kafka", FIRST) == {(TOPIC, 0): Stored(70, "later", 1)}
    assert site.stored("kafka", SECOND) == {(TOPIC, 0): Stored(20, "m", 0)}
    faults.restart_broker(site.lab, 2)
    awaited(lambda: in_sync(site), lambda replicas: 2 in replicas, "broker 2 in sync")
    run = site.run(plan(site, FIRST, SECOND))
    run.act().raise_unless(RunState.VERIFIED)
    faults.stop(faults.broker(site.lab, 2))
    run.undo().raise_unless(RunState.UNDONE)
    faults.restart_broker(site.lab, 2)
    present = epoch(site)
    for group, offset in ((FIRST, 70), (SECOND, 20)):
        (restored,) = site.stored("kafka", group).values()
        assert (restored.offset, restored.leader_epoch <= present) == (offset, True)
        consumer = site.lab.start_console_consumer(group, TOPIC)
        awaited(consumer.records, lambda records, left=100 - offset: len(records) == left, "Java's consumer reads")
        consumer.stop()


@contextmanager
def without_controller(site: OffsetOperations) -> Iterator[None]:
    """The controller's znode names a broker that does not exist, so no broker takes its place."""
    client = site.cluster.zookeeper
    change = client.transaction()
    change.delete("/controller")
    change.create(
        "/controller", json.dumps({"version": 1, "brokerid": NO_BROKER, "timestamp": "0"}).encode(), ephemeral=True
    )
    assert change.commit() == [True, "/controller"]
    try:
        yield
    finally:
        client.delete("/controller")
        for each in site.lab.servers.brokers:
            awaited(lambda each=each: knows_all(each.addresses["PLAINTEXT"], 2), bool, f"{each.name} knows all brokers")


def test_a_broker_that_knows_no_topic_yet_proves_no_topic_gone(site, monkeypatch):
    """It has just started, and no controller has sent it the topics. The undo ended without the group's offsets."""
    site.commit(SECOND, TOPIC, {0: 30})
    run = site.run(plan(site, SECOND))
    run.act().raise_unless(RunState.VERIFIED)
    late, waits = faults.broker(site.lab, 2), Event()
    faults.stop(late)
    pause = BrokerClient.pause

    async def paused(client, attempt):
        waits.set()
        await pause(client, attempt)

    with ThreadPoolExecutor(1) as one:
        with without_controller(site):
            faults.await_gone(site.lab, "/brokers/ids/2")
            late.launch()
            late.await_started()
            manager = site.cluster.broker_client._manager
            with monkeypatch.context() as patch:
                patch.setattr(manager, "least_loaded_node", lambda *_, **__: 2)
                patch.setattr(BrokerClient, "pause", paused)
                undone = one.submit(run.undo)
                undone.add_done_callback(lambda _: waits.set())
                assert waits.wait(SECONDS)
        undone.result(SECONDS).raise_unless(RunState.UNDONE)
    assert site.offsets("kafka", SECOND) == {(TOPIC, 0): 30}
