"""Persistent znodes where members keep ephemeral ones: no session deletes them, and no live member holds them.

A consumer's registration (``ids``, KIP-125: ``migration/ids`` too) and its owner znodes are ephemeral
(``ZookeeperConsumerConnector``, ``ZkUtils.createEphemeralPath``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.multiread import Names, Znode, catch_up, fetch_children, fetch_data, refusal
from kit.clients.paths import group_path
from kit.text.numbers import partition_in

_REGISTRATIONS = ("ids", "migration/ids")


@dataclass(frozen=True, slots=True)
class MemberZnodes:
    """The znodes of one group, by path: its ``persistent`` znodes of members and owners, the ``live`` registrations
    (ephemeral), and why a znode is ``unread``. ``is_there``: the group has a znode.
    """

    is_there: bool
    persistent: Mapping[str, Znode]
    live: tuple[str, ...]
    unread: Mapping[str, str]


def fetch_member_znodes(client: KazooClient, group_id: str) -> MemberZnodes:
    """Read a group's registrations and owner znodes; names under owners that are no partition are left out.

    Raises:
        InputError: a znode can't have the name of the group.
        ConnectError: ZooKeeper stopped answering.
    """
    catch_up(client)
    root, unread = group_path(group_id), dict[str, str]()
    owners = f"{root}/owners"
    branches = [root, *(f"{root}/{each}" for each in _REGISTRATIONS), owners]
    there, *registered, topics = fetch_children(client, branches)
    below = [f"{owners}/{topic}" for topic in _names(owners, topics, unread)]
    paths = [path for branch, names in zip(branches[1:], registered) for path in _paths(branch, names, unread)]
    for branch, names in zip(below, fetch_children(client, below)):
        paths += [path for path in _paths(branch, names, unread) if partition_in(path.rpartition("/")[2]) is not None]
    znodes = fetch_znodes(client, paths)
    unread |= {path: refusal(each) for path, each in znodes.items() if isinstance(each, KazooException)}
    held = {path: each for path, each in znodes.items() if isinstance(each, Znode)}
    return MemberZnodes(
        there is not None,
        {path: each for path, each in held.items() if each.ephemeral_owner == 0},
        tuple(path for path, each in held.items() if each.ephemeral_owner and not path.startswith(f"{owners}/")),
        unread,
    )


def fetch_znodes(client: KazooClient, paths: Iterable[str]) -> dict[str, Znode | KazooException | None]:
    """Each znode as the leader has it now; None: there is none.

    Raises:
        ConnectError: ZooKeeper stopped answering.
    """
    catch_up(client)
    asked = list(paths)
    return dict(zip(asked, fetch_data(client, asked)))


def _paths(branch: str, names: Names, unread: dict[str, str]) -> list[str]:
    return [f"{branch}/{name}" for name in _names(branch, names, unread)]


def _names(branch: str, names: Names, unread: dict[str, str]) -> list[str]:
    if isinstance(names, KazooException):
        unread[branch] = refusal(names, "listed")
    return sorted(names) if isinstance(names, list) else []
