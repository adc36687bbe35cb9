"""A run takes locks by what the brokers are and whether the profile names ZooKeeper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.engine.lock import ZookeeperLock
from kit.errors import PlanError
from kit.moves.locks.kafka_lock import KafkaLock
from kit.moves.locks.run_lock import locks_of


def cluster(has_zookeeper: bool) -> Any:
    zookeeper = MagicMock() if has_zookeeper else None
    return SimpleNamespace(name="production", zookeeper=zookeeper, broker_client=MagicMock(), profile=None)


@pytest.mark.parametrize(
    ("has_zookeeper", "modes", "locks"),
    [
        (True, [ZOOKEEPER_MODE, ZOOKEEPER_MODE], [ZookeeperLock]),
        (True, [ZOOKEEPER_MODE, MIGRATION_MODE], [ZookeeperLock, KafkaLock]),
        (True, [KRAFT_MODE, MIGRATION_MODE], [ZookeeperLock, KafkaLock]),
        (True, [KRAFT_MODE, KRAFT_MODE], [ZookeeperLock, KafkaLock]),
        (False, [KRAFT_MODE, KRAFT_MODE], [KafkaLock]),
    ],
)
def test_the_locks_of_a_run(has_zookeeper, modes, locks):
    assert [type(each) for each in locks_of(cluster(has_zookeeper), dict(enumerate(modes)))] == locks


@pytest.mark.parametrize("mode", [ZOOKEEPER_MODE, MIGRATION_MODE])
def test_a_profile_must_name_the_zookeeper_of_a_broker(mode):
    with pytest.raises(PlanError, match=r"broker 2 of cluster 'production' uses ZooKeeper"):
        locks_of(cluster(has_zookeeper=False), {1: KRAFT_MODE, 2: mode})
