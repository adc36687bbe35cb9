"""A group of Kafka as its coordinator describes it, by the protocols of its members."""

from __future__ import annotations

from datetime import UTC, datetime

from kit.moves.group.group_state import CLASSIC, CONSUMER, MemberState
from kit.moves.protocol.state import ProtocolState
from kit.protocol.read import GroupProtocol, ProtocolMember

PARTITIONS = 6


def group(*protocols: str | None, state: str = "Stable", epochs: tuple[int, ...] = ()) -> ProtocolState:
    """One member per protocol; each has its share of the partitions. ``epochs``: group, assignment, then members."""
    shares = [
        tuple(("t", each) for each in range(number, PARTITIONS, len(protocols))) for number in range(len(protocols))
    ]
    of = dict(enumerate(epochs[2:]))
    described = tuple(
        ProtocolMember(f"m{n}", f"c{n}", "127.0.0.1", None, each, of.get(n), ("t",), None, shares[n], shares[n])
        for n, each in enumerate(protocols)
    )
    kind = CONSUMER if CONSUMER in protocols else CLASSIC
    at = dict(zip(("epoch", "assignment_epoch"), epochs))
    protocol = GroupProtocol("orders", kind, "consumer", state, "range", 1, members=described, **at)
    return ProtocolState(
        group_id="orders",
        observed_at=datetime(2026, 11, 28, tzinfo=UTC),
        stage=str(protocol.stage),
        effective_mode="kafka",
        mode=None,
        mode_version=None,
        members=tuple(
            MemberState(f"m{n}", f"c{n}", each or "unknown", "127.0.0.1", frozenset(shares[n]), None)
            for n, each in enumerate(protocols)
        ),
        embedded={},
        owners={},
        kafka_state=state,
        coordinator=1,
        offsets={},
        threads={},
        subscribed={"t": PARTITIONS},
        blockers={},
        protocol=protocol,
    )
