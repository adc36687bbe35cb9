"""Each node on its way from ZooKeeper to KRaft, and the phase in which it runs as it does."""

from __future__ import annotations

from collections.abc import Iterable

from kit.kraft.analyze.phase import (
    CONTROLLERS,
    DUAL_WRITE,
    FINALISED,
    KRAFT,
    MIGRATION,
    NO_ZOOKEEPER,
    PHASES,
    POST_MIGRATION,
    UNKNOWN,
    ZOOKEEPER,
    Facts,
    phase,
    registered,
)
from kit.tables.kraft import KraftNode, NodeFact
from kit.tables.metadata import MetadataNode


def node_places(facts: Facts) -> list[KraftNode]:
    """One row per node that was asked, is registered in the metadata log, or is in ``/brokers/ids``; brokers first.

    A broker in ZooKeeper mode is before the controllers' phase, or in it when that has begun; one in migration mode
    in dual write; one in KRaft mode in ``kraft`` until the end. A controller with the flag is in the cluster's
    phase; without it, it is not ready yet, or would finalise (KIP-866).
    """
    known = [(each, _registration(facts, each)) for each in facts.nodes]
    rows = [_asked(facts, node, registration) for node, registration in known]
    seen = {(row.role, row.node_id) for row in rows}
    others = {(each.role, each.node_id): each for each in facts.registrations}
    ids = facts.control.brokers if facts.control else ()
    for role, node_id in sorted(({("broker", each) for each in ids} | set(others)) - seen):
        rows.append(_unasked(facts, role, node_id, others.get((role, node_id))))
    return sorted(rows, key=lambda each: (each.role, each.node_id is None, each.node_id, each.address or ""))


def _registration(facts: Facts, node: NodeFact) -> MetadataNode | None:
    """By id; a controller that does not lead reports none, but its registration has its address."""
    if node.node_id is not None:
        return _first(each for each in facts.registrations if (each.role, each.node_id) == (node.role, node.node_id))
    listening = (each for each in facts.registrations if each.role == node.role)
    return _first(each for each in listening if any(at.endswith(f"://{node.address}") for at in each.listeners))


def _first(nodes: Iterable[MetadataNode]) -> MetadataNode | None:
    return next(iter(nodes), None)


def _asked(facts: Facts, node: NodeFact, registration: MetadataNode | None) -> KraftNode:
    node_id = registration.node_id if node.node_id is None and registration else node.node_id
    is_broker = node.role == "broker"
    return KraftNode(
        role=node.role,
        node_id=node_id,
        address=node.address,
        stands_at=UNKNOWN if node.mode is None else _broker(facts, node) if is_broker else _controller(facts, node),
        mode=node.mode,
        has_flag=node.has_flag,
        in_zookeeper=_in_zookeeper(facts, node_id) if is_broker else None,
        registered_as=registered(registration) if registration else None,
        is_leader=node.is_leader,
        error=node.error,
    )


def _unasked(facts: Facts, role: str, node_id: int, registration: MetadataNode | None) -> KraftNode:
    return KraftNode(
        role=role,
        node_id=node_id,
        address=None,
        stands_at=UNKNOWN,
        mode=None,
        has_flag=None,
        in_zookeeper=_in_zookeeper(facts, node_id) if role == "broker" else None,
        registered_as=registered(registration) if registration else None,
        is_leader=None,
        error="no broker names its address" if role == "broker" else "the profile doesn't name it",
    )


def _in_zookeeper(facts: Facts, node_id: int | None) -> bool | None:
    is_known = facts.control is not None and facts.control.refused("/brokers/ids") is None
    return node_id in facts.control.brokers if facts.control and is_known and node_id is not None else None


def _broker(facts: Facts, node: NodeFact) -> str:
    if node.mode == "migration":
        return DUAL_WRITE
    if node.mode == "kraft":
        if phase(facts) == NO_ZOOKEEPER:
            return NO_ZOOKEEPER
        return FINALISED if facts.zk_state == POST_MIGRATION else KRAFT
    return ZOOKEEPER if phase(facts) == ZOOKEEPER else CONTROLLERS


def _controller(facts: Facts, node: NodeFact) -> str:
    here = phase(facts)
    if here == NO_ZOOKEEPER:
        return here
    if not node.has_flag:
        return FINALISED if facts.zk_state in (MIGRATION, POST_MIGRATION) else ZOOKEEPER
    return here if here in PHASES[1:-1] else CONTROLLERS
