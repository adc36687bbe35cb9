"""Whole groups deleted by plans on real servers of both releases: what goes, what is refused, and how it comes back."""

from __future__ import annotations

import dis
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Consumer, ShareConsumer, TopicPartition
from typer.testing import CliRunner

from kit import connect
from kit.cli.main import app
from kit.engine.execution.run import Run, start_run
from kit.engine.model.approval import approve
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import load_plan
from kit.engine.model.states import RunState
from kit.errors import ConnectError, InputError, NotFound, ReadError, UnsafePlan
from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.moves.offsets import group_deleter
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, performer, plan_delete_groups, save_backup
from kit.moves.offsets.files import load_offsets
from kit.moves.offsets.group_steps import offsets_of
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.performer import OffsetsPerformer
from kit.moves.offsets.plan import PlanOptions, plan_import
from kit.operations.operations import Operations
from kit.profile import load_profile
from tests.generators import hostile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator
from tests.servers.deletion import delete_topic
from tests.servers.offset_operations import (
    OffsetOperations,
    ProcessLock,
    await_member,
    outcomes_of,
    register,
    when_acting,
)
from tests.soak import IS_SOAK, report, soak_only

TOPIC = "delete-groups"
MANY = 1_000 if IS_SOAK else 100
NOW = datetime.now(UTC)


class Site(OffsetOperations):
    """One cluster, and plans of this kind executed on it."""

    def __init__(self, lab, cluster, root: Path) -> None:
        super().__init__(cluster, root)
        self.lab, self.root = lab, root
        self.performer = performer(cluster)

    def plan(self, *groups: str, pattern: str | None = None, at_most: int = 100, overrides=()):
        return plan_delete_groups(self.cluster, DeleteGroupsRequest(groups, pattern, at_most), "ann", NOW, overrides)

    def begin(self, plan, tell=None) -> Run:
        approval = approve(
            plan,
            typed_subject=plan.subject,
            typed_digest_prefix=plan.digest[:8],
            approver="Bob",
            now=datetime.now(UTC),
            valid_for=timedelta(hours=1),
        )
        return Run(start_run(plan, approval, self.root), self.performer, ProcessLock(), poll_s=0.1, tell=tell)

    def listed(self, prefix: str) -> set[str]:
        found = self.everything().kafka
        return {each for each, group in found.items() if each.startswith(prefix) and group.state != "Dead"}

    def all_of(self, *groups: str) -> dict:
        return {group: dict(self.stored("kafka", group)) for group in groups}


@pytest.fixture(scope="module", params=["3.9", "4.1"])
def site(request, tmp_path_factory) -> Iterator[Site]:
    """A broker of 3.9 with ZooKeeper, and one of 4.1 without."""
    lab = request.getfixturevalue("lab" if request.param == "3.9" else "kraft_lab")
    yield from opened(lab, tmp_path_factory)


@pytest.fixture(scope="module")
def old_site(lab, tmp_path_factory) -> Iterator[Site]:
    yield from opened(lab, tmp_path_factory)


def opened(lab, tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("delete")
    path = folder / "offramp.toml"
    path.write_text(lab.profile_toml())
    if TOPIC not in lab.admin.list_topics(timeout=SECONDS).topics:
        lab.create_topic(TOPIC, 2)
        lab.produce(TOPIC, 200)
    with connect(load_profile(file=path)) as cluster:
        yield Site(lab, cluster, folder / "runs")


def joined(site: Site, group: str) -> Consumer:
    consumer = Consumer(
        {**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    )
    await_member(consumer, TOPIC)
    return consumer


def bare(site: Site, group: str) -> None:
    """A group that is there, and has no offset: a member came and went."""
    joined(site, group).close()
    awaited(lambda: site.everything().kafka[group].state, lambda state: state == "Empty", f"{group} is empty")


def test_groups_go_whole_and_come_back_with_all_they_had(site, tmp_path):
    names = [name for name in sorted(set(hostile.GROUPS)) if 0 < len(name) < 200][:40]
    for name in names:
        site.commit(name, TOPIC, {0: Stored(10, "seen by ann", 0), 1: 20})
    before = site.all_of(*names)
    plan = site.plan(*names)
    file = tmp_path / "backup.jsonl"
    assert save_backup(plan, file) == 2 * len(names)
    assert load_offsets(file, plan.cluster_id).offsets == offsets_of(plan.steps)
    run = site.begin(plan)
    kept = load_plan(run.folder / "plan.json")
    assert offsets_of(kept.steps) == {(name, *place): it for name in names for place, it in before[name].items()}
    run.act().raise_unless(RunState.VERIFIED)
    assert not set(names) & set(site.everything().kafka)
    assert {it for it, _ in outcomes_of(run, plan).values()} == {Outcome.CONFIRMED}
    run.undo().raise_unless(RunState.UNDONE)
    assert site.all_of(*names) == before


LARGE = 300
"""Offsets with metadata of 4,000 bytes: 1.2 MB, more than a coordinator appends at once."""
SEVEN_THOUSAND = 7_000


def test_a_group_with_more_offsets_than_one_batch_holds_comes_back(old_site):
    lab = old_site.lab
    lab.create_topic("large-groups", LARGE)
    consumer = Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": "large"})
    offsets = [TopicPartition("large-groups", number, number, metadata="m" * 4_000) for number in range(LARGE)]
    for half in (offsets[: LARGE // 2], offsets[LARGE // 2 :]):
        assert all(each.error is None for each in consumer.commit(offsets=half, asynchronous=False))
    consumer.close()
    before = old_site.all_of("large")
    assert len(before["large"]) == LARGE
    run = old_site.begin(old_site.plan("large"))
    run.act().raise_unless(RunState.VERIFIED)
    assert "large" not in old_site.everything().kafka
    run.undo().raise_unless(RunState.UNDONE)
    assert old_site.all_of("large") == before


@soak_only
def test_a_group_of_seven_thousand_partitions_with_a_long_name_comes_back_by_undo_and_by_import(tmp_path):
    """80 characters and 7,000 offsets without metadata: 1 MB and more."""
    topic, group = "large-" + "t" * 74, "seven-thousand"
    path, file = tmp_path / "offramp.toml", tmp_path / "backup.jsonl"
    with Lab(kraft=True) as lab:
        await_coordinator(lab)
        lab.create_topic(topic, SEVEN_THOUSAND)
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            site = Site(lab, cluster, tmp_path / "runs")
            site.commit(group, topic, dict.fromkeys(range(SEVEN_THOUSAND), 0))
            before = site.all_of(group)
            assert len(before[group]) == SEVEN_THOUSAND
            plan = site.plan(group)
            assert save_backup(plan, file) == SEVEN_THOUSAND
            run = site.begin(plan)
            run.act().raise_unless(RunState.VERIFIED)
            assert group not in site.everything().kafka
            run.undo().raise_unless(RunState.UNDONE)
            assert site.all_of(group) == before
            site.begin(site.plan(group)).act().raise_unless(RunState.VERIFIED)
            site.performer = OffsetsPerformer(cluster)
            options = PlanOptions(made_by="ann", now=NOW, new_groups=True)
            site.begin(plan_import(cluster, file, "kafka", options)).act().raise_unless(RunState.VERIFIED)
            assert site.all_of(group) == before


def test_a_group_in_use_is_refused_by_name_and_left_out_by_pattern(site):
    for name in ("use-a", "use-b"):
        site.commit(name, TOPIC, {0: 10})
    consumer = joined(site, "use-b")
    try:
        with pytest.raises(UnsafePlan, match="no_members: 1 of 2 groups: 'use-b' has 1 member"):
            site.plan("use-a", "use-b")
        plan = site.plan(pattern="use-.*")
        assert plan.targets == ("use-a",)
        assert "has 1 member" in plan.parameters["left_out"]["use-b"]
        with pytest.raises(NotFound, match="left out: 'use-b' has 1 member"):
            site.plan(pattern="use-b")
    finally:
        consumer.close()
    site.await_no_members("use-b")
    with pytest.raises(UnsafePlan, match="at_most: 2 groups; --at-most allows 1"):
        site.plan(pattern="use-.*", at_most=1)
    with pytest.raises(NotFound, match="'no-such' is not in Kafka"):
        site.plan("use-a", "no-such")


def test_changes_after_the_plan_are_reported_group_by_group(site):
    """One comes alive, one commits, one is deleted by another operator or tool; the others go."""
    alive, moved, gone, empty, calm = names = [f"since-{name}" for name in ("alive", "moved", "gone", "empty", "calm")]
    for name in (alive, moved, gone, calm):
        site.commit(name, TOPIC, {0: 10, 1: 20})
    bare(site, empty)
    plan = site.plan(*names)
    assert any("an undo can't bring back 1 group without an offset" in risk for risk in plan.risks), plan.risks
    consumers = []

    def disturb():
        consumers.append(joined(site, alive))
        site.commit(moved, TOPIC, {1: 21})
        site.lab.admin.delete_consumer_groups([gone])[gone].result(SECONDS)

    run = site.begin(plan, tell=when_acting(disturb))
    try:
        ending = run.act()
        assert (ending.state, "2 of 5 items were not done" in ending.sentence) == (RunState.FAILED, True)
        found = outcomes_of(run, plan)
        assert found[alive][0] == Outcome.REFUSED
        assert "the group has members now" in found[alive][1]
        assert found[moved] == (
            Outcome.REFUSED,
            f"a client has committed offsets of this group since the plan: {TOPIC}-1: expected 20, found 21",
        )
        assert [found[name] for name in (gone, empty, calm)] == [
            (Outcome.UNCHANGED, None),
            (Outcome.CONFIRMED, None),
            (Outcome.CONFIRMED, None),
        ]
        assert site.listed("since-") == {alive, moved}
    finally:
        consumers[0].close()
    # Another operator's or tool's deletion is not ours to undo; nor is what was never deleted.
    run.undo().raise_unless(RunState.UNDONE)
    assert site.offsets("kafka", calm) == {(TOPIC, 0): 10, (TOPIC, 1): 20}
    assert site.offsets("kafka", moved) == {(TOPIC, 0): 10, (TOPIC, 1): 21}
    assert site.listed("since-") == {alive, moved, calm}


def test_a_share_group_that_took_the_name_of_a_group_without_offsets_stays(site):
    """DeleteGroups deletes groups of every type, and no plan keeps the start offsets of a share group."""
    if site.cluster.zookeeper is not None:
        pytest.skip("brokers of 3.9 have no share groups")
    name, calm = "taken-name", "taken-calm"
    bare(site, name)
    site.commit(calm, TOPIC, {0: 10})
    plan = site.plan(name, calm)
    site.lab.admin.delete_consumer_groups([name])[name].result(SECONDS)
    consumer = ShareConsumer({**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, "group.id": name})
    consumer.subscribe([TOPIC])

    def members() -> tuple[str, ...]:
        consumer.poll(0.1)
        group = site.everything().kafka.get(name)
        return () if group is None else group.members

    awaited(members, bool, "a member of the share group")
    consumer.close()
    site.await_no_members(name)
    run = site.begin(plan)
    assert run.act().state == RunState.FAILED
    found = outcomes_of(run, plan)
    assert (found[calm][0], found[name][0], "share group" in found[name][1]) == (
        Outcome.CONFIRMED,
        Outcome.NOT_ATTEMPTED,
        True,
    )
    assert name in site.everything().kafka


def test_a_run_that_was_refused_a_group_continues_when_that_is_calm_again(site):
    for name in ("again-a", "again-b"):
        site.commit(name, TOPIC, {0: 10})
    consumers = []
    plan = site.plan("again-a", "again-b")
    run = site.begin(plan, tell=when_acting(lambda: consumers.append(joined(site, "again-a"))))
    assert run.act().state == RunState.FAILED
    consumers[0].close()
    site.await_no_members("again-a")
    run.resume().raise_unless(RunState.VERIFIED)
    assert not site.listed("again-")


def test_a_deleted_group_that_is_used_again_is_left_alone(site):
    for name in ("reborn-a", "reborn-b"):
        site.commit(name, TOPIC, {0: 10})
    run = site.begin(site.plan("reborn-a", "reborn-b"))
    run.act().raise_unless(RunState.VERIFIED)
    site.commit("reborn-a", TOPIC, {0: 99})
    run.undo().raise_unless(RunState.UNDONE)
    assert site.offsets("kafka", "reborn-a") == {(TOPIC, 0): 99}
    assert site.offsets("kafka", "reborn-b") == {(TOPIC, 0): 10}
    undone = {it.item: it.error for it in run.record.events if it.event == "undone" and it.outcome == Outcome.REFUSED}
    assert list(undone) == ["reborn-a"]
    assert "so the group is not changed" in undone["reborn-a"]


def test_a_topic_that_went_after_the_run_is_left_out_of_the_undo(site):
    topic = "delete-groups-doomed"
    site.lab.create_topic(topic, 1)
    site.commit("half-lost", TOPIC, {0: 10})
    site.commit("half-lost", topic, {0: 0})
    site.commit("all-lost", topic, {0: 0})
    run = site.begin(site.plan("half-lost", "all-lost"))
    run.act().raise_unless(RunState.VERIFIED)
    delete_topic(site.lab, topic)
    run.undo().raise_unless(RunState.UNDONE)
    left_out = f"not committed again, for the topic doesn't exist: {topic}-0"
    told = {it.item: (it.outcome, it.error) for it in run.record.events if it.event == "undone"}
    assert told == {"half-lost": (Outcome.CONFIRMED, left_out), "all-lost": (Outcome.UNCHANGED, left_out)}
    assert site.all_of("half-lost", "all-lost") == {"half-lost": {(TOPIC, 0): Stored(10)}, "all-lost": {}}


def test_offsets_of_a_deleted_topic_are_named_before_anything_goes(old_site):
    """The topic goes while its groups' coordinator is down, so that keeps the offsets."""
    site, topic = old_site, "delete-groups-gone"
    site.lab.create_topic(topic, 1)
    site.commit("orphan", topic, {0: 0})
    site.commit("half-orphan", topic, {0: 0})
    site.commit("half-orphan", TOPIC, {0: 7})
    faults.stop(faults.broker(site.lab, 1))
    site.cluster.zookeeper.delete(f"/brokers/topics/{topic}", recursive=True)
    faults.restart_broker(site.lab, 1)

    def are_loaded():
        with suppress(ConnectError, ReadError):
            return {"orphan", "half-orphan"} <= site.listed("")

    wait_until(are_loaded, "the coordinator has loaded its groups", SECONDS)
    assert site.offsets("kafka", "orphan") == {(topic, 0): 0}
    plan = site.plan("orphan", "half-orphan")
    assert plan.risks[:2] == (
        f"2 offsets of topics that don't exist can't be committed again by an undo: half-orphan/{topic}-0,"
        f" orphan/{topic}-0",
        "an undo can't bring back 1 group without an offset of a topic that exists: 'orphan'",
    )
    alone = site.plan("orphan")
    assert alone.steps[0].cannot_be_undone == "none of these groups has an offset that could be committed again"
    run = site.begin(plan)
    run.act().raise_unless(RunState.VERIFIED)
    run.undo().raise_unless(RunState.UNDONE)
    assert site.all_of("orphan", "half-orphan") == {"orphan": {}, "half-orphan": {(TOPIC, 0): Stored(7)}}


def test_groups_of_zookeeper_are_not_deleted_and_their_members_protect_kafkas(old_site):
    site = old_site
    site.commit("both", TOPIC, {0: 10})
    path = register(site.cluster, "both", "host-1-a")
    register(site.cluster, "old-only", "host-1-a")
    with pytest.raises(UnsafePlan, match="idle_elsewhere"):
        site.plan("both")
    with pytest.raises(NotFound, match="'old-only' is in ZooKeeper alone"):
        site.plan("old-only")
    with pytest.raises(NotFound, match="left out: 'both' has 1 member"):
        site.plan(pattern="both")
    site.cluster.zookeeper.delete(path)
    assert site.plan("both").targets == ("both",)


def test_operations_back_up_approve_and_delete(old_site):
    site = old_site
    site.commit("by-hand", TOPIC, {0: 10})
    operations = Operations(site.cluster, site.root / "operations")
    plan = operations.make_plan(DeleteGroupsRequest(("by-hand",)))
    assert load_offsets(operations.backup_file(plan), plan.cluster_id).offsets == {("by-hand", TOPIC, 0): Stored(10)}
    operations.approve(plan, "by-hand", plan.digest[:8])
    operations.begin(plan).act().raise_unless(RunState.VERIFIED)
    assert site.offsets("kafka", "by-hand") == {}


def test_the_verb_saves_a_plan_and_a_backup_and_deletes_nothing(old_site):
    site, runs = old_site, old_site.root / "typed"
    for name in ("typed-a", "typed-b"):
        site.commit(name, TOPIC, {0: Stored(10, "m"), 1: 20})
    options = ["--profile-file", str(site.root.parent / "offramp.toml"), "--runs", str(runs)]
    ran = CliRunner().invoke(app, ["plan", "delete-groups", "--groups", "typed-.*", *options])
    assert ran.exit_code == 0, ran.output
    assert "Delete 2 groups with 4 offsets from kafka" in ran.stdout
    assert "typed-a  2 offsets → –" in ran.stdout
    (plan,) = (load_plan(file) for file in (runs / "plans").glob("*.json"))
    (backup,) = (runs / "plans").glob("*.offsets.jsonl")
    assert len(load_offsets(backup, plan.cluster_id).offsets) == 4
    ran = CliRunner().invoke(app, ["plan", "delete-groups", "--groups", "typed-.*", "--at-most", "1", *options])
    assert (ran.exit_code, "at_most: 2 groups; --at-most allows 1" in ran.output) == (UnsafePlan.exit_code, True)
    assert site.listed("typed-") == {"typed-a", "typed-b"}


@pytest.mark.parametrize(
    "request_of", [{}, {"groups": ("a",), "pattern": "b"}, {"pattern": "("}, {"groups": ("a",), "at_most": 0}]
)
def test_empty_and_contradictory_requests_are_refused(request_of):
    with pytest.raises(InputError):
        DeleteGroupsRequest(**request_of)


def test_groups_in_use_or_moved_are_left_alone_among_many(site):
    names = [f"thousand-{number:04d}" for number in range(MANY)]
    offsets = {(name, TOPIC, partition): Stored(10 + partition) for name in names for partition in (0, 1)}
    assert {answer.error for answer in site.kafka.write(offsets, {}).values()} == {None}
    before = {name: {(TOPIC, 0): Stored(10), (TOPIC, 1): Stored(11)} for name in names}
    plan = site.plan(pattern="thousand-.*", at_most=MANY)
    assert (len(plan.targets), len(plan.steps)) == (MANY, 1)
    consumers = []

    def disturb():
        consumers.append(joined(site, names[5]))
        site.commit(names[MANY // 2], TOPIC, {0: 12})

    run = site.begin(plan, tell=when_acting(disturb))
    try:
        assert run.act().state == RunState.FAILED
        found = pl.Series([outcome for outcome, _ in outcomes_of(run, plan).values()]).value_counts(name="n")
        assert dict(found.rows()) == {Outcome.CONFIRMED: MANY - 2, Outcome.REFUSED: 2}
        assert site.listed("thousand-") == {names[5], names[MANY // 2]}
    finally:
        consumers[0].close()
    run.undo().raise_unless(RunState.UNDONE)
    everything = site.everything().kafka
    assert {name: dict(everything[name].offsets) for name in names} == before | {
        names[MANY // 2]: {(TOPIC, 0): Stored(12), (TOPIC, 1): Stored(11)}
    }


# -- killed between any two lines -------------------------------------------------------------------------------------

_CHILD = """
import os, signal, sys
from pathlib import Path
from kit import connect, load_profile
from kit.engine.execution.run import Run
from kit.moves.offsets import group_deleter
from kit.moves.offsets.delete_groups import performer
from tests.servers.offset_operations import ProcessLock

profile, folder, verb, function, line, passing = sys.argv[1:]
left, code = int(passing), getattr(group_deleter.GroupDeleter, function).__code__
group_deleter.GROUPS_PER_BATCH = 2


def trace(frame, event, argument):
    return lines if frame.f_code is code else None


def lines(frame, event, argument):
    global left
    if event == "line" and frame.f_lineno == int(line):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return lines


with connect(load_profile(file=Path(profile))) as cluster:
    run = Run(Path(folder), performer(cluster), ProcessLock(), poll_s=0.1)
    sys.settrace(trace)
    getattr(run, verb)()
"""


@dataclass(frozen=True)
class Kill:
    """Before this line of a method of the actor, the time it comes there for the ``passing``th time."""

    verb: str
    function: str
    line: int
    passing: int


def lines_of(function: str) -> list[int]:
    code = getattr(group_deleter.GroupDeleter, function).__code__
    return sorted({line for _, line in dis.findlinestarts(code) if line is not None and line > code.co_firstlineno})


KILLS = [
    Kill(verb, function, line, passing)
    for verb, functions in (("act", ("_delete", "act")), ("undo", ("_restore",)))
    for function in functions
    for line in lines_of(function)
    for passing in (1, 2)
][:: 1 if IS_SOAK else 5]
"""Each of them in the long form, else every fifth."""


@pytest.mark.parametrize("verb", ["act", "undo"])
def test_a_run_that_is_killed_between_any_two_lines_continues_and_comes_back(old_site, verb, record_property):
    """kill -9, then another process continues; nothing is lost, and the way back leads to where it began."""
    site, names = old_site, [f"killed-{verb}-{number}" for number in range(3)]
    profile = site.root.parent / "offramp.toml"
    for name in names:
        site.commit(name, TOPIC, {0: Stored(10, "m", 0), 1: 20})
    before, n_killed = site.all_of(*names), 0
    for kill in [kill for kill in KILLS if kill.verb == verb]:
        run = site.begin(site.plan(*names))
        if verb == "undo":
            run.act().raise_unless(RunState.VERIFIED)
        point = [verb, kill.function, str(kill.line), str(kill.passing)]
        child = subprocess.run([sys.executable, "-c", _CHILD, str(profile), str(run.folder), *point], check=False)
        n_killed += child.returncode == -9
        taken_up = Run(run.folder, performer(site.cluster), ProcessLock(), poll_s=0.1)
        if child.returncode == -9:
            ending = taken_up.resume()
            assert ending.state == (RunState.VERIFIED if verb == "act" else RunState.UNDONE), (kill, ending.sentence)
        else:
            assert child.returncode == 0, kill
        if verb == "act":
            assert not site.listed(f"killed-{verb}-"), kill
            taken_up.undo().raise_unless(RunState.UNDONE)
        assert site.all_of(*names) == before, kill
    report(record_property, f"{verb} was killed {n_killed} times")
    assert n_killed >= (12 if IS_SOAK else 2), n_killed
