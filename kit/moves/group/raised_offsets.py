"""ZooKeeper's offsets raised to Kafka's, so that an old consumer begins where the group is (KIP-125, rollback)."""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NoAuthError, NodeExistsError, NoNodeError

from kit.clients.access import inherited, lacking
from kit.clients.cluster import Cluster
from kit.clients.paths import partition_path
from kit.clients.values import shown
from kit.engine.lock import ANSWER_S
from kit.errors import AuthenticationFailed, ConnectError
from kit.moves.group.group_state import GroupState, Partition, named
from kit.text.numbers import offset_in

TRIES = 5


def raise_zookeeper_offsets(cluster: Cluster, group: GroupState) -> tuple[dict[str, tuple[int | None, int]], list[str]]:
    """Every offset that is behind Kafka's, or missing: ``topic-partition`` → (before, after), and what was refused.

    A record below the group's offset in Kafka was delivered and committed, so nothing is lost by it. Each write is
    conditional on the version that was read; one that a member has written meanwhile is examined again. Nothing is
    lowered.
    """
    raised: dict[str, tuple[int | None, int]] = {}
    refused: list[str] = []
    for pair, offsets in group.offsets.items():
        if offsets.kafka is not None and (offsets.zookeeper is None or offsets.zookeeper < offsets.kafka):
            problem = _raise(cluster, group.group_id, pair, offsets.kafka, raised)
            if problem is not None:
                refused.append(problem)
    return raised, refused


def _raise(
    cluster: Cluster, group_id: str, pair: Partition, goal: int, raised: dict[str, tuple[int | None, int]]
) -> str | None:
    """Raise an offset. Return why an item was refused, in a sentence."""
    client: KazooClient = cluster.zookeeper
    path = partition_path(group_id, "offsets", *pair)
    try:
        for _ in range(TRIES):
            text, version = _read(client, path)
            before = None if text is None else offset_in(text)
            if text is not None and before is None:
                return f"{path} holds {shown(text)}, which is no offset"
            if before is not None and before >= goal:
                return None
            try:
                _write(client, path, goal, version)
            except (BadVersionError, NodeExistsError, NoNodeError):
                continue
            raised[named(pair)] = (before, goal)
            return None
    except AuthenticationFailed as error:
        return str(error)
    except NoAuthError:
        return f"{path} could not be raised to {goal}: {lacking('READ and WRITE', f'{path}, or CREATE above it')}"
    except (ConnectError, KazooException, client.handler.timeout_exception) as error:
        return f"{path} could not be raised to {goal}: ZooKeeper answered {error!r}"
    return f"another operator or tool keeps writing {path}"


def _read(client: KazooClient, path: str) -> tuple[str | None, int]:
    """Return the leader's offset in this znode, and the znode's version; None and -1 without a znode."""
    client.sync_async(path)
    try:
        data, stat = client.get_async(path).get(timeout=ANSWER_S)
    except NoNodeError:
        return None, -1
    return data.decode("utf-8", "replace"), stat.version


def _write(client: KazooClient, path: str, goal: int, version: int) -> None:
    if version < 0:
        acl = inherited(client, path, ANSWER_S)
        client.create_async(path, str(goal).encode(), acl=acl, makepath=True).get(timeout=ANSWER_S)
    else:
        client.set_async(path, str(goal).encode(), version=version).get(timeout=ANSWER_S)
