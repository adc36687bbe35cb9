"""Everything ZooKeeper says: the ``/consumers`` tree, the brokers' registrations, the controller.

Four rounds of multiRead requests, each of them listing or reading what the one before named. A znode that vanished
between two rounds is not there; a znode that could not be read is a row with its error. No watch is left behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError

from kit import tables
from kit.errors import AuthenticationFailed
from kit.model import ZOOKEEPER, Group, Member, MigrationState, Subscription
from kit.read.multiread import Answer, Children, Data, Znode, fetch
from kit.read.registration import Registration, parse_registration

CONSUMERS = "/consumers"


@dataclass(frozen=True)
class ConsumersTree:
    """The ``/consumers`` tree. ``registrations`` are (group, consumer id, what it registered)."""

    groups: pa.Table
    members: pa.Table
    registrations: tuple[tuple[str, str, Registration], ...]
    ownership: pa.Table
    committed_offsets: pa.Table
    migration_states: pa.Table


@dataclass(frozen=True)
class BrokersTree:
    """``/brokers`` and ``/controller``: endpoints by broker id, topic names, the controller's broker id."""

    endpoints: dict[int, tuple[str, ...]]
    topics: frozenset[str]
    controller: int | None


def fetch_consumers(client: KazooClient, groups: Callable[[str], bool] = lambda group_id: True) -> ConsumersTree:
    """Read the groups that ``groups`` accepts.

    Raises:
        ConnectError: ZooKeeper stopped answering.
        AuthenticationFailed: it does not let this profile's credentials list the groups.
    """
    (names,) = fetch(client, [Children(CONSUMERS)])
    if isinstance(names, NoAuthError):
        raise AuthenticationFailed(f"ZooKeeper does not let these credentials read {CONSUMERS}: wrong digest, or none")
    group_ids = sorted(filter(groups, names)) if isinstance(names, list) else []
    listed = _fetch_groups(client, group_ids)
    registered = _fetch_members(client, listed)
    return ConsumersTree(
        groups=tables.GROUPS.from_rows(_group(group_id, listed[group_id]) for group_id in group_ids),
        members=tables.MEMBERS.from_rows(member for member, _ in registered),
        registrations=tuple((member.group_id, member.member_id, registration) for member, registration in registered),
        ownership=_fetch_leaves(client, listed, "owners", _ownership_columns, tables.OWNERSHIP),
        committed_offsets=_fetch_leaves(client, listed, "offsets", _offset_columns, tables.COMMITTED_OFFSETS),
        migration_states=tables.MIGRATION_STATES.from_rows(
            _migration_state(group_id, listed[group_id].mode)
            for group_id in group_ids
            if listed[group_id].migration_ids is not None or listed[group_id].mode is not None
        ),
    )


def fetch_brokers(client: KazooClient) -> BrokersTree:
    """Read ``/brokers/ids``, ``/brokers/topics`` and ``/controller``."""
    ids, topics, controller = fetch(
        client, [Children("/brokers/ids"), Children("/brokers/topics"), Data("/controller")]
    )
    broker_ids = [int(name) for name in ids] if isinstance(ids, list) else []
    registrations = fetch(client, [Data(f"/brokers/ids/{broker_id}") for broker_id in broker_ids])
    payloads = {broker_id: _json(answer) for broker_id, answer in zip(broker_ids, registrations)}
    return BrokersTree(
        endpoints={broker_id: tuple(payload.get("endpoints", ())) for broker_id, payload in payloads.items()},
        topics=frozenset(topics if isinstance(topics, list) else ()),
        controller=_json(controller).get("brokerid"),
    )


def expand_subscriptions(
    registrations: Iterable[tuple[str, str, Registration]], topics: Iterable[str]
) -> list[Subscription]:
    """Rows of the subscriptions table, wildcards resolved against ``topics``."""
    existing = sorted(topics)
    return [
        Subscription(group_id, ZOOKEEPER, member_id, topic, n_streams)
        for group_id, member_id, registration in registrations
        if registration.pattern and not (registration.problem and "can't be resolved" in registration.problem)
        for topic, n_streams in registration.topics(existing).items()
    ]


@dataclass(frozen=True, slots=True)
class _Listing:
    ids: Answer
    owners: Answer
    offsets: Answer
    migration_ids: Answer
    mode: Answer


def _fetch_groups(client: KazooClient, group_ids: Sequence[str]) -> dict[str, _Listing]:
    """``ids`` is asked for before ``migration/ids``: a member registers in the second first (KIP-125, race R7)."""
    items: list[Data | Children] = []
    for group_id in group_ids:
        at = f"{CONSUMERS}/{group_id}"
        items += [Children(f"{at}/{name}") for name in ("ids", "owners", "offsets", "migration/ids")]
        items.append(Data(f"{at}/migration/mode"))
    answers = fetch(client, items)
    return {group_id: _Listing(*(next(answers) for _ in range(5))) for group_id in group_ids}


def _fetch_members(client: KazooClient, listed: dict[str, _Listing]) -> list[tuple[Member, Registration]]:
    keys = [(group_id, name) for group_id, listing in listed.items() for name in sorted(_names(listing.ids))]
    answers = fetch(client, [Data(f"{CONSUMERS}/{group_id}/ids/{name}") for group_id, name in keys])
    return [
        _member(group_id, name, answer, name in _names(listed[group_id].migration_ids))
        for (group_id, name), answer in zip(keys, answers)
        if answer is not None
    ]


def _fetch_leaves(
    client: KazooClient,
    listed: dict[str, _Listing],
    branch: str,
    columns: Callable[[list[tuple[str, str, str]], list[Answer]], dict[str, Any]],
    table: tables.Table,
) -> pa.Table:
    """``/consumers/<group>/<branch>/<topic>/<partition>`` of all groups as one table."""
    topics = [(group_id, topic) for group_id, each in listed.items() for topic in sorted(_names(getattr(each, branch)))]
    partitions = fetch(client, [Children(f"{CONSUMERS}/{group_id}/{branch}/{topic}") for group_id, topic in topics])
    keys = [
        (group_id, topic, name)
        for (group_id, topic), names in zip(topics, partitions)
        for name in sorted(_names(names), key=_partition_order)
    ]
    answers = fetch(client, [Data(f"{CONSUMERS}/{group_id}/{branch}/{topic}/{name}") for group_id, topic, name in keys])
    there = [(key, answer) for key, answer in zip(keys, answers) if answer is not None and key[2].isdecimal()]
    return table.from_columns(columns([key for key, _ in there], [answer for _, answer in there]))


def _ownership_columns(keys: list[tuple[str, str, str]], answers: list[Answer]) -> dict[str, Any]:
    threads = [_text(answer) for answer in answers]
    owners = [thread.rpartition("-")[0] or None if thread else None for thread in threads]
    return _key_columns(keys) | {
        "source": [ZOOKEEPER] * len(keys),
        "member_id": owners,
        "thread_id": threads,
        "session_id": [_field(answer, "ephemeral_owner") for answer in answers],
        "czxid": [_field(answer, "czxid") for answer in answers],
        "error": [
            _refusal(answer) or (None if owner else f"the owner znode holds {thread!r}, not <consumer id>-<thread>")
            for answer, thread, owner in zip(answers, threads, owners)
        ],
    }


def _offset_columns(keys: list[tuple[str, str, str]], answers: list[Answer]) -> dict[str, Any]:
    offsets = [_offset(answer) for answer in answers]
    return _key_columns(keys) | {
        "store": [ZOOKEEPER] * len(keys),
        "committed_offset": offsets,
        "committed_at": pa.array([_field(answer, "modified_ms") for answer in answers], pa.timestamp("ms", "UTC")),
        "version": [_field(answer, "version") for answer in answers],
        "mzxid": [_field(answer, "mzxid") for answer in answers],
        "error": [
            _refusal(answer)
            or (None if offset is not None else f"the offset znode holds {_text(answer)!r}, not a number")
            for answer, offset in zip(answers, offsets)
        ],
    }


def _key_columns(keys: list[tuple[str, str, str]]) -> dict[str, Any]:
    group_ids, topics, partitions = zip(*keys) if keys else ((), (), ())
    return {"group_id": list(group_ids), "topic": list(topics), "partition": [int(name) for name in partitions]}


def _group(group_id: str, listing: _Listing) -> Group:
    refusals = {answer for answer in map(_refusal, (listing.ids, listing.owners, listing.offsets)) if answer}
    return Group(group_id, ZOOKEEPER, None, None, None, None, None, "; ".join(sorted(refusals)) or None)


def _member(group_id: str, name: str, answer: Answer, in_migration_ids: bool) -> tuple[Member, Registration]:
    problem = _refusal(answer)
    registration = Registration(None, {}, problem) if problem else parse_registration(answer.data)  # type: ignore[union-attr]
    return Member(
        group_id=group_id,
        source=ZOOKEEPER,
        member_id=name,
        client_id=None,
        client_host=None,
        group_instance_id=None,
        pattern=registration.pattern,
        in_migration_ids=in_migration_ids,
        registered_at=_at(_field(answer, "created_ms")),
        session_id=_field(answer, "ephemeral_owner"),
        error=registration.problem,
    ), registration


def _migration_state(group_id: str, mode: Answer) -> MigrationState:
    return MigrationState(group_id, _text(mode), _field(mode, "version"), _field(mode, "mzxid"), _refusal(mode))


def _names(answer: Answer) -> list[str]:
    return answer if isinstance(answer, list) else []


def _text(answer: Answer) -> str | None:
    if isinstance(answer, Znode):
        return (answer.data or b"").decode(errors="replace")
    return None


def _offset(answer: Answer) -> int | None:
    try:
        return int(answer.data) if isinstance(answer, Znode) and answer.data else None
    except ValueError:
        return None


def _field(answer: Answer, name: str) -> Any:
    return getattr(answer, name) if isinstance(answer, Znode) else None


def _at(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def _refusal(answer: Answer) -> str | None:
    return f"ZooKeeper refused the read: {type(answer).__name__}" if isinstance(answer, KazooException) else None


def _json(answer: Answer) -> dict[str, Any]:
    try:
        payload = json.loads(_text(answer) or "{}")
    except ValueError:
        return {}
    return payload if isinstance(payload, dict) else {}


def _partition_order(name: str) -> tuple[int, str]:
    return (int(name), name) if name.isdecimal() else (-1, name)
