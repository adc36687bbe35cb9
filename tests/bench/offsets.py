"""Offsets of many groups planned, committed and read back: ours beside confluent-kafka's admin client.

The admin client takes one group per call, so its user keeps many calls under way. It plans nothing: it reads what is
committed, and it commits. Ours plans too (before, after, clamping, members, digest), so planning has a row of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from kit.clients.cluster import Cluster
from kit.engine.model.performer import Outcome
from kit.lab.topics import QUIET
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.performer import OffsetsActor
from kit.moves.offsets.plan import PlanOptions, Reset, plan_reset, select
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, PARTITIONS, TOPIC, Site, group_name
from tests.reporting import Permissive

_GROUPS = 1_000
_PER_PARTITION = 100
_COMMIT_GOAL = 0.6
"""Both wait for one broker that takes one commit after another; the peer's are encoded in C."""
_IN_FLIGHT = 128
"""The number of requests at which the admin client is fastest: fewer wait for round trips, more don't help."""


def compared(site: Site) -> Iterator[Row]:
    """Rows in seconds for a thousand groups (or all there are); the rates are reported on the way."""
    n_groups = min(_GROUPS, site.sizes.groups)
    groups = [group_name(number) for number in range(n_groups)]
    what = f"{n_groups:,} groups × {PARTITIONS}"
    admin = AdminClient({**QUIET, "bootstrap.servers": site.lab.bootstrap_servers})
    turns = itertools.count(1)
    with site.connect(BROKERS_ONLY) as cluster:
        writer = KafkaWriter(cluster.broker_client)
        rows = [
            compare(
                f"{what} committed vs AdminClient's alter",
                timed(lambda: _commit(writer, groups, next(turns) % _PER_PARTITION)),
                timed(lambda: _alter(admin, groups, next(turns) % _PER_PARTITION)),
                _COMMIT_GOAL,
            ),
            compare(
                f"{what} offsets read back vs AdminClient's list",
                timed(
                    lambda: writer.read(_keys(groups)),
                    lambda found: expect("offsets", len(found), n_groups * PARTITIONS),
                ),
                timed(lambda: _list(admin, groups), lambda found: expect("offsets", found, n_groups * PARTITIONS)),
                1,
            ),
            compare(
                f"{what} planned, read back vs AdminClient's list",
                timed(lambda: _plan_and_read(cluster, groups)),
                timed(lambda: _list(admin, groups)),
                None,
            ),
            compare(
                f"{what} planned, acted, verified vs list, alter, list",
                timed(lambda: _move(cluster, groups, next(turns) % _PER_PARTITION)),
                timed(lambda: _list_alter_list(admin, groups, next(turns) % _PER_PARTITION)),
                None,
            ),
        ]
    for row in rows:
        say(f"  {row.name}: ours {n_groups / row.ours:,.0f} groups/s, peer {n_groups / row.peer:,.0f} groups/s")
    yield from rows


def _keys(groups: list[str]) -> list[tuple[str, str, int]]:
    return [(group_id, TOPIC, partition) for group_id in groups for partition in range(PARTITIONS)]


def _commit(writer: KafkaWriter, groups: list[str], offset: int) -> None:
    answers = writer.write(dict.fromkeys(_keys(groups), Stored(offset)), {})
    expect("refused commits", [answer.error for answer in answers.values() if answer.error], [])


def _plan(cluster: Cluster, groups: list[str], offset: int) -> Any:
    options = PlanOptions("bench", datetime.now(UTC), allow_backwards=True)
    return plan_reset(cluster, "kafka", select(groups=groups, topics=TOPIC), Reset("offset", offset), options)


def _plan_and_read(cluster: Cluster, groups: list[str]) -> None:
    step = _plan(cluster, groups, _PER_PARTITION).steps[0]
    expect("offsets that are so already", OffsetsActor(cluster).verify(step).evidence["n_as_wanted"], 0)


def _move(cluster: Cluster, groups: list[str], offset: int) -> None:
    actor, step = OffsetsActor(cluster), _plan(cluster, groups, offset).steps[0]
    outcomes = actor.act(step, Permissive())
    expect("outcomes", {outcome.outcome for outcome in outcomes}, {Outcome.CONFIRMED})
    expect("verified", actor.verify(step).ok, True)


def _list(admin: AdminClient, groups: list[str]) -> int:
    asked = [ConsumerGroupTopicPartitions(group_id) for group_id in groups]
    return sum(len(found.topic_partitions) for found in _each(admin.list_consumer_group_offsets, asked))


def _alter(admin: AdminClient, groups: list[str], offset: int) -> None:
    wanted = [
        ConsumerGroupTopicPartitions(
            group_id, [TopicPartition(TOPIC, partition, offset) for partition in range(PARTITIONS)]
        )
        for group_id in groups
    ]
    for found in _each(admin.alter_consumer_group_offsets, wanted):
        expect("refused commits", [each.error for each in found.topic_partitions if each.error], [])


def _list_alter_list(admin: AdminClient, groups: list[str], offset: int) -> None:
    _list(admin, groups)
    _alter(admin, groups, offset)
    _list(admin, groups)


def _each(call: Callable[[list[Any]], dict[str, Any]], asked: list[Any]) -> Iterator[Any]:
    """One call per group, so many under way."""
    for start in range(0, len(asked), _IN_FLIGHT):
        futures = [future for one in asked[start : start + _IN_FLIGHT] for future in call([one]).values()]
        for future in futures:
            yield future.result(60)
