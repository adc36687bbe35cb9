"""Stages between the classic and the consumer protocol (KIP-848), on Kafka 4.4 with real members."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from kit import connect
from kit.clients.cluster import Cluster
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.lab import Lab
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.protocol.read import GroupProtocol, fetch_group_protocols
from kit.protocol.stage import Stage
from tests.servers.awaiting import awaited

TOPIC, PARTITIONS = "protocol-stages", 4
CLASSIC = {"partition.assignment.strategy": "range"}
CONSUMER = {"group.protocol": "consumer"}


@pytest.fixture(scope="module")
def cluster(kraft_lab: Lab):
    path = kraft_lab.folder / "protocol-stages.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic(TOPIC, PARTITIONS)
    with connect(load_profile(file=path)) as connected:
        yield connected


class Members:
    """Members of one group that are polled while the group is read."""

    def __init__(self, lab: Lab, cluster: Cluster, group: str, stack: ExitStack) -> None:
        self._lab, self._cluster, self.group, self._stack = lab, cluster, group, stack
        self.consumers: list[KafkaConsumer] = []

    def join(self, settings: dict) -> KafkaConsumer:
        config = {**QUIET, "bootstrap.servers": self._lab.bootstrap_servers, "group.id": self.group, **settings}
        consumer = self._stack.enter_context(KafkaConsumer(config))
        consumer.subscribe([TOPIC])
        self.consumers.append(consumer)
        return consumer

    def leave(self, consumer: KafkaConsumer) -> None:
        self.consumers.remove(consumer)
        consumer.close()

    def read(self) -> GroupProtocol:
        for consumer in self.consumers:
            consumer.poll(0.05)
        return fetch_group_protocols(self._cluster.broker_client, lambda name: name == self.group).groups[self.group]

    def awaited(self, holds: Callable[[GroupProtocol], bool], what: str) -> GroupProtocol:
        return awaited(self.read, holds, what)

    def reach(self, stage: Stage) -> GroupProtocol:
        return self.awaited(lambda group: group.stage is stage and group.is_settled, stage)


def test_a_group_walks_through_all_stages_and_back(kraft_lab, cluster):
    with ExitStack() as stack:
        members = Members(kraft_lab, cluster, "walks", stack)
        first, second, third = (members.join(CLASSIC) for _ in range(3))
        classic = members.awaited(lambda group: len(group.members) == 3 and group.is_settled, "three classic members")
        assert (classic.stage, classic.group_type, classic.assignor) == (Stage.CLASSIC, "classic", "range")
        assert (classic.epoch, {each.user_data for each in classic.members}) == (None, {0})
        new = [members.join(CONSUMER)]
        members.leave(first)
        canary = members.reach(Stage.CANARY)
        assert (canary.group_type, canary.assignor) == ("consumer", "uniform")
        assert sorted(each.protocol for each in canary.members) == ["classic", "classic", "consumer"]
        owned = [key for each in canary.members for key in each.assigned]
        assert sorted(owned) == [(TOPIC, partition) for partition in range(PARTITIONS)]
        assert {each.epoch for each in canary.members} == {canary.epoch} == {canary.assignment_epoch}
        new.append(members.join(CONSUMER))
        members.leave(second)
        members.reach(Stage.MIXED)
        members.leave(third)
        members.reach(Stage.CONSUMER)
        back = members.join(CLASSIC)
        members.leave(new[0])
        members.reach(Stage.CANARY)
        members.leave(new[1])
        assert members.reach(Stage.CLASSIC).group_type == "classic"
        members.leave(back)
        assert members.reach(Stage.EMPTY).members == ()
