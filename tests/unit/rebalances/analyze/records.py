"""Make the records that coordinators store of a group's rebalances, and the lines that its members log of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from kit.tables import schema as tables

AT = datetime(2026, 11, 21, 6, 30, tzinfo=UTC)


def stored_generations(*records: tuple[str, int | None, dict[str, list[str]]]) -> pl.DataFrame:
    """The generations of classic groups: group, generation (None: a tombstone), member → what it is assigned."""
    rows = [
        {
            "partition": 0,
            "offset": offset,
            "written_at": AT + timedelta(seconds=offset),
            "group_id": group,
            "generation": generation,
            "protocol": "range" if members else None,
            "leader_id": next(iter(members), None),
            "is_tombstone": generation is None,
            "member_id": member,
            "assigned": assigned,
        }
        for offset, (group, generation, members) in enumerate(records)
        for member, assigned in (members or {None: None}).items()
    ]
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    return pl.DataFrame(tables.GROUP_GENERATIONS.from_columns(columns))


def logged(*lines: tuple[str, int, str, dict]) -> pl.DataFrame:
    """The events of logs, in order: client, seconds, kind, and what else the line says."""
    rows = [
        {
            "file": f"{client}.log",
            "line": number,
            "record": 0,
            "observed_at": AT + timedelta(seconds=second),
            "local_at": int((AT + timedelta(seconds=second)).timestamp() * 1_000_000),
            "source": "java",
            "kind": kind,
            "client_id": client,
            "group_id": "g",
            "text": kind,
            **said,
        }
        for number, (client, second, kind, said) in enumerate(lines, 1)
    ]
    columns = {name: [row.get(name) for row in rows] for name in tables.LOG_EVENTS.schema.names}
    return pl.DataFrame(tables.LOG_EVENTS.from_columns(columns))


def rebalance(client: str, second: int, generation: int, partitions: list[str], leader: str = "a-1") -> list[tuple]:
    """The events of a client that takes part in a rebalance."""
    member = f"{client}-1"
    return [
        (client, second, "joining", {}),
        (client, second + 2, "joined", {"generation": generation, "member_id": member, "leader_id": leader}),
        (client, second + 3, "synced", {"generation": generation, "assignor": "range"}),
        (client, second + 3, "assigned", {"partitions": partitions}),
    ]


def stored_epochs(*records: dict, group: str = "g") -> pl.DataFrame:
    """The records of a KIP-848 group, in order; each has a place and what the test names."""
    rows = [
        {
            "partition": 0,
            "offset": offset,
            "written_at": AT + timedelta(seconds=offset),
            "group_id": group,
            "is_tombstone": False,
            **record,
        }
        for offset, record in enumerate(records)
    ]
    columns = {name: [row.get(name) for row in rows] for name in tables.GROUP_EPOCHS.schema.names}
    return pl.DataFrame(tables.GROUP_EPOCHS.from_columns(columns))


def member(name: str, assignor: str | None = None) -> dict:
    return {"kind": "member", "member_id": name, "client_id": f"client-{name}", "assignor": assignor}


def target(name: str, *partitions: str) -> dict:
    return {"kind": "target_assignment", "member_id": name, "assigned": partitions}


def current(name: str, epoch: int, previous: int, *partitions: str) -> dict:
    said = {"epoch": epoch, "previous_epoch": previous, "state": "STABLE", "assigned": partitions, "revoking": ()}
    return {"kind": "current_assignment", "member_id": name, **said}


def epoch(number: int) -> list[dict]:
    return [{"kind": "group_epoch", "epoch": number}]


def computed(number: int) -> dict:
    return {"kind": "target_epoch", "epoch": number}


def gone(name: str) -> list[dict]:
    kinds = ("current_assignment", "target_assignment", "member")
    return [{"kind": kind, "member_id": name, "is_tombstone": True} for kind in kinds]


ALONE = [member("a"), *epoch(1), target("a", "t-0", "t-1"), computed(1), current("a", 1, 0, "t-0", "t-1")]
JOINED = [
    *(member("b"), *epoch(2), target("a", "t-0"), target("b", "t-1"), computed(2)),
    *(current("b", 2, 0), current("a", 1, 1, "t-0"), current("a", 2, 1, "t-0"), current("b", 2, 2, "t-1")),
]
LEFT = [*gone("a"), *epoch(3), target("b", "t-0", "t-1"), computed(3), current("b", 3, 2, "t-0", "t-1")]
