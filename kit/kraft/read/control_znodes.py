"""The znodes that report who controls a cluster and how far a migration to KRaft has come (KIP-866)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import Names, Znode, catch_up, fetch_children, fetch_data, refusal
from kit.clients.values import json_in
from kit.kraft.read.metadata_values import BadValue, controller_value, migration_value
from kit.tables.kraft import REFUSED, UNDECODABLE, MetadataControl, ZnodeProblem, problem_columns
from kit.text.numbers import offset_in, partition_in

MIGRATION, CONTROLLER, EPOCH, CLUSTER_ID = "/migration", "/controller", "/controller_epoch", "/cluster/id"
_QUEUES = ("/admin/reassign_partitions", "/admin/preferred_replica_election")
_UNPARSED = (CLUSTER_ID, *_QUEUES)
_BROKERS, DELETIONS = "/brokers/ids", "/admin/delete_topics"
_NOTIFICATIONS = ("/isr_change_notification", "/log_dir_event_notification")


def fetch_control(client: KazooClient) -> MetadataControl:
    """The control znodes, ``/migration`` before all others; but ``max_state_epoch`` (``with_max_state_epoch``).

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    catch_up(client)
    paths = [MIGRATION, CONTROLLER, EPOCH, CLUSTER_ID, *_QUEUES]
    znodes = fetch_data(client, paths)
    held = dict(zip(paths, znodes))
    problems: list[ZnodeProblem] = []
    migration = _numbers(MIGRATION, held[MIGRATION], migration_value, problems)
    controller = _numbers(CONTROLLER, held[CONTROLLER], controller_value, problems)
    folders = [_BROKERS, DELETIONS, *_NOTIFICATIONS]
    lists = {path: _names(path, each, problems) for path, each in zip(folders, fetch_children(client, folders))}
    problems += [_refused(path, each) for path in _UNPARSED if isinstance(each := held[path], KazooException)]
    is_there, modified_ms = isinstance(held[MIGRATION], Znode), znodes.stat("modified_ms")[0]
    owner = held[CONTROLLER]
    return MetadataControl(
        read_at=datetime.now(UTC),
        cluster_id=_cluster_id(held[CLUSTER_ID]),
        controller_id=_known(controller.get("brokerid")),
        is_controller_persistent=owner.ephemeral_owner == 0 if isinstance(owner, Znode) else None,
        kraft_controller_epoch=_known(controller.get("kraftControllerEpoch")),
        controller_epoch=_epoch(held[EPOCH], problems),
        has_migration=None if isinstance(held[MIGRATION], KazooException) else is_there,
        migrating_controller_id=_known(migration.get("kraft_controller_id")),
        checkpoint=_known(migration.get("kraft_metadata_offset")),
        checkpoint_epoch=_known(migration.get("kraft_metadata_epoch")),
        checkpoint_at=None if modified_ms is None else datetime.fromtimestamp(modified_ms / 1000, UTC),
        brokers=tuple(sorted(number for each in lists[_BROKERS] if (number := partition_in(each)) is not None)),
        max_state_epoch=None,
        pending_deletions=tuple(lists[DELETIONS]),
        n_reassignments=sum(isinstance(held[path], Znode) for path in _QUEUES),
        n_notifications=sum(len(lists[path]) for path in _NOTIFICATIONS),
        **problem_columns(problems),
    )


def _refused(path: str, error: KazooException) -> ZnodeProblem:
    return ZnodeProblem(path, REFUSED, f"{path}: it {refusal(error)}")


def _numbers(
    path: str,
    held: Znode | KazooException | None,
    decode: Callable[[bytes], dict[str, int | None]],
    problems: list[ZnodeProblem],
) -> dict[str, int | None]:
    if isinstance(held, KazooException):
        problems.append(_refused(path, held))
    elif held is not None:
        try:
            return decode(held.data)
        except BadValue as problem:
            problems.append(ZnodeProblem(path, UNDECODABLE, f"{path}: {problem}"))
    return {}


def _names(path: str, names: Names, problems: list[ZnodeProblem]) -> list[str]:
    if isinstance(names, KazooException):
        problems.append(ZnodeProblem(path, REFUSED, f"{path} {refusal(names, 'listed')}"))
    return sorted(names) if isinstance(names, list) else []


def _known(number: int | None) -> int | None:
    """Kafka writes -1 for what isn't so yet."""
    return None if number is None or number < 0 else number


def _epoch(held: Znode | KazooException | None, problems: list[ZnodeProblem]) -> int | None:
    if held is None:
        return None
    if isinstance(held, KazooException):
        problems.append(_refused(EPOCH, held))
        return None
    epoch = offset_in(held.data.decode(errors="replace"))
    if epoch is None:
        problems.append(ZnodeProblem(EPOCH, UNDECODABLE, f"{EPOCH}: it is no number"))
    return epoch


def _cluster_id(held: Znode | KazooException | None) -> str | None:
    content = json_in(held.data) if isinstance(held, Znode) else None
    return str(content["id"]) if isinstance(content, dict) and isinstance(content.get("id"), str) else None
