"""Reads from ZooKeeper: the ``/consumers`` tree, the brokers' registrations, the controller.

A sync, then four rounds of multiRead requests; each round reads the names that the round before returned. So the read
is at least as new as the leader was when it began. A znode that was deleted between two rounds is left out. A znode
that could not be read, or has an unexpected value, is a row with its error. The read leaves no watch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError

from kit.clients.multiread import Names, Znode, Znodes, catch_up, fetch_children, fetch_data, refusal
from kit.clients.paths import CONSUMERS
from kit.clients.registration import Registration, parse_registration
from kit.clients.values import is_text, json_in, shown
from kit.errors import AuthenticationFailed
from kit.groups.read.other_trees import fetch_other_trees
from kit.tables import schema as tables
from kit.tables.groups import ZOOKEEPER, Group, Member, MigrationState, ReadError, Subscription
from kit.text.numbers import INT32_MAX, offset_in, partition_in
from kit.text.visible import shortened


@dataclass(frozen=True)
class ConsumersTree:
    """The ``/consumers`` tree. ``registrations`` are (group, consumer id, registration).

    ``strays`` are znodes under a topic's owners or offsets whose name is no partition number. They are not read; the
    group is known without them. Their ``topic`` is ``<topic>/<name>``, which no topic can be named. ``other_trees`` are
    names below ``/consumers`` that are no groups.
    """

    groups: tables.Columns
    members: tables.Columns
    registrations: tuple[tuple[str, str, Registration], ...]
    ownership: tables.Columns
    committed_offsets: tables.Columns
    migration_states: tables.Columns
    strays: tuple[ReadError, ...] = ()
    other_trees: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BrokersTree:
    """``/brokers`` and ``/controller``: endpoints by broker id, topic names, the controller's broker id.

    ``endpoints`` leaves out a broker whose registration has none; ``strays`` are names that are no broker id, and what
    ZooKeeper refused to show.
    """

    endpoints: dict[int, tuple[str, ...]]
    topics: frozenset[str]
    controller: int | None
    strays: tuple[ReadError, ...] = ()


_LONGEST_PATH = 1_000
"""Characters of a path that an error names. A topic has 249 at most; any tool can make longer znodes."""


def fetch_consumers(client: KazooClient, accepts: Callable[[str], bool] = lambda group_id: True) -> ConsumersTree:
    """Read the groups that ``accepts`` accepts.

    Raises:
        ConnectError: ZooKeeper stopped answering.
        AuthenticationFailed: this profile's credentials may not list the groups.
    """
    catch_up(client)
    (names,) = fetch_children(client, [CONSUMERS])
    if isinstance(names, NoAuthError):
        raise AuthenticationFailed(
            f"ZooKeeper does not let these credentials read {CONSUMERS}: the login needs the right READ there. Check "
            "security.zookeeper, or have READ added for this login"
        )
    listed = _fetch_groups(client, sorted(filter(accepts, _names(names))))
    registered = _fetch_members(client, listed)
    owners, offsets = _fetch_leaves(client, listed, "owners"), _fetch_leaves(client, listed, "offsets")
    others = _fetch_other_trees(client, listed, {*offsets.group_ids, *(each.group_id for each in offsets.strays)})
    return ConsumersTree(
        groups=tables.GROUPS.columns_of(
            _group(group_id, listing) for group_id, listing in listed.items() if group_id not in others
        ),
        members=tables.MEMBERS.columns_of(member for member, _ in registered),
        registrations=tuple((member.group_id, member.member_id, registration) for member, registration in registered),
        ownership=tables.OWNERSHIP.columns(_owner_columns(owners)),
        committed_offsets=tables.COMMITTED_OFFSETS.columns(_offset_columns(offsets)),
        migration_states=tables.MIGRATION_STATES.columns_of(
            _migration_state(group_id, listing.mode)
            for group_id, listing in listed.items()
            if listing.migration_ids is not None or listing.mode is not None
        ),
        strays=(*owners.strays, *offsets.strays),
        other_trees=others,
    )


def fetch_brokers(client: KazooClient) -> BrokersTree:
    """Read ``/brokers/ids``, ``/brokers/topics`` and ``/controller``."""
    catch_up(client)
    ids, topics = fetch_children(client, ["/brokers/ids", "/brokers/topics"])
    broker_ids = [name for name in _names(ids) if partition_in(name) is not None]
    controller, *brokers = fetch_data(client, ["/controller", *(f"/brokers/ids/{each}" for each in broker_ids)])
    endpoints = {int(name): _endpoints(znode) for name, znode in zip(broker_ids, brokers)}
    strays = sorted(set(_names(ids)).difference(broker_ids))
    paths = ["/brokers/ids", "/brokers/topics", "/controller", *(f"/brokers/ids/{each}" for each in broker_ids)]
    hidden = [(path, each) for path, each in zip(paths, (ids, topics, controller, *brokers)) if _is_refused(each)]
    return BrokersTree(
        endpoints={broker_id: named for broker_id, named in endpoints.items() if named is not None},
        topics=frozenset(_names(topics)),
        controller=_broker_id(_json(controller).get("brokerid")),
        strays=(
            *(_stray(f"/brokers/ids/{name}", "a broker's id", topic=f"/{name}") for name in strays),
            *(ReadError(ZOOKEEPER, None, None, path.lstrip("/"), refusal(error)) for path, error in hidden),
        ),
    )


def expand_subscriptions(
    registrations: Iterable[tuple[str, str, Registration]], topics: Iterable[str]
) -> list[Subscription]:
    """Rows of the subscriptions table, wildcards resolved against ``topics``."""
    existing = sorted(topics)
    return [
        Subscription(group_id, ZOOKEEPER, member_id, topic, n_streams)
        for group_id, member_id, registration in registrations
        for topic, n_streams in registration.topics(existing).items()
    ]


ZnodeAnswer: TypeAlias = Znode | KazooException | None
BRANCHES = ("ids", "migration/ids", "owners", "offsets")
"""The branches of a group, in the order in which they are read."""


@dataclass(frozen=True, slots=True)
class _Listing:
    ids: Names
    migration_ids: Names
    owners: Names
    offsets: Names
    mode: ZnodeAnswer


def _fetch_groups(client: KazooClient, group_ids: Sequence[str]) -> dict[str, _Listing]:
    """Reads ``ids`` before ``migration/ids``, so that a member that registers in both meanwhile is not taken for an old
    one (race R7)."""
    names = iter(fetch_children(client, [f"{CONSUMERS}/{each}/{branch}" for each in group_ids for branch in BRANCHES]))
    modes = fetch_data(client, [f"{CONSUMERS}/{each}/migration/mode" for each in group_ids])
    return {
        each: _Listing(next(names), next(names), next(names), next(names), mode) for each, mode in zip(group_ids, modes)
    }


def _fetch_other_trees(
    client: KazooClient, listed: dict[str, _Listing], with_offsets: Collection[str | None]
) -> frozenset[str]:
    unused = {
        group_id: each.offsets
        for group_id, each in listed.items()
        if each.ids is each.migration_ids is each.owners is each.mode is None and group_id not in with_offsets
    }
    topics = [(group_id, topic) for group_id, offsets in unused.items() for topic in _names(offsets)]
    return fetch_other_trees(client, [each for each, offsets in unused.items() if offsets is None], topics)


def _fetch_members(client: KazooClient, listed: dict[str, _Listing]) -> list[tuple[Member, Registration]]:
    keys = [(group_id, name) for group_id, listing in listed.items() for name in sorted(_names(listing.ids))]
    znodes = fetch_data(client, [f"{CONSUMERS}/{group_id}/ids/{name}" for group_id, name in keys])
    return [
        _member(group_id, name, znode, _is_among(name, listed[group_id].migration_ids))
        for (group_id, name), znode in zip(keys, znodes)
        if znode is not None
    ]


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Znodes named by group, topic and partition, as columns."""

    branch: str
    group_ids: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    znodes: Znodes = field(default_factory=lambda: Znodes([], [], {}))
    strays: list[ReadError] = field(default_factory=list)

    def columns(self) -> dict[str, Any]:
        return {"group_id": self.group_ids, "topic": self.topics, "partition": self.partitions}

    def texts(self) -> list[str | None]:
        return [None if data is None else data.decode("utf-8", "replace") for data in self.znodes.data]

    def errors(self, known: Sequence[Any], texts: Sequence[str | None], expected: str) -> list[str | None]:
        """Return why a value is not known: ZooKeeper refused the read, or the text is not as expected."""
        errors: list[str | None] = [None] * len(known)
        for index, value in enumerate(known):
            if value is None:
                refused = self.znodes.refusals.get(index)
                holds = f"the znode holds {shown(texts[index])}, not {expected}"
                errors[index] = (
                    f"{shortened(self._path(index), _LONGEST_PATH)} {refusal(refused)}" if refused else holds
                )
        return errors

    def _path(self, index: int) -> str:
        return f"{CONSUMERS}/{self.group_ids[index]}/{self.branch}/{self.topics[index]}/{self.partitions[index]}"


def _fetch_leaves(client: KazooClient, listed: dict[str, _Listing], branch: str) -> _Leaves:
    """``/consumers/<group>/<branch>/<topic>/<partition>`` of all groups, without znodes deleted meanwhile.

    If the branch may not be listed, the whole group is unknown.
    """
    topics = [(group_id, topic) for group_id, each in listed.items() for topic in sorted(_names(getattr(each, branch)))]
    listing = fetch_children(client, [f"{CONSUMERS}/{group_id}/{branch}/{topic}" for group_id, topic in topics])
    leaves = _Leaves(branch)
    paths: list[str] = []
    for (group_id, topic), names in zip(topics, listing):
        path = f"{CONSUMERS}/{group_id}/{branch}/{topic}"
        if isinstance(names, KazooException):
            leaves.strays.append(ReadError(ZOOKEEPER, group_id, None, path.lstrip("/"), refusal(names, "listed")))
        numbers, strays = _partitions(tuple(_names(names)))
        leaves.strays.extend(
            _stray(f"{path}/{name}", "a partition's number", group_id, f"{topic}/{name}") for name in strays
        )
        leaves.group_ids.extend([group_id] * len(numbers))
        leaves.topics.extend([topic] * len(numbers))
        leaves.partitions.extend(numbers)
        paths += [f"{path}/{number}" for number in numbers]
    return _without_vanished(replace(leaves, znodes=fetch_data(client, paths)))


@lru_cache(maxsize=1_000)
def _partitions(names: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """The partitions in order, and the names that are none. Most topics have the same ones."""
    known = {name: partition_in(name) for name in names}
    numbers = sorted(number for number in known.values() if number is not None)
    return numbers, sorted(name for name, number in known.items() if number is None)


def _without_vanished(leaves: _Leaves) -> _Leaves:
    data, refusals = leaves.znodes.data, leaves.znodes.refusals
    there = [index for index, each in enumerate(data) if each is not None or index in refusals]
    if len(there) == len(data):
        return leaves
    moved = {new: refusals[old] for new, old in enumerate(there) if old in refusals}
    return _Leaves(
        leaves.branch,
        [leaves.group_ids[index] for index in there],
        [leaves.topics[index] for index in there],
        [leaves.partitions[index] for index in there],
        Znodes([data[index] for index in there], [leaves.znodes.stats[index] for index in there], moved),
        leaves.strays,
    )


def _owner_columns(leaves: _Leaves) -> dict[str, Any]:
    threads = leaves.texts()
    owners = [thread.rpartition("-")[0] or None if thread else None for thread in threads]
    return leaves.columns() | {
        "source": [ZOOKEEPER] * len(threads),
        "member_id": owners,
        "thread_id": threads,
        "session_id": leaves.znodes.stat("ephemeral_owner"),
        "czxid": leaves.znodes.stat("czxid"),
        "error": leaves.errors(owners, threads, "<consumer id>-<thread>"),
    }


def _offset_columns(leaves: _Leaves) -> dict[str, Any]:
    texts = leaves.texts()
    offsets = [offset_in(text) if text else None for text in texts]
    return leaves.columns() | {
        "store": [ZOOKEEPER] * len(texts),
        "committed_offset": offsets,
        "committed_at": [ms if ms is None else ms * 1000 for ms in leaves.znodes.stat("modified_ms")],
        "version": leaves.znodes.stat("version"),
        "mzxid": leaves.znodes.stat("mzxid"),
        "error": leaves.errors(offsets, texts, "an offset"),
    }


def _group(group_id: str, listing: _Listing) -> Group:
    names = (listing.ids, listing.migration_ids, listing.owners, listing.offsets)
    refusals = [
        f"{shortened(f'{CONSUMERS}/{group_id}/{branch}', _LONGEST_PATH)} {refusal(each, 'listed')}"
        for branch, each in zip(BRANCHES, names)
        if isinstance(each, KazooException)
    ]
    return Group(group_id, ZOOKEEPER, None, None, None, None, None, refusals[0] if refusals else None)


def _member(
    group_id: str, name: str, answer: Znode | KazooException, in_migration_ids: bool | None
) -> tuple[Member, Registration]:
    znode = answer if isinstance(answer, Znode) else None
    if isinstance(answer, Znode):
        registration = parse_registration(answer.data)
    else:
        registration = Registration(None, {}, f"{CONSUMERS}/{group_id}/ids/{name} {refusal(answer)}")
    return Member(
        group_id=group_id,
        source=ZOOKEEPER,
        member_id=name,
        client_id=None,
        client_host=None,
        group_instance_id=None,
        pattern=registration.pattern,
        in_migration_ids=in_migration_ids,
        registered_at=datetime.fromtimestamp(znode.created_ms / 1000, UTC) if znode else None,
        session_id=znode.ephemeral_owner if znode else None,
        error=registration.problem,
    ), registration


def _migration_state(group_id: str, mode: ZnodeAnswer) -> MigrationState:
    if isinstance(mode, Znode):
        return MigrationState(group_id, mode.data.decode(errors="replace"), mode.version, mode.mzxid)
    error = f"{CONSUMERS}/{group_id}/migration/mode {refusal(mode)}" if mode else None
    return MigrationState(group_id, None, None, None, error)


def _is_among(name: str, answer: Names) -> bool | None:
    """Unknown if ZooKeeper refused to list them: a migration-enabled member must not resemble an old one."""
    return None if isinstance(answer, KazooException) else name in _names(answer)


def _names(answer: Names) -> list[str]:
    return answer if isinstance(answer, list) else []


def _is_refused(answer: object) -> TypeGuard[KazooException]:
    return isinstance(answer, KazooException)


def _stray(path: str, expected: str, group_id: str | None = None, topic: str | None = None) -> ReadError:
    return ReadError(
        ZOOKEEPER, group_id, topic, path.lstrip("/"), f"the znode's name is not {expected}: it was not read"
    )


def _endpoints(znode: ZnodeAnswer) -> tuple[str, ...] | None:
    """None: the registration has none."""
    endpoints = _json(znode).get("endpoints", [])
    return tuple(endpoints) if isinstance(endpoints, list) and all(map(is_text, endpoints)) else None


def _broker_id(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= INT32_MAX else None


def _json(znode: ZnodeAnswer) -> dict[str, Any]:
    payload = json_in(znode.data) if isinstance(znode, Znode) else None
    return payload if isinstance(payload, dict) else {}
