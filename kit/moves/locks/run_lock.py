"""Choose the lock of a run of groups by the mode of the brokers when the run begins, never by the profile alone.

=====================================  ==================================================
brokers                                lock
=====================================  ==================================================
in ZooKeeper mode                      ZooKeeper's
one in migration mode or KRaft mode    ZooKeeper's, then Kafka's, while the profile names
                                       ZooKeeper
all in KRaft mode                      Kafka's, once the profile names no ZooKeeper
=====================================  ==================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster, kafka_settings
from kit.clients.nodes import KRAFT_MODE, ZOOKEEPER_MODE, fetch_node_facts
from kit.engine.lock import ZookeeperLock
from kit.errors import ConnectError, PlanError
from kit.moves.locks.kafka_lock import KafkaLock, LockGroups
from kit.text.addresses import address_of


class RunLock:
    """The locks of one run of groups, all or none of them. They are chosen by ``acquire``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._locks: list[ZookeeperLock | KafkaLock] = []

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """All or none.

        Raises:
            TargetBusy: another run has one of them; which, on which host, since when.
            ConnectError: a broker or ZooKeeper does not answer.
            PlanError: the profile has to name ZooKeeper.
            RunError: the brokers refuse the lock.
        """
        self._locks = locks_of(self._cluster, broker_modes(self._cluster))
        try:
            for lock in self._locks:
                lock.acquire(targets, run_id)
        except BaseException:
            self.release()
            raise

    def assert_held(self) -> None:
        """Raise LockLost if one of them may be another run's."""
        for lock in self._locks:
            lock.assert_held()

    def mark(self, targets: Sequence[str], run_id: str) -> None:
        for lock in self._locks:
            lock.mark(targets, run_id)

    def followed_by(self, targets: Sequence[str], run_id: str) -> Mapping[str, str]:
        return {target: run for lock in self._locks for target, run in lock.followed_by(targets, run_id).items()}

    def mark_settled(self, targets: Sequence[str], run_id: str) -> None:
        for lock in self._locks:
            lock.mark_settled(targets, run_id)

    def unsettled(self, targets: Sequence[str], run_id: str) -> str | None:
        return None

    def release(self) -> None:
        """The last first: no run has ZooKeeper's while another one still has Kafka's."""
        for lock in reversed(self._locks):
            lock.release()


def locks_of(cluster: Cluster, modes: Mapping[int, str]) -> list[ZookeeperLock | KafkaLock]:
    """The locks of one run, in the order in which they are taken; ``modes`` by broker.

    Raises:
        PlanError: as ``refuse_unlockable``.
    """
    if cluster.zookeeper is None:
        refuse_unlockable(cluster, modes)
        return [KafkaLock(LockGroups(cluster))]
    is_moving = any(mode != ZOOKEEPER_MODE for mode in modes.values())
    return (
        [ZookeeperLock(cluster), KafkaLock(LockGroups(cluster), is_alone=False)]
        if is_moving
        else [ZookeeperLock(cluster)]
    )


def refuse_unlockable(cluster: Cluster, modes: Mapping[int, str]) -> None:
    """Refuse a cluster whose profile names no ZooKeeper, and whose brokers use one: others lock in that.

    Raises:
        PlanError: a broker uses ZooKeeper.
    """
    old = sorted(number for number, mode in modes.items() if mode != KRAFT_MODE)
    if old:
        raise PlanError(
            f"broker {old[0]} of cluster {cluster.name!r} uses ZooKeeper, but the profile has no zookeeper_connect. "
            "A run needs ZooKeeper for its lock. Set zookeeper_connect in offramp.toml"
        )


def refuse_cluster(cluster: Cluster) -> None:
    """Ask the brokers, if the profile names no ZooKeeper, and refuse as :func:`refuse_unlockable`.

    Raises:
        PlanError: a broker uses ZooKeeper.
        ConnectError: no broker answers.
    """
    if cluster.zookeeper is None:
        refuse_unlockable(cluster, broker_modes(cluster))


def broker_modes(cluster: Cluster) -> dict[int, str]:
    """The mode of each broker that answers, by its id.

    Raises:
        ConnectError: none answers.
    """
    brokers = [
        (address_of(each.host, each.port), each.broker_id) for each in fetch_metadata(cluster.broker_client).brokers
    ]
    facts = fetch_node_facts(kafka_settings(cluster.profile), brokers, ())
    modes = {each.node_id: each.mode for each in facts if each.node_id is not None and each.mode is not None}
    if not modes:
        raise ConnectError(f"no broker of cluster {cluster.name!r} reports whether it uses ZooKeeper")
    return modes
