"""ZooKeeper's offsets raised to Kafka's, so that an old consumer begins where the group is (KIP-125, rollback)."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError

from kit.cluster import Cluster
from kit.migrate.lock import ANSWER_S
from kit.migrate.standing import Partition, Standing, named

TRIES = 5


def raise_zookeeper_offsets(cluster: Cluster, found: Standing) -> tuple[dict[str, tuple[int | None, int]], list[str]]:
    """Every offset that is behind Kafka's, or missing: ``topic-partition`` → (before, after), and what was refused.

    A record below the group's offset in Kafka was handed out and committed, so nothing is lost by it. Each write is
    conditional on the version that was read; one that a member has written meanwhile is looked at again. Nothing is
    lowered.
    """
    raised: dict[str, tuple[int | None, int]] = {}
    refused: list[str] = []
    for pair, position in found.positions.items():
        if position.kafka is not None and (position.zookeeper is None or position.zookeeper < position.kafka):
            problem = _raise(cluster, found.group_id, pair, position.kafka, raised)
            if problem is not None:
                refused.append(problem)
    return raised, refused


def _raise(
    cluster: Cluster, group_id: str, pair: Partition, goal: int, raised: dict[str, tuple[int | None, int]]
) -> str | None:
    """What was refused, in a sentence."""
    client: KazooClient = cluster.zookeeper
    path = f"/consumers/{group_id}/offsets/{pair[0]}/{pair[1]}"
    try:
        for _ in range(TRIES):
            before = _read(client, path)
            if before is not None and not before[0].isdecimal():
                return f"{path} holds {before[0]!r}, which is no offset"
            if before is not None and int(before[0]) >= goal:
                return None
            try:
                if before is None:
                    client.create_async(path, str(goal).encode(), makepath=True).get(timeout=ANSWER_S)
                else:
                    client.set_async(path, str(goal).encode(), version=before[1]).get(timeout=ANSWER_S)
            except (BadVersionError, NodeExistsError, NoNodeError):
                continue
            raised[named(pair)] = (None if before is None else int(before[0]), goal)
            return None
    except (KazooException, client.handler.timeout_exception) as error:
        return f"{path} could not be raised to {goal}: ZooKeeper says {error!r}"
    return f"{path} is being written by somebody else all the time"


def _read(client: KazooClient, path: str) -> tuple[str, int] | None:
    try:
        data, stat = client.get_async(path).get(timeout=ANSWER_S)
    except NoNodeError:
        return None
    return data.decode("utf-8", "replace").strip(), stat.version
