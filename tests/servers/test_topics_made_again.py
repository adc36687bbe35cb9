"""Topics that were deleted and created again with the same name: their offsets belong to nobody's log any more."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from kit import connect
from kit.engine.execution.run import Run
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.performer import Outcome
from kit.engine.model.states import RunState
from kit.errors import NothingToDo
from kit.lab.process import wait_until
from kit.moves.offsets import delete_groups
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, plan_delete_groups
from kit.moves.offsets.fetch import fetch_topics
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.plan import (
    PlanOptions,
    Reset,
    export_offsets,
    plan_copy,
    plan_delete,
    plan_import,
    plan_reset,
    select,
)
from kit.profile import load_profile
from tests.reporting import Permissive
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import await_coordinator
from tests.servers.deletion import delete_topic
from tests.servers.offset_operations import OffsetOperations
from tests.servers.tuned_lab import TunedLab

NOW = datetime.now(UTC)
OPTIONS = PlanOptions(made_by="ann", now=NOW, allow_backwards=True, overrides=("kept_elsewhere",))
AGAIN = "was deleted and created again"


class Site(OffsetOperations):
    """One cluster with two topics of one partition and 100 records, of which one is made again."""

    def __init__(self, lab, cluster, root, name: str) -> None:
        super().__init__(cluster, root)
        self.lab, self.group = lab, f"g-{name}"
        self.kept, self.topic = f"kept-{name}", f"again-{name}"
        for topic in (self.kept, self.topic):
            lab.create_topic(topic, 1)
            lab.produce(topic, 100)

    def make_again(self, records: int = 40) -> None:
        delete_topic(self.lab, self.topic)
        self.lab.create_topic(self.topic, 1)
        self.lab.produce(self.topic, records)

    def hold(self, store: str, kept: int = 60, again: int = 20) -> None:
        """Give the group an offset of each topic."""
        for topic, offset in ((self.kept, kept), (self.topic, again)):
            (self.commit if store == "kafka" else self.put)(self.group, topic, {0: offset})

    def undone(self, run: Run) -> dict[str, tuple[str | None, str | None]]:
        """Outcome and error by item, as the undo reported them last."""
        return {it.item: (it.outcome, it.error) for it in run.record.events if it.event == "undone"}


@pytest.fixture
def site(lab, request, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml())
    name = request.node.name.replace("[", "-").rstrip("]").removeprefix("test_")[:80]
    with connect(load_profile(file=path)) as cluster:
        yield Site(lab, cluster, tmp_path / "runs", name)


@pytest.fixture(scope="module")
def old_lab():
    """Brokers whose protocol version is from before topic ids."""
    with TunedLab({"inter.broker.protocol.version": "2.7"}) as running:
        await_coordinator(running)
        yield running


@pytest.mark.parametrize("store", ["kafka", "zookeeper"])
def test_an_undo_restores_no_offset_of_a_topic_that_was_made_again(site, store):
    site.hold(store)
    run = site.act(plan_delete(site.cluster, store, select(groups=site.group), OPTIONS))
    site.make_again()
    ending = run.undo()
    assert ending.state == RunState.UNDONE
    outcome, why = site.undone(run)[f"{site.group}/{site.topic}-0"]
    assert outcome == Outcome.REFUSED
    assert AGAIN in why
    assert f"{site.group}/{site.topic}-0: topic '{site.topic}' {AGAIN}" in ending.sentence
    assert site.offsets(store, site.group) == {(site.kept, 0): 60}


def test_an_undo_of_that_topic_alone_gives_the_reason_too(site):
    site.hold("kafka")
    run = site.act(
        plan_reset(site.cluster, "kafka", select(groups=site.group, topics=site.topic), Reset("latest"), OPTIONS)
    )
    site.make_again(records=100)
    site.commit(site.group, site.topic, {0: 100})  # In the new topic; the same value as the run's.
    ending = run.undo()
    assert (ending.state, AGAIN in ending.sentence) == (RunState.UNDONE, True)
    assert site.offsets("kafka", site.group)[site.topic, 0] == 100


def test_a_deleted_group_comes_back_without_offsets_of_a_topic_that_was_made_again(site):
    whole, half = f"whole-{site.group}", f"half-{site.group}"
    for group, topics in ((whole, [site.topic]), (half, [site.kept, site.topic])):
        for topic in topics:
            site.commit(group, topic, {0: Stored(20, "m", 0)})
    site.performer = delete_groups.performer(site.cluster)
    assert isinstance(site.performer, ClusterPerformer)
    run = site.act(plan_delete_groups(site.cluster, DeleteGroupsRequest((whole, half)), "ann", NOW))
    site.make_again()
    ending = run.undo()
    assert ending.state == RunState.UNDONE
    found = site.undone(run)
    assert (found[whole][0], found[half][0]) == (Outcome.REFUSED, Outcome.CONFIRMED)
    for group in (whole, half):
        assert f"not committed again: {site.topic}-0: topic '{site.topic}' {AGAIN}" in found[group][1]
        assert f"{group}: not committed again" in ending.sentence
    assert site.stored("kafka", whole) == {}
    assert site.stored("kafka", half) == {(site.kept, 0): Stored(20, "m", 0)}


def test_no_plan_acts_on_a_topic_that_was_made_again_since(site):
    """All that the plan has observed is as it was, but for the topic's id."""
    site.hold("kafka")
    plan = plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("earliest"), OPTIONS)
    deletion = plan_delete_groups(site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW)
    site.make_again(records=100)
    site.hold("kafka")
    ending = site.run(plan).act()
    assert (ending.state, AGAIN in ending.sentence) == (RunState.FAILED, True)
    outcomes = {it.item: it.outcome for it in site.performer.act(plan.steps[0], Permissive())}
    assert outcomes == {
        f"{site.group}/{site.kept}-0": Outcome.CONFIRMED,
        f"{site.group}/{site.topic}-0": Outcome.REFUSED,
    }
    site.hold("kafka")
    deleter = delete_groups.performer(site.cluster)
    (outcome,) = deleter.act(deletion.steps[0], Permissive())
    assert (outcome.outcome, AGAIN in outcome.error) == (Outcome.REFUSED, True)
    assert site.offsets("kafka", site.group) == {(site.kept, 0): 60, (site.topic, 0): 20}


def test_an_import_leaves_out_a_topic_that_was_made_again_since_the_export(site, tmp_path):
    path = tmp_path / "offsets.jsonl"
    site.hold("kafka")
    export_offsets(site.cluster, path, "kafka", select(groups=site.group), NOW)
    site.act(plan_delete(site.cluster, "kafka", select(groups=site.group), OPTIONS))
    site.make_again()
    plan = plan_import(site.cluster, path, "kafka", PlanOptions("ann", NOW, new_groups=True))
    assert AGAIN in plan.parameters["left_out"][f"{site.group}/{site.topic}-0"]
    assert any(AGAIN in risk for risk in plan.risks)
    site.act(plan)
    assert site.offsets("kafka", site.group) == {(site.kept, 0): 60}
    with pytest.raises(NothingToDo, match=AGAIN):
        plan_import(site.cluster, path, "kafka", OPTIONS, select(topics=site.topic))


def rewritten(path, change) -> None:
    """The file with another header and other rows."""
    header, *rows = map(json.loads, path.read_text().splitlines())
    path.write_text("".join(json.dumps(change(each)) + "\n" for each in (header, *rows)))


def assert_java_reads_on(site, expected: int) -> None:
    """A Java consumer of the group gets the records from the committed offset on."""
    consumer = site.lab.start_console_consumer(site.group, site.topic)
    wait_until(lambda: len(consumer.records()) >= expected, "Java's consumer reads", SECONDS)
    consumer.stop()
    assert [record["offset"] for record in consumer.records()] == list(range(100 - expected, 100))


def test_leader_epochs_of_another_cluster_are_not_imported(site, tmp_path):
    """Java's consumer owned the partition and never fetched."""
    path = tmp_path / "offsets.jsonl"
    site.commit(site.group, site.topic, {0: Stored(20, "m", 0)})
    export_offsets(site.cluster, path, "kafka", select(groups=site.group), NOW)
    rewritten(path, lambda each: each | ({"cluster_id": "other"} if "cluster_id" in each else {"leader_epoch": 50}))
    site.act(plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("latest"), OPTIONS))
    plan = plan_import(site.cluster, path, "kafka", OPTIONS, other_cluster=True, edited=True)
    assert any("the 1 leader epoch of cluster other will not be written" in risk for risk in plan.risks), plan.risks
    site.act(plan)
    assert site.stored("kafka", site.group) == {(site.topic, 0): Stored(20, "m")}
    assert_java_reads_on(site, 80)


def test_a_leader_epoch_above_the_present_one_is_not_restored(site, tmp_path):
    """An older version of offramp had imported it."""
    path, whole = tmp_path / "offsets.jsonl", {(site.topic, 0): Stored(20, "m")}
    site.commit(site.group, site.topic, {0: Stored(20, "m", 50)})
    export_offsets(site.cluster, path, "kafka", select(groups=site.group), NOW)
    plan = plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("latest"), OPTIONS)
    assert plan.steps[0].parameters["kept"][f"{site.group}/{site.topic}-0"]["leader_epoch"] == 50
    run = site.act(plan)
    assert "written without leader epoch 50" in run.undo().sentence
    assert site.stored("kafka", site.group) == whole
    site.commit(site.group, site.topic, {0: Stored(20, "m", 50)})
    copied = plan_copy(site.cluster, "kafka", "kafka", select(groups=site.group), OPTIONS, {site.group: "copied"})
    assert "written without leader epoch 50: the partition's present one is 0" in copied.risks[0]
    assert "leader_epoch" not in copied.steps[0].parameters["written"][f"copied/{site.topic}-0"]
    site.performer = delete_groups.performer(site.cluster)
    run = site.act(plan_delete_groups(site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW))
    assert "written without leader epoch 50" in run.undo().sentence
    assert site.stored("kafka", site.group) == whole
    assert_java_reads_on(site, 80)
    site.await_no_members(site.group)
    imported = plan_import(site.cluster, path, "kafka", OPTIONS)
    assert "leader_epoch" not in imported.steps[0].parameters["written"][f"{site.group}/{site.topic}-0"]


def without_ids(each: dict) -> dict:
    """A line of a file as an older version of offramp wrote it."""
    each = {name: value for name, value in each.items() if name != "topic_id"}
    return each | ({"format": 2} if "format" in each else {})


def test_an_older_file_is_imported_within_its_logs_alone(site, tmp_path):
    path = tmp_path / "offsets.jsonl"
    site.hold("kafka", again=60)
    export_offsets(site.cluster, path, "kafka", select(groups=site.group), NOW)
    rewritten(path, without_ids)
    site.act(plan_delete(site.cluster, "kafka", select(groups=site.group), OPTIONS))
    site.make_again()
    options = PlanOptions("ann", NOW, new_groups=True)
    plan = plan_import(site.cluster, path, "kafka", options, edited=True)
    assert "60 is outside the log (0 to 40)" in plan.parameters["left_out"][f"{site.group}/{site.topic}-0"]
    assert [change.item for change in plan.steps[0].changes] == [f"{site.group}/{site.kept}-0"]


def test_without_topic_ids_an_undo_restores_within_the_logs_alone(old_lab, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(old_lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        site = Site(old_lab, cluster, tmp_path / "runs", "old")
        site.hold("kafka", again=60)
        assert fetch_topics(cluster)[site.topic].topic_id is None
        run = site.act(plan_delete(cluster, "kafka", select(groups=site.group), OPTIONS))
        assert "topic_ids" not in run.record.plan.steps[0].parameters
        site.make_again()
        ending = run.undo()
        assert (ending.state, "60 is outside the log (0 to 40)" in ending.sentence) == (RunState.UNDONE, True)
        assert site.offsets("kafka", site.group) == {(site.kept, 0): 60}
        site.performer = delete_groups.performer(cluster)
        site.commit("deleted", site.kept, {0: 60})
        site.commit("deleted", site.topic, {0: 40})
        run = site.act(plan_delete_groups(cluster, DeleteGroupsRequest(("deleted",)), "ann", NOW))
        site.make_again(records=20)
        ending = run.undo()
        assert (ending.state, "40 is outside the log (0 to 20)" in ending.sentence) == (RunState.UNDONE, True)
        assert site.offsets("kafka", "deleted") == {(site.kept, 0): 60}
