"""Events of logs → rebalances: what real clients' logs taught, one trait at a time."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.analyze.rebalances.attempts import member_rebalances, rebalances
from kit.analyze.rebalances.findings import log_findings
from kit.analyze.rebalances.story import story
from kit.tables import schema as tables

GROUP = "orders.eu-1"
SECOND = 1_000_000


def log(*rows: tuple[str, dict[str, Any]], client: str = "till-1", source: str = "java") -> pl.DataFrame:
    """One file, a line and a second per event."""
    columns: dict[str, list[Any]] = {name: [] for name in tables.LOG_EVENTS.schema.names}
    for number, (kind, said) in enumerate(rows):
        named = source != "broker" and said.get("named", True)
        given = {"file": f"{client}.log", "line": number + 1, "record": 0, "source": source, "kind": kind}
        given |= {"local_at": said.get("at", number) * SECOND, "group_id": GROUP}
        given |= {"client_id": client, "text": "[Consumer ] "} if named else {"text": ""}
        given |= {key: value for key, value in said.items() if key not in ("at", "named")}
        for name, values in columns.items():
            values.append(given.get(name))
    return pl.DataFrame(tables.LOG_EVENTS.from_columns(columns))


def state(epoch: int, before: str, after: str, **said: Any) -> tuple[str, dict[str, Any]]:
    text = f"[Consumer ] Member m with epoch {epoch} transitioned from {before} to {after}."
    return "state_change", {"generation": epoch, "text": text} | said


def reconciling(*owned: str, **said: Any) -> tuple[str, dict[str, Any]]:
    return "reconciling", {"owned_after": list(owned)} | said


NEW_A = log(
    state(0, "UNSUBSCRIBED", "JOINING", member_id="a"),
    state(1, "JOINING", "RECONCILING", member_id="a"),
    reconciling("t-0", "t-1"),
    state(1, "RECONCILING", "ACKNOWLEDGING", member_id="a"),
    state(1, "ACKNOWLEDGING", "STABLE", member_id="a"),
    ("offset_found", {"partitions": ["t-0"], "offset": 7, "named": False, "group_id": None}),
    state(1, "STABLE", "RECONCILING", member_id="a", at=20),
    reconciling("t-0", at=20),
    state(1, "RECONCILING", "ACKNOWLEDGING", member_id="a", at=21),
    state(3, "STABLE", "RECONCILING", member_id="a", at=40),
    reconciling("t-0", "t-1", at=40),
    state(3, "RECONCILING", "ACKNOWLEDGING", member_id="a", at=41),
)
NEW_B = log(
    state(2, "JOINING", "RECONCILING", member_id="b", at=22),
    reconciling("t-1", at=22),
    state(2, "RECONCILING", "ACKNOWLEDGING", member_id="b", at=23),
    ("revoked", {"partitions": ["t-1"], "at": 30}),
    state(2, "STABLE", "PREPARE_LEAVING", member_id="b", at=30),
    ("leaving", {"member_id": "b", "at": 31}),
    client="till-2",
)


def test_a_member_of_the_new_protocol_without_a_listener_is_told_by_its_states():
    facts = ["generation", "member_id", "owned", "outcome"]
    assert member_rebalances(NEW_A).select(facts).rows() == [
        (1, "a", ["t-0", "t-1"], "assigned"),
        (1, "a", ["t-0"], "assigned"),
        (3, "a", ["t-0", "t-1"], "assigned"),
    ]
    assert member_rebalances(NEW_A)["positions"].to_list() == [["t-0@7"], [], []], "a line that names nobody is its"
    assert log_findings(NEW_A).is_empty(), "an epoch that changes nothing for it is none that it missed"


def test_who_keeps_its_partitions_is_in_the_next_epoch_without_a_word():
    facts = [
        "generation",
        "members",
        "joined",
        "left",
        "moved",
        "kept",
        "partitions_without_known_owner",
        "duration_ms",
    ]
    assert rebalances(pl.concat([NEW_A, NEW_B])).select(facts).rows() == [
        (1, ["a"], None, None, None, None, [], 3000),
        (2, ["a", "b"], ["b"], [], ["t-1"], ["t-0"], [], 3000),
        (3, ["a"], [], ["b"], ["t-1"], ["t-0"], [], 1000),
    ]


def test_librdkafka_tells_the_epoch_in_heartbeats():
    def beat(epoch: int, text: str = "response received") -> tuple[str, dict[str, Any]]:
        return "heartbeat_ok", {"generation": epoch, "text": f"ConsumerGroupHeartbeat {text}"}

    events = log(
        beat(0),
        beat(4),
        ("target_received", {}),
        ("reconciling", {}),
        ("assigned", {}),
        ("group_assignment", {"partitions": ["t-0", "t-1"]}),
        ("target_received", {}),
        ("offset_missing", {"partitions": ["t-1"]}),
        beat(4, 'of member id "a", current assignment "t(x)[0], t(x)[1]"'),
        beat(5),
        ("reconciling", {}),
        ("revoked", {"text": "delegating incremental revoke of 1 partition(s)"}),
        ("group_assignment", {"partitions": ["t-0"]}),
        source="librdkafka",
    )
    facts = ["generation", "owned", "revoked", "without_offset"]
    assert member_rebalances(events).select(facts).rows() == [
        (4, ["t-0", "t-1"], None, ["t-1"]),
        (5, ["t-0"], ["t-1"], []),
    ]


def test_brokers_name_who_leaves_before_the_epoch_and_in_the_reason_of_a_rebalance():
    old = "Preparing to rebalance group (reason: Removing member m-2 on LeaveGroup)"
    new = "Preparing to rebalance group (reason: explicit `LeaveGroup` request for (m-3, m-4) members.)"
    events = log(
        ("epoch_bumped", {"generation": 1}),
        ("member_left", {"member_id": "m-1"}),
        ("epoch_bumped", {"generation": 2}),
        ("group_rebalancing", {"generation": 2, "text": old}),
        ("group_rebalancing", {"generation": 3, "text": new}),
        source="broker",
    )
    left = rebalances(events).select("generation", "left").rows()
    assert left == [(1, None), (2, ["m-1"]), (3, ["m-2"]), (4, ["m-3", "m-4"])]


def test_a_broker_converts_a_group_to_the_new_protocol_and_back():
    """A classic member joins again within an epoch, and that begins nothing; who leaves last leads to a generation."""
    events = log(
        ("group_converted", {"reason": "Converted the classic group to a consumer group"}),
        ("member_joining", {"member_id": "new"}),
        ("epoch_bumped", {"generation": 2}),
        ("member_joining", {"member_id": "old", "at": 20}),
        ("member_left", {"member_id": "new", "at": 30}),
        ("group_rebalancing", {"generation": 2, "reason": "Downgrade group g.", "at": 30}),
        ("group_stabilized", {"generation": 3, "at": 31}),
        ("member_joining", {"member_id": "old", "at": 35}),
        ("member_joining", {"member_id": "newer", "at": 40}),
        ("epoch_bumped", {"generation": 4, "at": 40}),
        source="broker",
    )
    told = rebalances(events).select("generation", "duration_ms", "left", "reasons").rows()
    assert told == [
        (2, 2000, None, ["Converted the classic group to a consumer group"]),
        (3, 1000, ["new"], ["Downgrade group g."]),
        (4, 0, [], []),
    ]
    why = [sentence.partition(" Why: ")[2] for sentence in story(events)]
    assert why[:3] == ["Converted the classic group to a consumer group.", "Downgrade group g.", ""]


def test_a_static_member_that_is_restarted_comes_back_into_its_generation():
    def joined(member: str, at: int, **said: Any) -> tuple[str, dict[str, Any]]:
        return "joined", {"generation": 2, "member_id": member, "group_instance_id": member[0], "at": at} | said

    assigned = ("assigned", {"partitions": ["t-0"], "at": 30, "group_instance_id": "b"})
    events = pl.concat(
        [
            log(("joining", {"at": 1}), joined("a-1", 2), client="a"),
            log(("joining", {"at": 1}), joined("b-1", 3), client="b"),
            log(("joining", {"at": 28}), joined("b-2", 29), assigned, client="b-again"),
        ]
    )
    (row,) = rebalances(events).rows(named=True)
    assert (row["members"], row["last_joiner"], row["join_spread_ms"]) == (["a-1", "b-2"], "b-1", 1000)


def test_a_member_says_why_and_the_group_does_not_repeat_it():
    joined = {"generation": 1, "member_id": "m-1"}
    why = ("join_reason", {"reason": "need to re-join"})
    member = log(why, ("joining", {}), ("joined", joined), ("assigned", {"partitions": ["t-0"]}))
    broker = log(
        ("group_rebalancing", {"generation": 0, "reason": "need to re-join"}),
        ("group_rebalancing", {"generation": 0, "reason": "Adding new member m-1"}),
        source="broker",
    )
    told = story(pl.concat([member, broker]))
    assert [sentence.partition(" Why: ")[2] for sentence in told[:2]] == ["need to re-join.", "Adding new member m-1."]


def test_a_0_9_client_that_starts_is_one_consumer():
    request = "Sending metadata request (correlation_id=1,client_id=till-1)"
    events = log(
        ("subscribed", {"named": False, "group_id": None}),
        ("coordinator_query", {"named": False, "group_id": None}),
        ("metadata", {"named": False, "text": request, "group_id": None, "client_id": "till-1"}),
        ("coordinator_found", {"named": False}),
        ("join_requested", {"named": False, "text": "JOIN_GROUP: {member_id=,"}),
        ("joined", {"named": False, "member_id": "a", "leader_id": "a", "generation": 1}),
        ("assigned", {"named": False, "partitions": ["t-0"]}),
    )
    (row,) = member_rebalances(events).rows(named=True)
    assert (row["consumer"], row["generation"], row["discover_ms"]) == ("till-1", 1, 2000)
    assert log_findings(events).is_empty()


def test_a_member_that_stays_through_many_generations_is_not_thrown_out():
    def join(generation: int, member: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        said = {"generation": generation, "member_id": member, "at": generation * 1000}
        return ("joining", {"at": generation * 1000}), ("joined", said), ("assigned", {"at": generation * 1000})

    stays = log(*(event for generation in range(1, 7) for event in join(generation, "a")))
    restarts = log(*(event for generation in range(1, 7) for event in join(generation, f"a-{generation}")))
    assert log_findings(stays).is_empty()
    assert log_findings(restarts)["finding"].to_list() == ["rejoining"]


def test_a_coordinator_that_is_let_go_at_the_end_was_not_lost():
    closing = log(("assigned", {}), ("closing", {}), ("coordinator_lost", {}), source="librdkafka")
    losing = log(("assigned", {}), ("coordinator_lost", {}), source="librdkafka")
    assert log_findings(closing).is_empty()
    assert log_findings(losing)["finding"].to_list() == ["unreached_coordinator"]
