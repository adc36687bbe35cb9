"""Offsets that a coordinator would not take again: a broker's limits were lowered after they were committed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kit import connect
from kit.engine.model.states import RunState
from kit.errors import UnsafePlan
from kit.groups.read.commit_limits import CommitLimits, fetch_commit_limits
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, performer, plan_delete_groups
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.plan import PlanOptions, plan_delete, select
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator
from tests.servers.offset_operations import OffsetOperations
from tests.servers.tuned_lab import TunedLab

NOW = datetime.now(UTC)
OPTIONS = PlanOptions(made_by="ann", now=NOW, overrides=("kept_elsewhere",))
GROUP, TOPIC, METADATA = "noted", "notes", "x" * 3_000
OFFSETS_TOPIC = ConfigResource(ResourceType.TOPIC, "__consumer_offsets")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A lab whose brokers take 2,000 characters of metadata, and an offset with 1,000."""
    folder = tmp_path_factory.mktemp("limits")
    with TunedLab({"offset.metadata.max.bytes": "2000"}) as lab:
        await_coordinator(lab)
        lab.create_topic(TOPIC, 1)
        lab.produce(TOPIC, 10)
        path = folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            operations = OffsetOperations(cluster, folder / "runs")
            operations.commit(GROUP, TOPIC, {0: Stored(5, "x" * 1_000, 0)})
            operations.lab = lab
            yield operations


def limit_batches(site, size: int, metadata_chars: int = 2_000) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC.name, incremental_configs=[entry])
    for future in site.lab.admin.incremental_alter_configs([resource]).values():
        future.result(SECONDS)
    awaited(
        lambda: fetch_commit_limits(site.cluster.broker_client),
        lambda limits: limits == CommitLimits(metadata_chars, size),
        "the topic's limit",
    )


def test_no_plan_deletes_an_offset_that_could_not_be_committed_again(site):
    limit_batches(site, 1_048_588)
    plans = [
        lambda: plan_delete(site.cluster, "kafka", select(groups=GROUP), OPTIONS),
        lambda: plan_delete_groups(site.cluster, DeleteGroupsRequest((GROUP,)), "ann", NOW),
    ]
    for plan in plans:
        plan()
    limit_batches(site, 1_000)
    for plan in plans:
        with pytest.raises(UnsafePlan, match=r"restorable.*noted/notes-0: about 1,\d+ bytes, max.message.bytes"):
            plan()
    overridden = plan_delete_groups(site.cluster, DeleteGroupsRequest((GROUP,)), "ann", NOW, ("restorable",))
    assert "restorable" in overridden.overridden


def test_a_group_comes_back_in_smaller_batches_than_it_was_deleted_from(kraft_lab, tmp_path):
    """The topic's limit was lowered since. Coordinators of Kafka 4 answer UNKNOWN_SERVER_ERROR for a larger request."""
    topic, path = "small-batches", tmp_path / "offramp.toml"
    kraft_lab.create_topic(topic, 40)
    path.write_text(kraft_lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, tmp_path / "runs")
        site.lab, site.performer = kraft_lab, performer(cluster)
        site.commit("halved", topic, {number: Stored(0, "x" * 1_000) for number in range(40)})
        before = site.stored("kafka", "halved")
        run = site.act(plan_delete_groups(cluster, DeleteGroupsRequest(("halved",)), "ann", NOW))
        limit_batches(site, 20_000, 4_096)
        try:
            run.undo().raise_unless(RunState.UNDONE)
        finally:
            limit_batches(site, 1_048_588, 4_096)
        assert site.stored("kafka", "halved") == before


def test_metadata_longer_than_the_brokers_take_now():
    """A broker reads ``offset.metadata.max.bytes`` when it starts, so the offset would have to be older than that."""
    limits = CommitLimits(2_000, 1_048_588)
    assert limits.problem(GROUP, TOPIC, METADATA) == "metadata of 3,000 characters, offset.metadata.max.bytes is 2,000"
    assert limits.problem(GROUP, TOPIC, "x" * 2_000) is None
    assert CommitLimits(unknown="no answer").problem(GROUP, TOPIC, METADATA) is None
