"""Offsets moved by plans on real servers: each operation, its undo, and what is refused when the cluster changed."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.protocol.consumer import OffsetCommitRequest, OffsetDeleteRequest
from kazoo.exceptions import ConnectionLoss

from kit import connect
from kit.engine.execution.dry_run import dry_run
from kit.engine.execution.run import Run
from kit.engine.lock import ZookeeperLock
from kit.engine.model.performer import Outcome
from kit.engine.model.states import RunState
from kit.errors import InputError, NotFound, NothingToDo, StalePlan, UnsafePlan, WrongCluster
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.moves.offsets.fetch import STORES, Stores
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import NOTHING, Stored, item_of
from kit.moves.offsets.performer import OffsetsActor, OffsetsPerformer
from kit.moves.offsets.plan import (
    PlanOptions,
    Reset,
    export_offsets,
    offset_changes,
    plan_copy,
    plan_delete,
    plan_import,
    plan_reset,
    save_backup,
    select,
)
from kit.moves.offsets.zookeeper import ZookeeperWriter, offset_path
from kit.profile import load_profile
from tests.reporting import Permissive
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator
from tests.servers.deletion import delete_topic
from tests.servers.offset_operations import (
    DEADLINE_S,
    OffsetOperations,
    ProcessLock,
    await_member,
    outcomes_of,
    register,
    when_acting,
)
from tests.soak import IS_SOAK, report

NOW = datetime.now(UTC)
OPTIONS = PlanOptions(made_by="ann", now=NOW)
BACK = replace(OPTIONS, allow_backwards=True)


@pytest.fixture(scope="module")
def profile(lab):
    path = lab.folder / "offsets.toml"
    path.write_text(lab.profile_toml())
    return load_profile(file=path)


@pytest.fixture(scope="module")
def cluster(profile):
    with connect(profile) as connected:
        yield connected


@pytest.fixture
def operations(cluster, tmp_path):
    return OffsetOperations(cluster, tmp_path / "runs")


@pytest.fixture
def topic(lab, request):
    """Two partitions of 100 records each, named after the test."""
    name = request.node.name.replace("[", "-").replace(" ", "-").rstrip("]").removeprefix("test_")[:80]
    lab.create_topic(name, 2)
    lab.produce(name, 200)
    return name


def at_rest(stores: Stores, *others: Stores) -> dict:
    """Return the content of the stores of the groups that have a member in none of these reads: a member changes
    its group.
    """
    groups = [
        (name, group) for each in (stores, *others) for store in STORES for name, group in each.groups(store).items()
    ]
    active = {name for name, group in groups if group.members}
    return {
        (store, name): each for store in STORES for name, each in stores.groups(store).items() if name not in active
    }


def in_topic(topic, **offsets):
    return {(topic, int(name[1:])): offset for name, offset in offsets.items()}


def test_a_copy_to_kafka_and_back_writes_what_was_asked_for_and_nothing_before_the_act(operations, topic):
    group = f"g-{topic}"
    operations.put(group, topic, {0: 40, 1: 60})
    before = operations.everything()
    plan = plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    dry = dry_run(plan, operations.performer)
    assert (dry.differences, [step.can_begin for step in dry.steps]) == ((), [True])
    now = operations.everything()
    assert at_rest(now, before) == at_rest(before, now), "planning or the dry run wrote something"
    run = operations.act(plan)
    assert operations.offsets("kafka", group) == in_topic(topic, p0=40, p1=60)
    outcomes = {it.item: it.outcome for it in run.record.acted(plan.steps[0]).outcomes}
    assert outcomes == dict.fromkeys([f"{group}/{topic}-0", f"{group}/{topic}-1"], Outcome.CONFIRMED)
    with pytest.raises(NothingToDo, match="every offset is as requested already"):
        plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)

    operations.commit(group, topic, {0: 50, 1: 70})
    back = plan_copy(
        operations.cluster, "kafka", "zookeeper", select(groups=group, topics=topic, partitions=[1]), OPTIONS
    )
    operations.act(back)
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=40, p1=70)


def test_real_consumers_continue_where_the_rest_stopped(operations, lab, topic):
    """An old consumer, then a new one, then an old one: each record is delivered once."""
    group = f"g-{topic}"

    def handed_out(consumer):
        return sorted((record["partition"], record["offset"]) for record in consumer.records())

    def hand_over(consumer, first, end):
        """It stops once every record was delivered, and commits."""
        expected = [(partition, offset) for partition in (0, 1) for offset in range(first, end)]
        wait_until(lambda: len(handed_out(consumer)) >= len(expected), f"records {first} to {end}", SECONDS)
        consumer.stop()
        assert handed_out(consumer) == expected

    start_old = partial(lab.start_old_consumer, group, topic, settings={"zookeeper.session.timeout.ms": "30000"})
    hand_over(start_old(), 0, 100)
    lab.produce(topic, 80)
    operations.act(plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS))
    hand_over(lab.start_new_consumer(group, topic), 100, 140)
    lab.produce(topic, 40)
    operations.await_no_members(group)
    operations.act(plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS))
    hand_over(start_old(), 140, 160)


def test_undo_brings_back_offsets_metadata_and_their_absence(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: Stored(10, "seen by ann", 0)})
    operations.put(group, topic, {0: 40, 1: 60})
    run = operations.act(plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS))
    assert operations.stored("kafka", group)[topic, 0] == Stored(40)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.stored("kafka", group) == {(topic, 0): Stored(10, "seen by ann", 0)}


def test_undo_in_zookeeper_leaves_parents_that_another_client_made(operations, topic):
    """Old consumers make their parents empty, and put a child there a moment later."""
    group, zookeeper = f"g-{topic}", operations.cluster.zookeeper
    operations.commit(group, topic, {0: 10})
    plan = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)
    zookeeper.create(f"/consumers/{group}")  # After the plan.
    run = operations.act(plan)
    zookeeper.delete(f"/consumers/{group}/offsets/{topic}", recursive=True)
    zookeeper.create(f"/consumers/{group}/offsets/{topic}")
    assert run.undo().state == RunState.UNDONE
    assert zookeeper.get_children(f"/consumers/{group}/offsets") == [topic]


def test_undo_in_zookeeper_leaves_a_group_that_another_client_made(operations, topic):
    group, zookeeper = f"g-{topic}", operations.cluster.zookeeper
    operations.commit(group, topic, {0: 10})
    plan = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)
    zookeeper.create(f"/consumers/{group}")
    operations.act(plan).undo().raise_unless(RunState.UNDONE)
    assert zookeeper.get_children(f"/consumers/{group}") == []


def test_undo_in_zookeeper_leaves_not_even_a_parent(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10, 1: 20})
    run = operations.act(plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS))
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=10, p1=20)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.cluster.zookeeper.exists(f"/consumers/{group}") is None

    operations.put(group, topic, {0: 5})
    run = operations.act(plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS))
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=5)


@pytest.mark.parametrize("store", ["kafka", "zookeeper"])
def test_deleted_offsets_come_back_by_undo_and_by_their_backup(operations, topic, tmp_path, store):
    group, file = f"g-{topic}", tmp_path / "deleted.jsonl"
    operations.commit(group, topic, {0: Stored(10, "seen by ann", 0), 1: Stored(20)})
    operations.put(group, topic, {0: 10, 1: 20})

    def held():
        return {place: replace(it, version=None) for place, it in operations.stored(store, group).items()}

    was = held()
    plan = plan_delete(operations.cluster, store, select(groups=group), OPTIONS)
    assert plan.steps[0].title == f"Delete 2 offsets of group {group!r} from {store}"
    assert save_backup(plan, file) == 2
    with pytest.raises(InputError, match="is not overwritten"):
        save_backup(plan, file)
    run = operations.act(plan)
    assert held() == {}
    assert {it.outcome for it in run.record.acted(plan.steps[0]).outcomes} == {Outcome.CONFIRMED}
    run.undo().raise_unless(RunState.UNDONE)
    assert held() == was
    operations.act(plan_delete(operations.cluster, store, select(groups=group, topics=topic, partitions=[1]), OPTIONS))
    assert held() == {(topic, 0): was[topic, 0]}
    operations.act(plan_import(operations.cluster, file, store, OPTIONS))
    assert held() == was


def test_offsets_that_only_one_store_has_are_not_deleted_unasked(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 50, 1: 60})
    operations.put(group, topic, {0: 40})
    with pytest.raises(UnsafePlan, match=r"kept_elsewhere: 2 of 2 .*-0 50, in zookeeper 40, .*-1 60, .* none"):
        plan_delete(operations.cluster, "kafka", select(groups=group), OPTIONS)
    operations.act(plan_delete(operations.cluster, "zookeeper", select(groups=group), OPTIONS))
    assert operations.offsets("zookeeper", group) == {}
    operations.act(
        plan_delete(operations.cluster, "kafka", select(groups=group), replace(OPTIONS, overrides=("kept_elsewhere",)))
    )
    assert operations.offsets("kafka", group) == {}
    with pytest.raises(NotFound, match="is not in kafka's offsets"):
        plan_delete(operations.cluster, "kafka", select(groups=group), OPTIONS)


def test_offsets_of_a_topic_that_members_subscribe_to_are_not_deleted(operations, lab, topic):
    group = f"g-{topic}"
    operations.put(group, topic, {0: 100, 1: 100})
    operations.commit(group, topic, {0: 10, 1: 10})
    plan = plan_delete(operations.cluster, "kafka", select(groups=group), OPTIONS)
    member = lab.start_new_consumer(group, topic)
    awaited(
        lambda: operations.everything().kafka[group].state, lambda state: state == "Stable", "the member has joined"
    )
    with pytest.raises(UnsafePlan, match="no_members"):
        plan_delete(operations.cluster, "kafka", select(groups=group), OPTIONS)
    with pytest.raises(StalePlan, match="group"):
        operations.run(plan).act()
    answers = operations.kafka.write({(group, topic, 0): NOTHING}, {})
    assert "the group is subscribed to this topic" in str(answers[group, topic, 0].error)
    assert (topic, 0) in operations.offsets("kafka", group)
    member.stop()


def test_offsets_that_moved_since_are_not_undone(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10, 1: 10})
    run = operations.act(plan_reset(operations.cluster, "kafka", select(groups=group), Reset("offset", 30), OPTIONS))
    operations.commit(group, topic, {0: 35})
    assert run.undo().state == RunState.UNDONE
    undone = [it for it in run.record.events if it.event == "undone"]
    told = [it.error for it in undone if it.item == f"{group}/{topic}-0"]
    assert told == ["expected 30, found 35: another operator or tool changed the offset since the plan"]
    assert operations.offsets("kafka", group) == in_topic(topic, p0=35, p1=10)


def test_group_to_group_takes_metadata_along(operations, topic):
    source, target = f"from-{topic}", f"to-{topic}"
    operations.commit(source, topic, {0: Stored(10, "m", 0), 1: Stored(20)})
    plan = plan_copy(operations.cluster, "kafka", "kafka", select(groups=source), OPTIONS, {source: target})
    assert plan.targets == (target,)
    run = operations.act(plan)
    assert operations.stored("kafka", target) == operations.stored("kafka", source)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.stored("kafka", target) == {}
    across = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=source), OPTIONS, {source: target})
    operations.act(across)
    assert operations.offsets("zookeeper", target) == in_topic(topic, p0=10, p1=20)


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("store", ["kafka", "zookeeper"])
def test_an_import_restores_what_was_exported(operations, topic, tmp_path, suffix, store):
    group, path = f'g, "{topic}"' if store == "kafka" else f"g-{topic}", tmp_path / f"offsets.{suffix}"
    if store == "kafka":
        operations.commit(group, topic, {0: Stored(10, 'a "b", c', 0), 1: Stored(20)})
    else:
        operations.put(group, topic, {0: 10, 1: 20})
    assert export_offsets(operations.cluster, path, store, select(groups=group), NOW) == (2, ())
    was = operations.stored(store, group)
    with pytest.raises(NothingToDo):
        plan_import(operations.cluster, path, store, OPTIONS)
    run = operations.act(plan_reset(operations.cluster, store, select(groups=group), Reset("latest"), OPTIONS))
    assert operations.offsets(store, group) == in_topic(topic, p0=100, p1=100)
    with pytest.raises(UnsafePlan, match="never_backwards: 2 offsets would go backwards"):
        plan_import(operations.cluster, path, store, OPTIONS)
    operations.act(plan_import(operations.cluster, path, store, BACK))
    found = operations.stored(store, group)
    assert {place: replace(it, version=None) for place, it in found.items()} == {
        place: replace(it, version=None) for place, it in was.items()
    }
    assert run.record.state == RunState.VERIFIED


def test_a_file_of_another_cluster_or_with_wrong_rows_is_refused(operations, topic, tmp_path):
    group, path = f"g-{topic}", tmp_path / "offsets.jsonl"
    operations.commit(group, topic, {0: 10})
    export_offsets(operations.cluster, path, "kafka", select(groups=group), NOW)
    header, row = path.read_text().splitlines()
    before = operations.everything()

    def refused(error, said, *lines, **told):
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(error, match=said):
            plan_import(operations.cluster, path, "kafka", OPTIONS, **told)

    other = header.replace(operations.cluster.cluster_id, "another")
    refused(WrongCluster, "holds offsets of cluster another", other, row)
    refused(NothingToDo, "already", other, row, other_cluster=True)
    refused(InputError, "was edited", header, row.replace("10", "12"))
    refused(NotFound, f"{topic}-7", header, row.replace('"partition":0', '"partition":7'), edited=True)
    refused(NotFound, "nobody", header, row.replace(group, "nobody"), edited=True)
    refused(InputError, "is in line 2 and in line 3", header, row, row, edited=True)
    refused(InputError, "line 2: offset is -1", header, row.replace("10", "-1"), edited=True)
    now = operations.everything()
    assert at_rest(now, before) == at_rest(before, now)


def test_a_reset_commits_the_offset_that_its_rule_names(operations, lab, topic):
    group = f"g-{topic}"
    middle = datetime.now(UTC)
    wait_until(lambda: (datetime.now(UTC) - middle) > timedelta(milliseconds=20), "a later millisecond", SECONDS)
    lab.produce(topic, 100)
    operations.commit(group, topic, {0: 50})
    everything = select(groups=group, topics=topic)
    expected = {
        Reset("earliest"): (0, 0),
        Reset("latest"): (150, 150),
        Reset("offset", 70): (70, 70),
        Reset("shift", -20): (50, 50),
        Reset("shift", 500): (150, 150),
        Reset("time", middle): (100, 100),
        Reset("time", NOW + timedelta(days=1)): (150, 150),
        Reset("ago", timedelta(days=1)): (0, 0),
    }
    for reset, (first, second) in expected.items():
        operations.act(plan_reset(operations.cluster, "kafka", everything, reset, BACK))
        assert operations.offsets("kafka", group) == in_topic(topic, p0=first, p1=second), reset
    changes = offset_changes(plan_reset(operations.cluster, "kafka", everything, Reset("shift", 900), BACK))
    assert changes["reason"].to_list() == ["900 is beyond the log's end: lowered to 150"] * 2
    assert changes.select("before", "wanted", "after").rows() == [(0, 900, 150)] * 2
    late = offset_changes(
        plan_reset(operations.cluster, "kafka", everything, Reset("time", NOW + timedelta(days=1)), OPTIONS)
    )
    assert (
        late["reason"].to_list()
        == ["all records are older than that time, so the offset is set to the end of the log (latest)"] * 2
    )


def test_offsets_outside_the_log_are_moved_to_its_nearest_end(operations, lab, topic):
    group = f"g-{topic}"
    operations.put(group, topic, {0: 10, 1: 500})
    for future in lab.admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result()
    plan = plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    assert offset_changes(plan).select("wanted", "after", "reason").rows() == [
        (10, 30, "10 is before the log's start: raised to 30"),
        (500, 100, "500 is beyond the log's end: lowered to 100"),
    ]
    assert "Not as requested: 2 of 2 offsets" in plan.risks[0]
    operations.act(plan)
    assert operations.offsets("kafka", group) == in_topic(topic, p0=30, p1=100)


def test_backwards_only_when_asked_and_listed_when_skipped(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 50, 1: 10})
    operations.put(group, topic, {0: 40, 1: 60})
    arguments = operations.cluster, "zookeeper", "kafka", select(groups=group)
    with pytest.raises(UnsafePlan, match=rf"never_backwards: 1 offset would go backwards: {group}/{topic}-0 50 → 40"):
        plan_copy(*arguments, OPTIONS)
    plan = plan_copy(*arguments, replace(OPTIONS, skip_backwards=True))
    assert plan.parameters["left_out"] == {f"{group}/{topic}-0": "the offset would go backwards: 50 → 40"}
    assert [change.item for change in plan.steps[0].changes] == [f"{group}/{topic}-1"]
    allowed = plan_copy(*arguments, BACK)
    assert set(allowed.overridden) == {"never_backwards"}
    operations.act(allowed)
    assert operations.offsets("kafka", group) == in_topic(topic, p0=40, p1=60)


def test_a_znode_without_a_number_is_reported_and_kept(operations, topic):
    group = f"g-{topic}"
    operations.put(group, topic, {0: "forty", 1: 5})
    operations.commit(group, topic, {0: 50, 1: 60})
    with pytest.raises(UnsafePlan, match=r"readable_offsets: 1 can't be read and are not overwritten.*'forty'"):
        plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)


@pytest.fixture
def member(lab):
    """Joins groups as a Kafka consumer, and leaves them."""
    members = []

    def join(group, topic):
        consumer = Consumer(
            {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
        )
        members.append(consumer)
        await_member(consumer, topic)
        return consumer

    yield join
    for consumer in members:
        consumer.close()


def test_groups_with_members_are_refused(operations, topic, member):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10})
    operations.put(group, topic, {0: 40})
    to_kafka = operations.cluster, "zookeeper", "kafka", select(groups=group)
    to_zookeeper = operations.cluster, "kafka", "zookeeper", select(groups=group)
    path = register(operations.cluster, group, "host-1-a")
    with pytest.raises(UnsafePlan, match=r"no_members: 1 of 1 group: .*has 1 member, first"):
        plan_copy(*to_zookeeper, BACK)
    with pytest.raises(UnsafePlan, match="idle_elsewhere"):
        plan_copy(*to_kafka, OPTIONS)
    plan = plan_copy(*to_kafka, replace(OPTIONS, overrides=("idle_elsewhere",)))
    assert any(risk.startswith("source_idle") for risk in plan.risks)
    operations.cluster.zookeeper.delete(path)
    member(group, topic)
    with pytest.raises(UnsafePlan, match="no_members"):
        plan_copy(*to_kafka, replace(OPTIONS, overrides=("idle_elsewhere",)))
    with pytest.raises(UnsafePlan, match="can't be overridden"):
        plan_copy(*to_kafka, replace(OPTIONS, overrides=("no_members",)))


@pytest.mark.parametrize("change", ["member", "old member", "target", "source", "topic"])
def test_a_change_after_the_plan_voids_it(operations, lab, topic, member, change):
    group = f"g-{topic}".replace(" ", "-")
    operations.commit(group, topic, {0: 10})
    operations.put(group, topic, {0: 40})
    plan = plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    if change == "member":
        member(group, topic)
    elif change == "old member":
        register(operations.cluster, group, "host-1-a")
    elif change == "target":
        operations.commit(group, topic, {0: 11})
    elif change == "source":
        operations.put(group, topic, {0: 41})
    else:
        delete_topic(lab, topic)
    run = operations.run(plan)
    said = {
        "member": f"kafka group {group}/members",
        "old member": f"zookeeper group {group}/members",
        "target": f"kafka offsets {group}/{topic}-0: expected 10 .exact., found 11",
        "source": f"zookeeper offsets {group}/{topic}-0: expected 40 .exact., found 41",
        "topic": "found n",
    }
    with pytest.raises(StalePlan, match=said[change]):
        run.act()
    assert run.record.state == RunState.STALE
    assert operations.offsets("kafka", group) != in_topic(topic, p0=40)


def test_a_group_that_becomes_active_in_the_midst_of_it_is_refused_alone(operations, topic, member):
    calm, active = f"calm-{topic}", f"active-{topic}"
    for group in (calm, active):
        operations.commit(group, topic, {0: 10, 1: 10})
    plan = plan_reset(operations.cluster, "kafka", select(groups=[calm, active]), Reset("offset", 20), OPTIONS)
    run = operations.run(plan, tell=when_acting(lambda: member(active, topic)))
    ending = run.act()
    assert ending.state == RunState.FAILED
    assert "2 of 4 items were not done" in ending.sentence
    found = outcomes_of(run, plan)
    assert {item for item, (outcome, _) in found.items() if outcome == Outcome.CONFIRMED} == {
        f"{calm}/{topic}-0",
        f"{calm}/{topic}-1",
    }
    assert found[f"{active}/{topic}-0"][0] == Outcome.REFUSED
    assert "the group has members now" in found[f"{active}/{topic}-0"][1]
    assert run.undo().state == RunState.UNDONE
    assert operations.offsets("kafka", calm) == in_topic(topic, p0=10, p1=10)


def test_a_run_is_resumed_when_the_member_has_left_again(operations, topic, member):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10, 1: 10})
    plan = plan_reset(operations.cluster, "kafka", select(groups=group), Reset("offset", 20), OPTIONS)
    joined = []
    run = operations.run(plan, tell=when_acting(lambda: joined.append(member(group, topic))))
    assert run.act().state == RunState.FAILED
    ending = operations_again(operations, run).resume()
    assert ending.state == RunState.FAILED
    assert "kafka group" in ending.sentence
    joined[0].close()
    operations.await_no_members(group)
    assert operations_again(operations, run).resume().state == RunState.VERIFIED
    assert operations.offsets("kafka", group) == in_topic(topic, p0=20, p1=20)


def operations_again(operations, run) -> Run:
    """Another process that takes the run up."""
    return Run(run.folder, OffsetsPerformer(operations.cluster, DEADLINE_S), ProcessLock(), poll_s=0.1)


def test_znodes_that_change_in_the_midst_of_it_are_refused_alone(operations, topic):
    calm, busy, odd = (f"{name}-{topic}" for name in ("calm", "busy", "odd"))
    for group in (calm, busy, odd):
        operations.commit(group, topic, {0: 30, 1: 30})
        operations.put(group, topic, {0: 10, 1: 10})
    plan = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=[calm, busy, odd]), OPTIONS)

    def disturb():
        register(operations.cluster, busy, "host-1-a")
        operations.put(odd, topic, {0: 11, 1: "eleven"})
        operations.cluster.zookeeper._connection._socket.shutdown(socket.SHUT_RDWR)

    run = operations.run(plan, tell=when_acting(disturb))
    assert run.act().state == RunState.FAILED
    found = outcomes_of(run, plan)
    assert [found[f"{calm}/{topic}-{number}"] for number in (0, 1)] == [(Outcome.CONFIRMED, None)] * 2
    assert found[f"{busy}/{topic}-0"] == (
        Outcome.REFUSED,
        f"the group has 1 member now, first {busy}_host-1-a: stop them",
    )
    assert found[f"{odd}/{topic}-0"] == (
        Outcome.REFUSED,
        "expected 10, found 11: another operator or tool changed the offset since the plan",
    )
    assert found[f"{odd}/{topic}-1"][0] == Outcome.NOT_ATTEMPTED
    assert "'eleven', not an offset" in found[f"{odd}/{topic}-1"][1]
    assert operations.offsets("zookeeper", odd) == in_topic(topic, p0=11, p1=None)


def test_a_znode_that_changes_between_reading_and_writing_is_not_overwritten(operations, topic):
    group = f"g-{topic}"
    keys = [(group, topic, 0), (group, topic, 1)]
    operations.put(group, topic, {0: 10, 1: 10})
    writer = ZookeeperWriter(operations.cluster.zookeeper, DEADLINE_S)
    known = writer.read(keys)
    operations.put(group, topic, {0: 12})
    answers = writer.write(dict.fromkeys(keys, Stored(20)), known)
    assert [answers[key].error for key in keys] == ["another client wrote this znode meanwhile", None]
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=12, p1=20)


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_write_to_zookeeper_whose_answer_is_lost_is_made_once(operations, topic, is_sent):
    """Read back before it is tried again, so that a write that went through is neither lost nor repeated."""
    group = f"g-{topic}"
    operations.put(group, topic, {0: 10})

    class Lossy(ZookeeperWriter):
        losses = 1

        def _results(self, transaction):
            results = super()._results(transaction) if is_sent or not self.losses else []
            if self.losses:
                self.losses -= 1
                raise ConnectionLoss()
            return results

    writer, keys = Lossy(operations.cluster.zookeeper, DEADLINE_S), [(group, topic, 0)]
    known = writer.read(keys)
    assert writer.write({keys[0]: Stored(20)}, known)[keys[0]].error is None
    assert writer.read(keys) == {keys[0]: Stored(20, version=known[keys[0]].version + 1)}


def test_brokers_that_answer_for_one_group_at_a_time_give_the_same(operations, topic):
    """Before Kafka 3.0 OffsetFetch took one group, and before 2.4 nothing could delete an offset."""
    groups = [f"{name}-{topic}" for name in ("a", "b")]

    class Old:
        """The client to brokers that know less."""

        def supports(self, request, version):
            return request is not OffsetDeleteRequest and version < 8

        def __getattr__(self, name):
            return getattr(operations.cluster.broker_client, name)

    cluster = replace(operations.cluster, broker_client=Old())
    for group in groups:
        operations.commit(group, topic, {0: Stored(10, "m", 0)})
    keys = [(group, topic, partition) for group in groups for partition in (0, 1)]
    assert KafkaWriter(cluster.broker_client).read(keys) == operations.kafka.read(keys)
    plan = plan_reset(cluster, "kafka", select(groups=groups, topics=topic), Reset("latest"), OPTIONS)
    assert "can't delete single offsets" in plan.steps[0].cannot_be_undone


@pytest.mark.parametrize("is_sent", [True, False])
def test_the_outcome_of_an_unanswered_commit_is_read_back(operations, topic, is_sent):
    """Until the deadline; then the offset that is read back shows."""
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10})

    class Mute:
        """The client, but for the answers to commits."""

        def send(self, request, broker_id=None):
            if not isinstance(request, OffsetCommitRequest):
                return operations.cluster.broker_client.send(request, broker_id)
            if is_sent:
                operations.cluster.broker_client.send(request, broker_id)
            return Future().failure(kafka_errors.RequestTimedOutError())

        def __getattr__(self, name):
            return getattr(operations.cluster.broker_client, name)

    step = plan_reset(operations.cluster, "kafka", select(groups=group), Reset("latest"), OPTIONS).steps[0]
    actor = OffsetsActor(replace(operations.cluster, broker_client=Mute()), deadline_s=0.5)
    (outcome,) = actor.act(step, Permissive())
    if is_sent:
        assert (outcome.outcome, outcome.after) == (Outcome.CONFIRMED, 100)
    else:
        assert (outcome.outcome, outcome.after) == (Outcome.UNKNOWN, 10)
        assert outcome.error == "the coordinator did not answer the request; the offset reads back as 10"


def test_nothing_is_written_by_any_plan_or_dry_run(operations, topic, tmp_path):
    group, path = f"g-{topic}", tmp_path / "offsets.jsonl"
    operations.commit(group, topic, {0: Stored(10, "m", 0), 1: Stored(20)})
    operations.put(f"old-{group}", topic, {0: 10, 1: 20})
    export_offsets(operations.cluster, path, "kafka", select(groups=group), NOW)
    before, tree = operations.everything(), operations.cluster.zookeeper.get_children("/consumers")
    of_group, of_old = select(groups=group), select(groups=f"old-{group}")
    plans = [
        plan_copy(operations.cluster, "kafka", "zookeeper", of_group, OPTIONS),
        plan_copy(operations.cluster, "kafka", "kafka", of_group, OPTIONS, {group: f"new-{group}"}),
        plan_copy(operations.cluster, "zookeeper", "kafka", of_old, OPTIONS),
        plan_import(operations.cluster, path, "zookeeper", OPTIONS),
        *(
            plan_reset(operations.cluster, "kafka", of_group, reset, BACK)
            for reset in (Reset("earliest"), Reset("latest"))
        ),
        plan_reset(operations.cluster, "zookeeper", of_old, Reset("ago", timedelta(days=1)), BACK),
    ]
    for plan in plans:
        assert all(step.can_begin for step in dry_run(plan, operations.performer).steps), plan.kind
        run = operations.run(plan)
        run.request_stop("ann")
        assert run.act().state == RunState.STOPPED
    now = operations.everything()
    assert at_rest(now, before) == at_rest(before, now)
    assert operations.cluster.zookeeper.get_children("/consumers") == tree


def test_a_missing_item_is_named(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10})
    cluster, latest, copied = operations.cluster, Reset("latest"), ("kafka", "zookeeper")

    def refused(error, said, call, *arguments):
        with pytest.raises(error, match=said):
            call(cluster, *arguments, OPTIONS)

    refused(NotFound, "group 'nobody' is not in kafka's offsets", plan_copy, *copied, select(groups="nobody"))
    nowhere, second, third = (
        select(groups=group, topics="nowhere"),
        select(groups=group, topics=topic, partitions=[1]),
        select(groups=group, topics=topic, partitions=[2]),
    )
    refused(NotFound, "has no offset of topic 'nowhere'", plan_copy, *copied, nowhere)
    refused(NotFound, f"has no offset of {topic}-1", plan_copy, *copied, second)
    refused(NotFound, "'nobody' is not in ZooKeeper or Kafka", plan_reset, "kafka", select(groups="nobody"), latest)
    refused(NotFound, "there is no topic 'nowhere'", plan_reset, "kafka", nowhere, latest)
    refused(NotFound, "has 2 partitions", plan_reset, "kafka", third, latest)
    refused(NotFound, "name their topics", plan_reset, "zookeeper", select(groups=group), latest)
    refused(InputError, "neither 'kafka' nor 'zookeeper'", plan_reset, "disk", select(groups=group), latest)
    operations.commit(f"a/{group}", topic, {0: 10})
    alone, both = select(groups=f"a/{group}"), select(groups=[f"a/{group}", group])
    refused(NothingToDo, "no offset is left to be .*a znode can.t have the group.s name", plan_copy, *copied, alone)
    left_out = plan_copy(cluster, *copied, both, replace(OPTIONS, allow_backwards=True)).parameters["left_out"]
    assert list(left_out) == [f"a/{group}/{topic}-0"]
    new = plan_reset(cluster, "kafka", select(groups="nobody", topics=topic), latest, replace(OPTIONS, new_groups=True))
    assert [change.before for change in new.steps[0].changes] == [None, None]


def test_copies_of_a_group_onto_itself_or_of_two_into_one_are_refused(operations, topic):
    one, two = f"one-{topic}", f"two-{topic}"
    for group in (one, two):
        operations.commit(group, topic, {0: 10})
    for groups, to_groups, said in (
        ([one], {}, "copies nothing"),
        ([one], {one: one}, "onto itself"),
        ([one], {two: "both"}, "is not selected"),
        ([one, two], {one: "both", two: "both"}, "would both be copied into 'both'"),
    ):
        with pytest.raises(InputError, match=said):
            plan_copy(operations.cluster, "kafka", "kafka", select(groups=groups), OPTIONS, to_groups)


def test_a_topic_that_is_gone_is_left_out_of_a_copy(operations, topic):
    group, other = f"g-{topic}", f"{topic}-gone"
    operations.put(group, topic, {0: 10})
    operations.put(group, other, {0: 10})
    plan = plan_copy(operations.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    assert plan.parameters["left_out"] == {
        f"{group}/{other}-0": "no broker knows this topic: it was deleted, or never existed"
    }
    operations.act(plan)
    assert operations.offsets("kafka", group) == in_topic(topic, p0=10)


def test_new_znodes_are_for_those_that_their_parents_are_for(secured_lab, tmp_path, monkeypatch):
    """A store behind a digest gets no offset that everybody may write."""
    for name, secret in secured_lab.secrets.items():
        monkeypatch.setenv(name, secret)
    path = tmp_path / "offramp.toml"
    path.write_text(secured_lab.profile_toml())
    secured_lab.create_topic("guarded", 1)
    secured_lab.produce("guarded", 10)
    with connect(load_profile(file=path)) as cluster:
        operations = OffsetOperations(cluster, tmp_path / "runs")
        operations.commit("guard", "guarded", {0: 7})
        operations.act(plan_copy(cluster, "kafka", "zookeeper", select(groups="guard"), OPTIONS))
        above, _ = cluster.zookeeper.get_acls("/consumers")
        for node in ("", "/offsets", "/offsets/guarded", "/offsets/guarded/0"):
            assert cluster.zookeeper.get_acls(f"/consumers/guard{node}")[0] == above
        assert operations.offsets("zookeeper", "guard") == in_topic("guarded", p0=7)
        at = datetime.now(UTC) - timedelta(days=1)
        operations.act(plan_reset(cluster, "kafka", select(groups="guard"), Reset("time", at), BACK))
        assert operations.offsets("kafka", "guard") == in_topic("guarded", p0=0)


def test_a_group_of_the_new_protocol_is_reset_without_zookeeper_once_its_member_has_left(kraft_lab, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic("reset-848", 1)
    kraft_lab.produce("reset-848", 10)
    with connect(load_profile(file=path)) as cluster:
        operations, group = OffsetOperations(cluster, tmp_path / "runs"), "reset-848"
        settings = {**QUIET, "bootstrap.servers": kraft_lab.bootstrap_servers, "group.protocol": "consumer"}
        consumer = Consumer({**settings, "group.id": group, "enable.auto.commit": False})
        await_member(consumer, "reset-848")
        consumer.commit(offsets=[TopicPartition("reset-848", 0, 3)], asynchronous=False)
        arguments = cluster, "kafka", select(groups=group), Reset("offset", 8)
        with pytest.raises(UnsafePlan, match="no_members"):
            plan_reset(*arguments, OPTIONS)
        consumer.close()
        operations.await_no_members(group)
        run = operations.act(plan_reset(*arguments, OPTIONS))
        assert operations.offsets("kafka", group) == in_topic("reset-848", p0=8)
        run.undo().raise_unless(RunState.UNDONE)
        assert operations.offsets("kafka", group) == in_topic("reset-848", p0=3)
        with pytest.raises(InputError, match="has no zookeeper_connect"):
            plan_copy(cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)


def test_offsets_of_a_topic_that_went_after_the_act_need_no_undo(operations, lab, topic):
    group, other = f"g-{topic}", f"{topic}-2"
    lab.create_topic(other, 1)
    lab.produce(other, 50)
    operations.commit(group, topic, {0: 10})
    operations.commit(group, other, {0: 10})
    run = operations.act(plan_reset(operations.cluster, "kafka", select(groups=group), Reset("latest"), OPTIONS))
    delete_topic(lab, other)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.offsets("kafka", group)[topic, 0] == 10


def test_deleted_offsets_of_a_topic_that_went_since_need_no_undo(operations, lab, topic):
    group, other = f"g-{topic}", f"{topic}-2"
    lab.create_topic(other, 1)
    operations.put(group, topic, {0: 10})
    operations.put(group, other, {0: 0})
    operations.commit(group, topic, {0: 10})
    operations.commit(group, other, {0: 0})
    run = operations.act(plan_delete(operations.cluster, "kafka", select(groups=group), OPTIONS))
    delete_topic(lab, other)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.offsets("kafka", group) == {(topic, 0): 10}


def test_a_value_that_another_client_had_written_is_left_alone(operations, topic):
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 10, 1: 10})
    plan = plan_reset(operations.cluster, "kafka", select(groups=group), Reset("offset", 20), OPTIONS)
    run = operations.run(plan, tell=when_acting(lambda: operations.commit(group, topic, {0: 20})))
    assert run.act().state == RunState.VERIFIED
    assert outcomes_of(run, plan)[f"{group}/{topic}-0"] == (Outcome.UNCHANGED, None)
    run.undo().raise_unless(RunState.UNDONE)
    assert operations.offsets("kafka", group) == in_topic(topic, p0=20, p1=10)


def test_undo_leaves_alone_a_group_that_later_runs_changed(operations, topic):
    """Also where its offsets are again those that the first run wrote: by their value nobody could tell."""
    mine, theirs = f"mine-{topic}", f"theirs-{topic}"
    for group in (mine, theirs):
        operations.commit(group, topic, {0: 10, 1: 10})

    def reset(groups, offset) -> Run:
        plan = plan_reset(operations.cluster, "kafka", select(groups=groups), Reset("offset", offset), BACK)
        lock = ZookeeperLock(operations.cluster)
        run = Run(operations.run(plan).folder, OffsetsPerformer(operations.cluster, DEADLINE_S), lock, poll_s=0.1)
        run.act().raise_unless(RunState.VERIFIED)
        return run

    first = reset([mine, theirs], 20)
    reset(theirs, 30)
    last = reset(theirs, 20)
    undone = first.undo()
    assert undone.state == RunState.UNDONE
    assert f"{theirs}/{topic}-0: run {last.run_id} changed this item after this run" in undone.sentence
    assert operations.offsets("kafka", mine) == in_topic(topic, p0=10, p1=10)
    assert operations.offsets("kafka", theirs) == in_topic(topic, p0=20, p1=20)
    last.undo().raise_unless(RunState.UNDONE)


@pytest.mark.parametrize("halt", ["stop", "crash"])
def test_a_run_that_is_halted_between_two_batches_writes_each_znode_once(operations, topic, monkeypatch, halt):
    """Each znode is written once, however often the run is taken up."""
    monkeypatch.setattr("kit.moves.offsets.performer.KEYS_PER_BATCH", 1)
    group = f"g-{topic}"
    operations.commit(group, topic, {0: 30, 1: 40})
    operations.put(group, topic, {0: 10, 1: 10})
    versions = {place: stored.version for place, stored in operations.stored("zookeeper", group).items()}
    plan = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)

    def interfere(outcomes):
        if halt == "crash":
            raise KeyboardInterrupt
        halting.request_stop("ann")

    performer = Watched(OffsetsPerformer(operations.cluster, DEADLINE_S), interfere)
    halting = Run(operations.run(plan).folder, performer, ProcessLock(), poll_s=0.1)
    with suppress(KeyboardInterrupt):
        halting.act()
    assert halting.record.state == RunState.STOPPED
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=30, p1=10)
    assert operations_again(operations, halting).resume().state == RunState.VERIFIED
    stored = operations.stored("zookeeper", group)
    assert {place: it.version for place, it in stored.items()} == {place: it + 1 for place, it in versions.items()}
    assert operations_again(operations, halting).undo().state == RunState.UNDONE
    assert operations.offsets("zookeeper", group) == in_topic(topic, p0=10, p1=10)


class WatchedReport:
    def __init__(self, report, see) -> None:
        self._report, self._see = report, see
        self.acted = report.acted

    def attempt(self, items, details=None) -> None:
        self._report.attempt(items, details)

    def __call__(self, outcomes) -> None:
        self._see(outcomes)
        self._report(outcomes)


class Watched:
    """A performer of which each batch is seen before it is reported."""

    def __init__(self, performer, see) -> None:
        self._performer, self._see = performer, see

    def act(self, step, report):
        return self._performer.act(step, WatchedReport(report, self._see))

    def __getattr__(self, name):
        return getattr(self._performer, name)


GROUPS, PARTITIONS = 1000 if IS_SOAK else 100, 20


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two brokers, each of which can coordinate every group."""
    with Lab(brokers=2) as lab:
        await_coordinator(lab)
        path = lab.folder / "pair.toml"
        path.write_text(lab.profile_toml())
        lab.create_topics({"kept": PARTITIONS - 2, "doomed": 2}, replication=2)
        lab.produce("kept", 1000 * (PARTITIONS - 2))
        lab.produce("doomed", 2000)
        with connect(load_profile(file=path)) as cluster:
            yield lab, OffsetOperations(cluster, tmp_path_factory.mktemp("runs"))


def test_many_groups_are_copied_to_zookeeper_over_a_line_that_breaks(pair, record_property):
    """A member registers, a znode is overwritten, one gets no number, and each batch loses its connection."""
    operations = pair[1]
    zookeeper = operations.cluster.zookeeper
    groups = [f"moving-{number:04d}" for number in range(GROUPS)]
    places = [("kept", number) for number in range(PARTITIONS - 2)] + [("doomed", 0), ("doomed", 1)]
    keys = [(group, *place) for group in groups for place in places]
    answers = operations.kafka.write(dict.fromkeys(keys, Stored(10)), {})
    assert {answer.error for answer in answers.values()} == {None}
    for group in groups[:3]:
        operations.put(group, "kept", {0: 5})
    plan = plan_copy(operations.cluster, "kafka", "zookeeper", select(groups=groups), OPTIONS)

    def disturb():
        register(operations.cluster, groups[0], "host-1-a")
        operations.put(groups[1], "kept", {0: 6})
        operations.put(groups[2], "kept", {0: "six"})

    def cut(outcomes):
        zookeeper._connection._socket.shutdown(socket.SHUT_RDWR)

    run = Run(
        operations.run(plan).folder,
        Watched(OffsetsPerformer(operations.cluster, DEADLINE_S), cut),
        ProcessLock(),
        poll_s=0.1,
        tell=when_acting(disturb),
    )
    assert run.act().state == RunState.FAILED
    found = outcomes_of(run, plan)
    report(record_property, f"{len(found):,} offsets of {GROUPS:,} groups")
    member = {item_of((groups[0], *place)) for place in places}
    moved, odd = item_of((groups[1], "kept", 0)), item_of((groups[2], "kept", 0))
    assert {found[item][0] for item in member} == {Outcome.REFUSED}
    assert found[moved] == (
        Outcome.REFUSED,
        "expected 5, found 6: another operator or tool changed the offset since the plan",
    )
    assert found[odd][0] == Outcome.NOT_ATTEMPTED
    assert {found[item][0] for item in found.keys() - member - {moved, odd}} == {Outcome.CONFIRMED}
    stored = ZookeeperWriter(zookeeper, DEADLINE_S).read(keys)
    written = {key for key, it in stored.items() if it.offset == 10}
    assert {item_of(key) for key in written} == found.keys() - member - {moved, odd}
    assert run.undo().state == RunState.UNDONE
    assert zookeeper.exists(f"/consumers/{groups[GROUPS // 2]}") is None
    assert zookeeper.get(offset_path((groups[2], "kept", 0)))[0] == b"six"


def test_each_item_of_many_groups_is_reported_when_all_goes_wrong(pair, record_property):
    """A group becomes active, another's offset is moved, a topic is deleted, a broker goes: told item by item."""
    lab, operations = pair
    groups = [f"many-{number:04d}" for number in range(GROUPS)]
    places = [("kept", number) for number in range(PARTITIONS - 2)] + [("doomed", 0), ("doomed", 1)]
    keys = [(group, *place) for group in groups for place in places]
    answers = operations.kafka.write(dict.fromkeys(keys, Stored(10)), {})
    assert {answer.error for answer in answers.values()} == {None}
    plan = plan_reset(operations.cluster, "kafka", select(groups=groups), Reset("latest"), OPTIONS)
    assert (len(plan.steps), len(plan.steps[0].changes)) == (1, GROUPS * PARTITIONS)
    consumer = Consumer(
        {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": groups[5], "enable.auto.commit": False}
    )

    def disturb():
        delete_topic(lab, "doomed")
        await_member(consumer, "kept")
        operations.commit(groups[7], "kept", {3: 11})
        faults.kill(faults.broker(lab, 2))

    performer = OffsetsPerformer(operations.cluster, DEADLINE_S)
    operations.performer = performer
    run = operations.run(plan, tell=when_acting(disturb))
    try:
        ending = run.act()
        found = outcomes_of(run, plan)
        report(record_property, f"{len(found):,} offsets of {GROUPS:,} groups")
        kept = {item_of((groups[number], *place)) for number in range(GROUPS) for place in places[:-2]}
        active = {item_of((groups[5], *place)) for place in places[:-2]}
        moved = item_of((groups[7], "kept", 3))
        assert ending.state == RunState.FAILED
        assert {found[item][0] for item in kept - active - {moved}} == {Outcome.CONFIRMED}
        assert {found[item][0] for item in active} == {Outcome.REFUSED}
        assert found[moved] == (
            Outcome.REFUSED,
            "expected 10, found 11: another operator or tool changed the offset since the plan",
        )
        assert {found[item][0] for item in found.keys() - kept} == {Outcome.REFUSED}
        now = performer_offsets(operations, keys)
        assert all(now[key] == 1000 for key in keys if item_of(key) in kept - active - {moved})
        consumer.close()
        assert run.undo().state == RunState.UNDONE
        now = performer_offsets(operations, keys)
        assert all(now[key] == (11 if item_of(key) == moved else 10) for key in keys if item_of(key) in kept - active)
    finally:
        consumer.close()


def performer_offsets(operations, keys):
    return {
        key: stored.offset
        for key, stored in KafkaWriter(operations.cluster.broker_client, DEADLINE_S).read(keys).items()
    }
