"""The locks that runs have now, in ZooKeeper and in Kafka, and how an operator breaks one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from kafka.protocol.metadata import MetadataRequest
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError

from kit.clients.access import lacking
from kit.clients.cluster import Cluster
from kit.clients.multiread import refusal
from kit.engine.lock import ANSWER_S, CLUSTER_LOCKS, LOCKS, escaped
from kit.errors import AuthenticationFailed, ConnectError, InputError, NotFound, ReadError
from kit.groups.read.coordinator import LOCK_GROUPS
from kit.groups.read.rights import (
    DESCRIBE,
    EVERYTHING,
    Rights,
    fetch_cluster_rights,
    fetch_group_rights,
    fetch_topic_rights,
)
from kit.moves.locks.kafka_lock import WHOLE_CLUSTER, LockState, fetch_locks, lock_group, remove_members, target_of
from kit.moves.locks.lease import TOPIC
from kit.tables.groups import KAFKA, ZOOKEEPER

WHOLE = "the whole cluster"


@dataclass(frozen=True, slots=True)
class HeldLock:
    """One lock that is held. ``target``: the group, or ``the whole cluster``; of a lock that offramp did not write,
    ``run_id``, ``user``, ``host`` and ``since`` are None."""

    target: str
    is_whole: bool
    store: str
    run_id: str | None
    user: str | None
    host: str | None
    since: str | None
    place: str
    """The znode, or the group in Kafka."""
    holder: tuple[str, ...] = ()
    """The ids that distinguish this holder from the next one: the member ids in Kafka, the czxid in ZooKeeper."""


def held_locks(cluster: Cluster) -> list[HeldLock]:
    """Every lock that is held now, by store and target.

    Raises:
        ConnectError: ZooKeeper or a broker does not answer.
        AuthenticationFailed: ZooKeeper does not let the login read a lock.
    """
    kafka = [_in_kafka(each) for each in fetch_locks(cluster) if each.is_held]
    return sorted([*_in_zookeeper(cluster), *kafka], key=lambda each: (each.store, each.target))


def hidden_locks(cluster: Cluster) -> str | None:
    """Return why locks in Kafka, or the runs that hold them, may be missing in ``held_locks``; None: the login sees
    them.

    Brokers before Kafka 2.3 do not report rights, and never hold locks: these are in Kafka from migration mode on.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    client = cluster.broker_client
    if not client.supports(MetadataRequest, 8):
        return None
    of_group = fetch_group_rights(client, [WHOLE_CLUSTER])[WHOLE_CLUSTER]
    sees_names = _may_describe(fetch_cluster_rights(client)) or _may_describe(of_group)
    sees_runs = _may_describe(fetch_topic_rights(client, [TOPIC]).get(TOPIC, EVERYTHING))
    lacks = [] if sees_names else [f"DESCRIBE on Group with the prefix {LOCK_GROUPS}"]
    lacks += [] if sees_runs else [f"DESCRIBE on Topic {TOPIC}"]
    if not lacks:
        return None
    rights = "the right" if len(lacks) == 1 else "the rights"
    return f"Locks or their runs may be missing here: the login lacks {' and '.join(lacks)}. Grant {rights}."


def _may_describe(rights: Rights) -> bool:
    return not isinstance(rights, str) and DESCRIBE in rights


def break_locks(cluster: Cluster, target: str | None, typed_run: str) -> list[HeldLock]:
    """End the locks of a group, None: of the whole cluster. Their holder stops before its next write.

    Only the holders that were seen lose their locks: a run that has taken a lock meanwhile keeps it.

    ``typed_run``: the run that holds them, as a person typed it; the group's name where no run is known.

    Raises:
        NotFound: no run holds such a lock.
        InputError: another run holds it than the one that was typed; nothing was done.
        ReadError: none is seen, and the login may not see every lock.
        ConnectError, RunError: it can't be broken.
    """
    mine = [each for each in held_locks(cluster) if (each.is_whole if target is None else _is_of(each, target))]
    name = WHOLE if target is None else f"group {target}"
    if not mine:
        if (hidden := hidden_locks(cluster)) is not None:
            raise ReadError(hidden)
        raise NotFound(f"no run holds the lock of {name}: see offramp lock show")
    others = [each for each in mine if (each.run_id or each.target) != typed_run]
    if others:
        raise InputError(
            f"the lock of {name} is held by {others[0].run_id or others[0].target!r}, not by {typed_run!r}: nothing was"
            " done. Type the run that is shown by: offramp lock show"
        )
    for each in mine:
        end(cluster, each)
    return mine


def end(cluster: Cluster, lock: HeldLock) -> None:
    """End this lock, unless another holder has it by now.

    Raises:
        ConnectError, RunError: it can't be ended.
    """
    if lock.store == KAFKA:
        remove_members(cluster, lock.place, lock.holder)
    else:
        _delete(cluster, lock)


def _is_of(lock: HeldLock, target: str) -> bool:
    place = lock_group(target) if lock.store == KAFKA else f"{LOCKS}/{escaped(target)}"
    return lock.place == place


def _in_kafka(state: LockState) -> HeldLock:
    mark, member = state.mark, state.members[0]
    is_whole = state.group_id == WHOLE_CLUSTER
    target, place = WHOLE if is_whole else target_of(state.group_id), state.group_id
    holder = tuple(each.member_id for each in state.members)
    if mark is None:
        return HeldLock(target, is_whole, KAFKA, None, None, member.host, None, place, holder)
    return HeldLock(target, is_whole, KAFKA, mark.run_id, mark.user, mark.host, mark.since, place, holder)


def _in_zookeeper(cluster: Cluster) -> Iterator[HeldLock]:
    if cluster.zookeeper is None:
        return
    for parent in (LOCKS, CLUSTER_LOCKS):
        try:
            with suppress(NoNodeError):
                for name in cluster.zookeeper.get_children_async(parent).get(timeout=ANSWER_S):
                    yield _of_znode(cluster, parent, name)
        except NoAuthError as error:
            raise AuthenticationFailed(
                f"{parent} {refusal(error)}, so locks may be missing: use a login that may read it"
            ) from error
        except (KazooException, cluster.zookeeper.handler.timeout_exception) as error:
            raise ConnectError(f"{parent} can't be read: ZooKeeper answered {error!r}") from error


def _of_znode(cluster: Cluster, parent: str, name: str) -> HeldLock:
    assert cluster.zookeeper is not None
    data, path, holder = b"", f"{parent}/{name}", tuple[str, ...]()
    with suppress(NoNodeError):
        data, stat = cluster.zookeeper.get_async(path).get(timeout=ANSWER_S)
        holder = (str(stat.czxid),)
    run_id = host = since = None
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        written = json.loads(data or b"")
        run_id, host, since = (str(written[key]) for key in ("run_id", "host", "since"))
    is_whole = parent == CLUSTER_LOCKS
    target = WHOLE if is_whole else unquote(name)
    return HeldLock(target, is_whole, ZOOKEEPER, run_id, None, host, since, path, holder)


def _delete(cluster: Cluster, lock: HeldLock) -> None:
    """ZooKeeper has no condition on a znode's czxid, so it is compared just before."""
    assert cluster.zookeeper is not None
    try:
        with suppress(NoNodeError):
            _, stat = cluster.zookeeper.get_async(lock.place).get(timeout=ANSWER_S)
            if (str(stat.czxid),) == lock.holder:
                cluster.zookeeper.delete_async(lock.place).get(timeout=ANSWER_S)
    except NoAuthError as error:
        needed = lacking("DELETE", lock.place.rpartition("/")[0])
        raise AuthenticationFailed(f"{lock.place} can't be deleted: {needed}. Use a login that has it") from error
    except (KazooException, cluster.zookeeper.handler.timeout_exception) as error:
        raise ConnectError(f"{lock.place} can't be deleted: ZooKeeper answered {error!r}") from error
