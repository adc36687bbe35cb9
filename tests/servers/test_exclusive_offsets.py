"""Offsets that are written by the group's only member: no other operator or tool commits between the read and the
write.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, TopicPartition

from kit import connect
from kit.engine.model.states import RunState
from kit.errors import InputError, UnsafePlan
from kit.lab.topics import QUIET
from kit.moves.offsets.exclusive import ExclusiveWriter, membership
from kit.moves.offsets.kafka import BATCH_BYTES, KafkaWriter
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.plan import PlanOptions, Reset, plan_reset, select
from kit.profile import load_profile
from kit.protocol.read import fetch_group_protocols
from tests.servers.awaiting import awaited
from tests.servers.offset_operations import OffsetOperations, await_member, one_topic

OPTIONS = PlanOptions(made_by="ann", now=datetime.now(UTC), allow_backwards=True, is_exclusive=True)
PARTITIONS = 2


@pytest.fixture
def site(kraft_lab, request, tmp_path):
    with one_topic(kraft_lab, request, tmp_path, PARTITIONS) as site:
        yield site


def in_kafka(site) -> dict[int, int]:
    return {partition: offset for (_, partition), offset in site.offsets("kafka", site.group).items()}


def test_a_reset_and_its_undo_of_many_groups_as_their_only_member(site):
    groups = [f"{site.group}-{number}" for number in range(10)]
    before = {0: Stored(10, "of ann", 0), 1: Stored(20)}
    for group in groups:
        site.commit(group, site.topic, before)
    plan = plan_reset(site.cluster, "kafka", select(groups=groups), Reset("offset", 5), OPTIONS)
    assert plan.steps[0].title.endswith("as its only member")
    run = site.act(plan)
    assert all(set(site.offsets("kafka", group).values()) == {5} for group in groups)
    run.undo().raise_unless(RunState.UNDONE)
    for group in groups:
        held = {place[1]: replace(it, topic_id=None) for place, it in site.stored("kafka", group).items()}
        assert held == before
    site.await_no_members(groups[0])


def test_a_group_that_no_one_knows_gets_offsets_and_loses_them_again(site):
    options = replace(OPTIONS, new_groups=True)
    chosen = select(groups=site.group, topics=site.topic)
    run = site.act(plan_reset(site.cluster, "kafka", chosen, Reset("offset", 7), options))
    assert in_kafka(site) == {0: 7, 1: 7}
    run.undo().raise_unless(RunState.UNDONE)
    assert in_kafka(site) == {}


def test_no_other_client_commits_while_the_writer_is_the_member(site):
    site.commit(site.group, site.topic, {0: 10})
    client, place = site.cluster.broker_client, (site.topic, 0)
    with membership(client, site.group, KafkaWriter(client), [place], set()):
        (answer,) = site.kafka.write({(site.group, *place): Stored(99)}, {}).values()
        assert answer.is_refused
        assert in_kafka(site) == {0: 10}
    site.await_no_members(site.group)
    site.commit(site.group, site.topic, {0: 99})


def test_an_offset_that_was_moved_before_the_join_stays(site):
    site.commit(site.group, site.topic, {0: 10, 1: 30})
    keys = [(site.group, site.topic, partition) for partition in range(PARTITIONS)]
    known = site.kafka.read(keys)
    site.commit(site.group, site.topic, {0: 11})
    answers = ExclusiveWriter(site.cluster).write(dict.fromkeys(keys, Stored(5)), known)
    assert [answers[key].is_refused for key in keys] == [True, False]
    assert in_kafka(site) == {0: 11, 1: 5}


def test_a_member_of_the_group_is_not_disturbed(site):
    consumer = Consumer({**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, "group.id": site.group})
    try:
        await_member(consumer, site.topic)
        key = (site.group, site.topic, 0)
        (answer,) = ExclusiveWriter(site.cluster).write({key: Stored(5)}, site.kafka.read([key])).values()
        assert answer.is_refused
        # A rebalance would have ended the member's generation.
        consumer.commit(asynchronous=False, offsets=[TopicPartition(site.topic, 0, 3)])
    finally:
        consumer.close()


def test_more_offsets_than_one_request_takes(site):
    site.lab.create_topic(f"{site.topic}-wide", 300)
    metadata = "m" * 3_000
    assert 300 * len(metadata) > BATCH_BYTES
    keys = [(site.group, f"{site.topic}-wide", partition) for partition in range(300)]
    awaited(lambda: site.kafka.read(keys[:1]), lambda found: not found[keys[0]].is_hidden, "the coordinator")
    wanted = dict.fromkeys(keys, Stored(0, metadata))

    def refused() -> set[str | None]:
        return {answer.error for answer in ExclusiveWriter(site.cluster).write(wanted, site.kafka.read(keys)).values()}

    awaited(refused, lambda found: found == {None}, "the commit: a coordinator learns of a new topic a moment later")
    assert {stored.offset for stored in site.kafka.read(keys).values()} == {0}


def test_a_group_of_the_consumer_protocol_is_refused_at_planning(site):
    settings = {"bootstrap.servers": site.lab.bootstrap_servers, "group.id": site.group, "group.protocol": "consumer"}
    consumer = Consumer(QUIET | settings)
    await_member(consumer, site.topic)
    consumer.close()
    site.commit(site.group, site.topic, {0: 10})
    with pytest.raises(UnsafePlan, match="exclusive"):
        plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("offset", 5), OPTIONS)


def test_a_group_that_a_member_converted_after_the_plan_is_not_joined(site):
    """DescribeGroups shows it as one that does not exist. A join would convert it back."""
    site.commit(site.group, site.topic, {0: 10})
    plan = plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("offset", 5), OPTIONS)
    settings = {"bootstrap.servers": site.lab.bootstrap_servers, "group.id": site.group, "group.protocol": "consumer"}
    consumer = Consumer(QUIET | settings | {"enable.auto.commit": False})
    await_member(consumer, site.topic)
    consumer.close()
    site.await_no_members(site.group)
    result = site.run(plan).act()
    assert (result.state, "converted the group to the consumer protocol" in result.sentence) == (RunState.FAILED, True)
    assert in_kafka(site) == {0: 10}
    found = fetch_group_protocols(site.cluster.broker_client, site.group.__eq__).groups[site.group]
    assert found.group_type == "consumer"


def test_zookeeper_needs_no_exclusive_write(lab, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, tmp_path / "runs")
        lab.create_topic("exclusive-old", 1)
        lab.produce("exclusive-old", 10)
        site.put("exclusive-old", "exclusive-old", {0: 3})
        with pytest.raises(InputError):
            plan_reset(cluster, "zookeeper", select(groups="exclusive-old"), Reset("offset", 1), OPTIONS)


def test_a_plan_reports_which_groups_have_offsets_and_never_had_members(site):
    site.commit(site.group, site.topic, {0: 10})
    plans = [
        plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("offset", 5), options)
        for options in (replace(OPTIONS, is_exclusive=False), OPTIONS)
    ]
    assert [any("--exclusive" in risk for risk in plan.risks) for plan in plans] == [True, False]
