"""Offsets that an open transaction has sent: nothing is written over them, and no group with them is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.performer import Outcome
from kit.engine.model.states import RunState
from kit.groups.read.coordinator import fetch_groups
from kit.lab.topics import QUIET
from kit.moves.offsets import delete_groups, fetch
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, plan_delete_groups
from kit.moves.offsets.group_deleter import GroupDeleter
from kit.moves.offsets.group_steps import KIND, RECIPES, before_of
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.performer import OffsetsPerformer
from kit.moves.offsets.plan import PlanOptions, Reset, plan_delete, plan_reset, select
from tests.reporting import Permissive
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import one_topic

NOW = datetime.now(UTC)
OPTIONS = PlanOptions(made_by="ann", now=NOW, allow_backwards=True, overrides=("kept_elsewhere",))
OPEN = "a transaction that is still open has sent offsets for it"
LONGER_THAN_A_READ_S = 1.5
DEADLINE_S = 1.0
"""Long enough to read again a few times; a transaction stays open for a minute."""


@pytest.fixture
def site(lab, request, tmp_path):
    with one_topic(lab, request, tmp_path, 2) as site:
        yield site


@contextmanager
def sent(site, offsets: dict[int, int]) -> Iterator[Producer]:
    """A transaction that has sent these offsets of the group and is open; committed at the end."""
    servers = {**QUIET, "bootstrap.servers": site.lab.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": site.group})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    member = Consumer({**servers, "group.id": site.group})
    places = [TopicPartition(site.topic, partition, offset) for partition, offset in offsets.items()]
    producer.send_offsets_to_transaction(places, member.consumer_group_metadata(), SECONDS)
    member.close()
    yield producer
    producer.commit_transaction(SECONDS)
    awaited(lambda: kept(site), lambda found: found.items() >= offsets.items(), "the transaction's offsets")


def kept(site) -> dict[int, int]:
    """Offset by partition, as a listing reads them."""
    held = fetch.fetch_stores(site.cluster, site.group.__eq__, only_stable=False).group("kafka", site.group).offsets
    return {partition: stored.offset for (_, partition), stored in held.items()}


def test_no_write_goes_over_an_open_transaction(site):
    site.commit(site.group, site.topic, {0: 10})
    chosen = select(groups=site.group)
    reset = plan_reset(site.cluster, "kafka", chosen, Reset("latest"), OPTIONS)
    deletion = plan_delete(site.cluster, "kafka", chosen, OPTIONS)
    with sent(site, {0: 40}):
        for plan in (reset, deletion):
            (outcome,) = OffsetsPerformer(site.cluster, DEADLINE_S).act(plan.steps[0], Permissive())
            assert (outcome.outcome, OPEN in outcome.error) == (Outcome.NOT_ATTEMPTED, True)
        assert kept(site) == {0: 10}
    assert kept(site) == {0: 40}


def test_a_plan_waits_for_the_end_of_a_transaction(site):
    site.commit(site.group, site.topic, {0: 10})
    with ThreadPoolExecutor() as threads:
        with sent(site, {0: 40}):
            planned = [
                threads.submit(plan_reset, site.cluster, "kafka", select(groups=site.group), Reset("latest"), OPTIONS),
                threads.submit(plan_delete_groups, site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW),
            ]
            wait(planned, LONGER_THAN_A_READ_S, FIRST_COMPLETED)
        reset, deletion = (each.result(SECONDS) for each in planned)
    assert [change.before for change in reset.steps[0].changes] == [40]
    assert list(before_of(deletion.steps[0]).values()) == [{(site.topic, 0): Stored(40)}]


def test_a_run_that_stays_open_is_reported_with_its_reason(site):
    site.commit(site.group, site.topic, {0: 10})
    with sent(site, {0: 40}):
        read = fetch_groups(site.cluster.broker_client, site.group.__eq__, DEADLINE_S, only_stable=True)
        ((error,),) = read.groups.rows("error")
        assert OPEN in error
        assert list(read.committed_offsets.rows("committed_offset")) == []


def test_an_undo_leaves_what_an_open_transaction_has_sent(site):
    site.commit(site.group, site.topic, {0: 10})
    plan = plan_reset(site.cluster, "kafka", select(groups=site.group), Reset("latest"), OPTIONS)
    site.performer = OffsetsPerformer(site.cluster, DEADLINE_S)
    run = site.act(plan)
    with sent(site, {0: 40}):
        ending = run.undo()
        assert ending.state == RunState.UNDO_HALTED
        assert OPEN in ending.sentence
    assert kept(site) == {0: 40}


def test_an_offset_that_only_a_transaction_has_sent_is_not_written_over(site):
    """A coordinator that is asked for all offsets of the group doesn't name this partition."""
    site.commit(site.group, site.topic, {0: 10})
    chosen = select(groups=site.group, topics=site.topic)
    plan = plan_reset(site.cluster, "kafka", chosen, Reset("latest"), OPTIONS)
    with sent(site, {1: 40}):
        outcomes = OffsetsPerformer(site.cluster, DEADLINE_S).act(plan.steps[0], Permissive())
        assert {each.outcome for each in outcomes} == {Outcome.NOT_ATTEMPTED}
    assert kept(site) == {0: 10, 1: 40}


@pytest.mark.parametrize("partition", [0, 1], ids=["committed", "only-sent"])
def test_no_group_with_offsets_of_an_open_transaction_is_deleted(site, partition):
    site.commit(site.group, site.topic, {0: 10})
    plan = plan_delete_groups(site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW)
    with sent(site, {partition: 40}):
        (outcome,) = GroupDeleter(site.cluster, DEADLINE_S).act(plan.steps[0], Permissive())
        assert (outcome.outcome, OPEN in outcome.error) == (Outcome.NOT_ATTEMPTED, True), outcome
    assert kept(site) == {0: 10} | {partition: 40}
    site.performer = delete_groups.performer(site.cluster)
    again = plan_delete_groups(site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW)
    site.act(again)
    assert kept(site) == {}


def test_an_undo_brings_no_group_back_over_an_open_transaction(site):
    """The coordinator names none of the new group's offsets before the transaction is committed."""
    site.commit(site.group, site.topic, {0: 10})
    plan = plan_delete_groups(site.cluster, DeleteGroupsRequest((site.group,)), "ann", NOW)
    site.performer = ClusterPerformer(
        site.cluster.confirmed_id, {KIND: GroupDeleter(site.cluster, DEADLINE_S)}, RECIPES, lambda plan: {}
    )
    run = site.act(plan)
    with sent(site, {0: 40}):
        ending = run.undo()
        assert ending.state == RunState.UNDO_HALTED
        assert OPEN in ending.sentence
    assert kept(site) == {0: 40}
