"""Offsets moved by plans on real servers: each operation, its undo, and what is refused when the cluster changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient

from kit import connect
from kit.errors import (
    InputError,
    NothingToDo,
    NotFound,
    StalePlan,
    TargetBusy,
    UnsafePlan,
    WrongCluster,
)
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.migrate.approval import approve
from kit.migrate.dry_run import dry_run
from kit.migrate.offset_kafka import KafkaWriter
from kit.migrate.offset_moves import Stored, item_of
from kit.migrate.offset_performer import OffsetsPerformer
from kit.migrate.offset_reading import fetch_stores
from kit.migrate.offset_zookeeper import offset_path
from kit.migrate.offsets import (
    PlanOptions,
    Reset,
    export_offsets,
    offset_changes,
    plan_copy,
    plan_import,
    plan_reset,
    select,
)
from kit.migrate.performer import Outcome, StepState
from kit.migrate.record import load_run
from kit.migrate.run import Run, start_run
from kit.migrate.states import RunState
from kit.profile import load_profile

NOW = datetime.now(UTC)
OPTIONS = PlanOptions(made_by="ann", now=NOW)
BACK = replace(OPTIONS, allow_backwards=True)


class ProcessLock:
    """One run at a time per group, in this process."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def acquire(self, targets, run_id) -> None:
        for target in targets:
            if target in self._holders:
                raise TargetBusy(f"{target} is worked on by {self._holders[target]}")
        self._holders |= dict.fromkeys(targets, run_id)

    def assert_held(self) -> None:
        pass

    def release(self) -> None:
        self._holders.clear()


class Desk:
    """Plans carried out on one cluster, and what both stores hold."""

    def __init__(self, cluster, root) -> None:
        self.cluster, self._root = cluster, root
        self.performer = OffsetsPerformer(cluster, deadline_s=10)
        self.kafka = KafkaWriter(cluster.link, 10)

    def run(self, plan, tell=None) -> Run:
        now = datetime.now(UTC)
        prefix = plan.digest[:8]
        approval = approve(
            plan,
            typed_subject=plan.subject,
            typed_digest_prefix=prefix,
            approver="Bob",
            now=now,
            valid_for=timedelta(hours=1),
        )
        folder = start_run(plan, approval, self._root)
        return Run(folder, self.performer, ProcessLock(), poll_s=0.1, tell=tell)

    def act(self, plan) -> Run:
        run = self.run(plan)
        run.act().raise_unless(RunState.VERIFIED)
        return run

    def commit(self, group: str, topic: str, offsets: Mapping[int, int | Stored]) -> None:
        wanted = {
            (group, topic, partition): it if isinstance(it, Stored) else Stored(it) for partition, it in offsets.items()
        }
        answers = self.kafka.write(wanted, {})
        assert {answer.error for answer in answers.values()} == {None}, answers

    def put(self, group: str, topic: str, offsets: Mapping[int, int | str]) -> None:
        for partition, offset in offsets.items():
            path = offset_path((group, topic, partition))
            self.cluster.zookeeper.ensure_path(path)
            self.cluster.zookeeper.set(path, str(offset).encode())

    def stored(self, store: str, group: str) -> Mapping:
        return fetch_stores(self.cluster, lambda each: each == group).group(store, group).offsets

    def offsets(self, store: str, group: str) -> dict:
        return {place: stored.offset for place, stored in self.stored(store, group).items()}

    def everything(self):
        """All offsets of both stores with all that is stored beside them: versions too."""
        return fetch_stores(self.cluster, lambda each: True)


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
def desk(cluster, tmp_path):
    return Desk(cluster, tmp_path / "runs")


@pytest.fixture
def topic(lab, request):
    """Two partitions of 100 records each, named after the test."""
    name = request.node.name.replace("[", "-").replace(" ", "-").rstrip("]").removeprefix("test_")[:80]
    lab.create_topic(name, 2)
    lab.produce(name, 200)
    return name


def in_topic(topic, **offsets):
    return {(topic, int(name[1:])): offset for name, offset in offsets.items()}


def test_zookeeper_to_kafka_and_back(desk, topic):
    group = f"g-{topic}"
    desk.put(group, topic, {0: 40, 1: 60})
    before = desk.everything()
    plan = plan_copy(desk.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    dry = dry_run(plan, desk.performer)
    assert (dry.differences, [step.can_begin for step in dry.steps]) == ((), [True])
    assert desk.everything() == before, "planning or the dry run wrote something"
    run = desk.act(plan)
    assert desk.offsets("kafka", group) == in_topic(topic, p0=40, p1=60)
    outcomes = {it.item: it.outcome for it in run.record.acted(plan.steps[0]).outcomes}
    assert outcomes == dict.fromkeys([f"{group}/{topic}-0", f"{group}/{topic}-1"], Outcome.CONFIRMED)
    with pytest.raises(NothingToDo, match="every offset is as wanted already"):
        plan_copy(desk.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)

    desk.commit(group, topic, {0: 50, 1: 70})
    back = plan_copy(desk.cluster, "kafka", "zookeeper", select(groups=group, topics=topic, partitions=[1]), OPTIONS)
    desk.act(back)
    assert desk.offsets("zookeeper", group) == in_topic(topic, p0=40, p1=70)


def test_undo_brings_back_offsets_metadata_and_their_absence(desk, topic):
    group = f"g-{topic}"
    desk.commit(group, topic, {0: Stored(10, "seen by ann", 0)})
    desk.put(group, topic, {0: 40, 1: 60})
    run = desk.act(plan_copy(desk.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS))
    assert desk.stored("kafka", group)[topic, 0] == Stored(40)
    run.undo().raise_unless(RunState.UNDONE)
    assert desk.stored("kafka", group) == {(topic, 0): Stored(10, "seen by ann", 0)}


def test_undo_in_zookeeper_leaves_not_even_a_parent(desk, topic):
    group = f"g-{topic}"
    desk.commit(group, topic, {0: 10, 1: 20})
    run = desk.act(plan_copy(desk.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS))
    assert desk.offsets("zookeeper", group) == in_topic(topic, p0=10, p1=20)
    run.undo().raise_unless(RunState.UNDONE)
    assert desk.cluster.zookeeper.exists(f"/consumers/{group}") is None

    desk.put(group, topic, {0: 5})
    run = desk.act(plan_copy(desk.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS))
    run.undo().raise_unless(RunState.UNDONE)
    assert desk.offsets("zookeeper", group) == in_topic(topic, p0=5)


def test_what_moved_on_since_is_not_taken_back(desk, topic):
    group = f"g-{topic}"
    desk.commit(group, topic, {0: 10, 1: 10})
    run = desk.act(plan_reset(desk.cluster, "kafka", select(groups=group), Reset("offset", 30), OPTIONS))
    desk.commit(group, topic, {0: 35})
    ending = run.undo()
    assert ending.state == RunState.UNDO_HALTED
    assert f"1 of 2 offsets were not taken back: {group}/{topic}-0: expected 30, found 35" in ending.sentence
    assert desk.offsets("kafka", group) == in_topic(topic, p0=35, p1=10)


def test_group_to_group_takes_metadata_along(desk, topic):
    source, target = f"from-{topic}", f"to-{topic}"
    desk.commit(source, topic, {0: Stored(10, "m", 0), 1: Stored(20)})
    plan = plan_copy(desk.cluster, "kafka", "kafka", select(groups=source), OPTIONS, {source: target})
    assert plan.targets == (target,)
    run = desk.act(plan)
    assert desk.stored("kafka", target) == desk.stored("kafka", source)
    run.undo().raise_unless(RunState.UNDONE)
    assert desk.stored("kafka", target) == {}
    across = plan_copy(desk.cluster, "kafka", "zookeeper", select(groups=source), OPTIONS, {source: target})
    desk.act(across)
    assert desk.offsets("zookeeper", target) == in_topic(topic, p0=10, p1=20)


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("store", ["kafka", "zookeeper"])
def test_a_file_there_and_back(desk, topic, tmp_path, suffix, store):
    group, path = f'g, "{topic}"' if store == "kafka" else f"g-{topic}", tmp_path / f"offsets.{suffix}"
    if store == "kafka":
        desk.commit(group, topic, {0: Stored(10, 'a "b", c', 0), 1: Stored(20)})
    else:
        desk.put(group, topic, {0: 10, 1: 20})
    assert export_offsets(desk.cluster, path, store, select(groups=group), OPTIONS) == 2
    was = desk.stored(store, group)
    with pytest.raises(NothingToDo):
        plan_import(desk.cluster, path, store, OPTIONS)
    run = desk.act(plan_reset(desk.cluster, store, select(groups=group), Reset("latest"), OPTIONS))
    assert desk.offsets(store, group) == in_topic(topic, p0=100, p1=100)
    with pytest.raises(UnsafePlan, match="never_backwards: 2 offsets would go backwards"):
        plan_import(desk.cluster, path, store, OPTIONS)
    desk.act(plan_import(desk.cluster, path, store, BACK))
    found = desk.stored(store, group)
    assert {place: replace(it, version=None) for place, it in found.items()} == {
        place: replace(it, version=None) for place, it in was.items()
    }
    assert run.record.state == RunState.VERIFIED


def test_a_file_of_another_cluster_or_with_wrong_rows(desk, topic, tmp_path):
    group, path = f"g-{topic}", tmp_path / "offsets.jsonl"
    desk.commit(group, topic, {0: 10})
    export_offsets(desk.cluster, path, "kafka", select(groups=group), OPTIONS)
    header, row = path.read_text().splitlines()
    before = desk.everything()

    def refused(error, said, *lines, **told):
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(error, match=said):
            plan_import(desk.cluster, path, "kafka", OPTIONS, **told)

    other = header.replace(desk.cluster.cluster_id, "another")
    refused(WrongCluster, "holds offsets of cluster another", other, row)
    refused(NothingToDo, "already", other, row, other_cluster=True)
    refused(InputError, "was edited", header, row.replace("10", "12"))
    refused(NotFound, f"{topic}-7", header, row.replace('"partition":0', '"partition":7'), edited=True)
    refused(NotFound, "nobody", header, row.replace(group, "nobody"), edited=True)
    refused(InputError, "stands in line 2 and in line 3", header, row, row, edited=True)
    refused(InputError, "line 2: offset is -1", header, row.replace("10", "-1"), edited=True)
    assert desk.everything() == before


def test_resets(desk, lab, topic):
    group = f"g-{topic}"
    middle = datetime.now(UTC)
    wait_until(lambda: (datetime.now(UTC) - middle) > timedelta(milliseconds=20), "a later millisecond", 5)
    lab.produce(topic, 100)
    desk.commit(group, topic, {0: 50})
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
        desk.act(plan_reset(desk.cluster, "kafka", everything, reset, BACK))
        assert desk.offsets("kafka", group) == in_topic(topic, p0=first, p1=second), reset
    changes = offset_changes(plan_reset(desk.cluster, "kafka", everything, Reset("shift", 900), BACK))
    assert changes["reason"].to_list() == ["900 is beyond the log's end: lowered to 150"] * 2
    assert changes.select("before", "wanted", "after").rows() == [(0, 900, 150)] * 2
    late = offset_changes(
        plan_reset(desk.cluster, "kafka", everything, Reset("time", NOW + timedelta(days=1)), OPTIONS)
    )
    assert late["reason"].to_list() == ["no record is as young as that: latest"] * 2


def test_clamped_where_the_log_begins(desk, lab, topic):
    group = f"g-{topic}"
    desk.put(group, topic, {0: 10, 1: 500})
    for future in lab.admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result()
    plan = plan_copy(desk.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    assert offset_changes(plan).select("wanted", "after", "reason").rows() == [
        (10, 30, "10 is before the log's start: raised to 30"),
        (500, 100, "500 is beyond the log's end: lowered to 100"),
    ]
    assert "2 of 2 offsets become something else than was wanted" in plan.risks[0]
    desk.act(plan)
    assert desk.offsets("kafka", group) == in_topic(topic, p0=30, p1=100)


def test_backwards_only_when_asked_and_listed_when_skipped(desk, topic):
    group = f"g-{topic}"
    desk.commit(group, topic, {0: 50, 1: 10})
    desk.put(group, topic, {0: 40, 1: 60})
    arguments = desk.cluster, "zookeeper", "kafka", select(groups=group)
    with pytest.raises(UnsafePlan, match=rf"never_backwards: 1 offsets would go backwards: {group}/{topic}-0 50 → 40"):
        plan_copy(*arguments, OPTIONS)
    plan = plan_copy(*arguments, replace(OPTIONS, skip_backwards=True))
    assert plan.parameters["left_out"] == {f"{group}/{topic}-0": "it would go backwards: 50 → 40"}
    assert [change.item for change in plan.steps[0].changes] == [f"{group}/{topic}-1"]
    allowed = plan_copy(*arguments, BACK)
    assert set(allowed.overridden) == {"never_backwards"}
    desk.act(allowed)
    assert desk.offsets("kafka", group) == in_topic(topic, p0=40, p1=60)


def test_a_znode_without_a_number_is_reported_and_kept(desk, topic):
    group = f"g-{topic}"
    desk.put(group, topic, {0: "forty", 1: 5})
    desk.commit(group, topic, {0: 50, 1: 60})
    with pytest.raises(UnsafePlan, match="readable_offsets: 1 can't be read and are not overwritten.*'forty'"):
        plan_copy(desk.cluster, "kafka", "zookeeper", select(groups=group), OPTIONS)


@pytest.fixture
def member(lab):
    """Joins groups as a Kafka consumer, and leaves them."""
    members = []

    def join(group, topic):
        consumer = Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group})
        members.append(consumer)
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "partitions assigned", 30)
        return consumer

    yield join
    for consumer in members:
        consumer.close()


def register(cluster, group, name):
    """What an old consumer's registration is for others: an ephemeral znode under ids."""
    path = f"/consumers/{group}/ids/{group}_{name}"
    cluster.zookeeper.create(
        path, b'{"version":1,"subscription":{},"pattern":"static","timestamp":"1"}', ephemeral=True, makepath=True
    )
    return path


def test_groups_with_members_are_refused(desk, topic, member):
    group = f"g-{topic}"
    desk.commit(group, topic, {0: 10})
    desk.put(group, topic, {0: 40})
    to_kafka = desk.cluster, "zookeeper", "kafka", select(groups=group)
    to_zookeeper = desk.cluster, "kafka", "zookeeper", select(groups=group)
    path = register(desk.cluster, group, "host-1-a")
    with pytest.raises(UnsafePlan, match="no_members: 1 of 1 groups.*has 1 members, first"):
        plan_copy(*to_zookeeper, BACK)
    with pytest.raises(UnsafePlan, match="idle_elsewhere"):
        plan_copy(*to_kafka, OPTIONS)
    plan = plan_copy(*to_kafka, replace(OPTIONS, overrides=("idle_elsewhere",)))
    assert any(risk.startswith("source_idle") for risk in plan.risks)
    desk.cluster.zookeeper.delete(path)
    member(group, topic)
    with pytest.raises(UnsafePlan, match="no_members"):
        plan_copy(*to_kafka, replace(OPTIONS, overrides=("idle_elsewhere",)))
    with pytest.raises(UnsafePlan, match="can't be overridden"):
        plan_copy(*to_kafka, replace(OPTIONS, overrides=("no_members",)))


@pytest.mark.parametrize("change", ["member", "old member", "target", "source", "topic"])
def test_what_changed_after_the_plan_voids_it(desk, lab, topic, member, change):
    group = f"g-{topic}".replace(" ", "-")
    desk.commit(group, topic, {0: 10})
    desk.put(group, topic, {0: 40})
    plan = plan_copy(desk.cluster, "zookeeper", "kafka", select(groups=group), OPTIONS)
    if change == "member":
        member(group, topic)
    elif change == "old member":
        register(desk.cluster, group, "host-1-a")
    elif change == "target":
        desk.commit(group, topic, {0: 11})
    elif change == "source":
        desk.put(group, topic, {0: 41})
    else:
        lab.admin.delete_topics([topic])[topic].result()
        wait_until(lambda: topic not in lab.admin.list_topics(timeout=5).topics, "deleted", 20)
    run = desk.run(plan)
    said = {
        "member": f"kafka group {group}/members",
        "old member": f"zookeeper group {group}/members",
        "target": f"kafka offsets {group}/{topic}-0/offset: expected 10 .exact., found 11",
        "source": f"zookeeper offsets {group}/{topic}-0/offset: expected 40 .exact., found 41",
        "topic": "found n",
    }
    with pytest.raises(StalePlan, match=said[change]):
        run.act()
    assert run.record.state == RunState.VOID
    assert desk.offsets("kafka", group) != in_topic(topic, p0=40)
