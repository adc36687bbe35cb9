"""A cluster in the midst of an upgrade: brokers of two versions, each the coordinator of some groups."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer

from kit import connect, observe
from kit.engine.model.states import RunState
from kit.groups import views
from kit.groups.snapshot import verify_read
from kit.lab import Lab
from kit.lab.java import jars
from kit.lab.topics import QUIET
from kit.moves.offsets.plan import PlanOptions, Reset, plan_reset, select
from kit.profile import load_profile
from tests.servers.awaiting import awaited
from tests.servers.offset_operations import OffsetOperations, await_member
from tests.soak import soak_only

pytestmark = soak_only

OLD, NEW = "4.1.1", "4.4.0"
GROUPS = [f"upgraded-{number}" for number in range(12)]
MEMBERS = {"live-classic": "classic", "live-consumer": "consumer"}
TOPIC, PARTITIONS, RECORDS = "upgraded", 6, 60


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """Two brokers of 4.1.1 and one of 4.4.0; groups that committed and left, and two with a member."""
    path = tmp_path_factory.mktemp("upgrade") / "offramp.toml"
    with Lab(brokers=3, kraft=True, kafka_version=OLD) as lab:
        jars.ensure([jars.KAFKA_SETS[NEW]])
        lab.create_topic(TOPIC, PARTITIONS, replication=3)
        lab.produce(TOPIC, RECORDS)
        path.write_text(lab.profile_toml())
        last = lab.servers.brokers[-1]
        last.process.stop()
        last.jar_set = jars.KAFKA_SETS[NEW]
        last.launch()
        last.await_started()
        lab.servers.await_known(last)
        with connect(load_profile(file=path)) as cluster:
            site = OffsetOperations(cluster, path.parent / "runs")
            for group in GROUPS:
                site.commit(group, TOPIC, dict.fromkeys(range(PARTITIONS), 4))
            servers = {"bootstrap.servers": lab.bootstrap_servers}
            consumers = [
                Consumer({**QUIET, **servers, "group.id": group, "group.protocol": protocol})
                for group, protocol in MEMBERS.items()
            ]
            for consumer in consumers:
                await_member(consumer, TOPIC)
            yield site
            for consumer in consumers:
                consumer.close()


def test_groups_of_coordinators_of_both_versions_are_read_whole(half):
    def read():
        return observe(half.cluster, "(upgraded|live)-.*")

    is_led = awaited(read, lambda found: found.groups.height == len(GROUPS) + len(MEMBERS), "all groups")
    assert len(set(is_led.groups["coordinator"])) == 3
    verify_read(is_led)
    rows = views.lag(is_led).to_dicts()
    lags = {(row["group_id"], row["partition"]): row["lag"] for row in rows if row["group_id"] in GROUPS}
    assert lags == {
        (group, partition): RECORDS // PARTITIONS - 4 for group in GROUPS for partition in range(PARTITIONS)
    }
    types = dict(zip(is_led.groups["group_id"], is_led.groups["group_type"]))
    assert {group: types[group] for group in MEMBERS} == MEMBERS


def test_offsets_are_reset_and_restored_at_coordinators_of_both_versions(half):
    options = PlanOptions(made_by="ann", now=datetime.now(UTC), allow_backwards=True)
    run = half.act(plan_reset(half.cluster, "kafka", select(groups=GROUPS), Reset("offset", 2), options))
    assert all(set(half.offsets("kafka", group).values()) == {2} for group in GROUPS)
    run.undo().raise_unless(RunState.UNDONE)
    assert all(set(half.offsets("kafka", group).values()) == {4} for group in GROUPS)
