"""Events of logs → rebalances: what real clients' logs taught, one trait at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.spans import member_spans
from kit.rebalances.analyze.story import story
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


def test_a_member_of_the_new_protocol_without_a_listener_is_reported_by_its_states():
    facts = ["generation", "member_id", "owned", "outcome"]
    assert member_rebalances(NEW_A).select(facts).rows() == [
        (1, "a", ["t-0", "t-1"], "assigned"),
        (1, "a", ["t-0"], "assigned"),
        (3, "a", ["t-0", "t-1"], "assigned"),
    ]
    assert member_rebalances(NEW_A)["positions"].to_list() == [["t-0@7"], [], []], "a line that names nobody is its"
    assert log_findings(NEW_A).is_empty(), "an epoch that changes nothing for it is none that it missed"


def test_a_member_that_keeps_its_partitions_is_silently_in_the_next_epoch():
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


def test_a_member_of_the_new_protocol_leaves_by_its_states_alone():
    """Java 4.4 prints no other line of leaving at INFO."""
    leaving = [("STABLE", "PREPARE_LEAVING"), ("PREPARE_LEAVING", "LEAVING"), ("LEAVING", "UNSUBSCRIBED")]
    left = log(
        state(2, "JOINING", "RECONCILING", member_id="b", at=22),
        reconciling("t-1", at=22),
        state(2, "RECONCILING", "ACKNOWLEDGING", member_id="b", at=23),
        *(state(2, *states, member_id="b", at=31 + number, generation=None) for number, states in enumerate(leaving)),
        client="till-2",
    )
    events = pl.concat([NEW_A, left])
    assert rebalances(events).select("generation", "members", "left").rows() == [
        (1, ["a"], None), (2, ["a", "b"], []), (3, ["a"], ["b"]),
    ]  # fmt: skip
    (row,) = member_rebalances(left).rows(named=True)
    assert row["left_at"] == datetime.fromtimestamp(32, UTC)
    holds = member_spans(member_rebalances(left), rebalances(left), datetime.fromtimestamp(90, UTC))
    assert holds.filter(phase="holding")["ended_at"].to_list() == [row["left_at"]]
    assert "PREPARE_LEAVING, LEAVING, UNSUBSCRIBED" in story(left)[-1]


def test_librdkafka_reports_the_epoch_in_heartbeats():
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
        (2, None, None, ["Converted the classic group to a consumer group"]),
        (3, 1000, ["new"], ["Downgrade group g."]),
        (4, None, [], []),
    ], "no line says when the members had their assignment of an epoch"
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


def test_a_member_reports_why_and_the_group_does_not_repeat_it():
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


def broker(text: str, kind: str, generation: int, **said: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"text": text, "generation": generation, "client_id": None} | said


def rebalancing(generation: int, reason: str, **said: Any) -> tuple[str, dict[str, Any]]:
    return broker(f"Preparing to rebalance (reason: {reason})", "group_rebalancing", generation, reason=reason, **said)


def stable(generation: int, count: str = "") -> tuple[str, dict[str, Any]]:
    return broker(f"Stabilized group{count}", "group_stabilized", generation)


def test_a_broker_s_members_are_believed_as_far_as_they_go():
    told = rebalances(
        log(
            rebalancing(0, "Adding new member a", member_id="a"),
            stable(1, " with 1 members"),
            rebalancing(1, "Adding new member b", member_id="b"),
            stable(2, " with 2 members"),
            rebalancing(2, "leader a re-joining group during Stable", leader_id="a"),
            stable(3, " with 2 members"),
            rebalancing(3, "removing member b on heartbeat expiration"),
            stable(4, " with 1 members"),
            source="broker",
        )
    )
    assert told.select("generation", "members", "n_members", "leader_id", "joined", "left").rows() == [
        (1, ["a"], 1, None, None, None),
        (2, ["a", "b"], 2, "a", ["b"], []),
        (3, ["a", "b"], 2, "a", [], []),
        (4, ["a"], 1, None, [], ["b"]),
    ]


def test_a_member_that_left_is_known_where_the_log_begins():
    left = ("member_left", {"member_id": "a"})
    (row,) = rebalances(log(left, rebalancing(4, "because"), stable(5), source="broker")).rows(named=True)
    assert (row["generation"], row["left"], row["joined"]) == (5, ["a"], None)


def test_members_that_no_one_names_are_unknown_and_not_none():
    events = log(rebalancing(7, "because"), stable(8, " with 3 members"), stable(9), source="broker")
    assert rebalances(events).select("members", "n_members", "joined").rows() == [(None, 3, None), (None, None, None)]
    first, second = story(events)[:2]
    assert "3 members, not named" in first
    assert "members not named" in second


def test_a_member_that_was_there_before_the_log_is_not_reported_to_join():
    events = log(
        rebalancing(4, "Adding new member b", member_id="b"),
        stable(5, " with 2 members"),
        rebalancing(5, "leader a re-joining group during Stable", leader_id="a"),
        stable(6, " with 2 members"),
        source="broker",
    )
    told = rebalances(events).select("members", "joined").rows()
    assert told == [(["a", "b"], None), (["a", "b"], [])]


def test_a_single_member_that_rejoins_on_each_poll_is_reported_as_such():
    again = [
        event
        for number in range(5)
        for event in (
            rebalancing(number, "leader a re-joining group during Stable", leader_id="a"),
            stable(number + 1, " with 1 members"),
        )
    ]
    (finding,) = log_findings(log(*again, source="broker")).filter(finding="rejoining_alone").rows(named=True)
    assert finding["consumer"] == "a"
    assert "a is the only member and rejoined 4 times, once in 2.25 s" in finding["sentence"]
    several = log(*again[:4], stable(3, " with 2 members"), *again[6:], source="broker")
    assert log_findings(several).filter(finding="rejoining_alone").is_empty()


SUBSCRIPTIONS = "{a-1=Subscription(topics=[t]), b-2=Subscription(topics=[t])}"
ASSIGNMENT = "{a-1=Assignment(partitions=[t-0, t-1]), b-2=Assignment(partitions=[])}"


@pytest.mark.parametrize(
    "said",
    [
        [("joined", "members=[{member_id=a-1,member_metadata=x}, {member_id=b-2,member_metadata=y}]")],
        [("joined", "JoinGroupResponseMember(memberId='a-1', x), JoinGroupResponseMember(memberId='b-2', y)")],
        [("leader_assigning", "{a-1=org.x.PartitionAssignor$Subscription@1, b-2=org.x.P$Subscription@2}")],
        [("leader_assigning", SUBSCRIPTIONS)],
        [("leader_assigning", SUBSCRIPTIONS), ("assignment_computed", ASSIGNMENT)],
    ],
    ids=["0.9", "2.2", "0.9 subscriptions", "0.10", "0.10 assignment"],
)
def test_an_old_leader_names_all_members(said):
    """Its lines have no generation: another line of the same rebalance has it, later."""
    events = log(
        ("joining", {}),
        *((kind, {"text": f"[Consumer ] {text}", "member_id": "a-1"}) for kind, text in said),
        ("joined", {"generation": 4}),
        ("assigned", {"partitions": ["t-0", "t-1"]}),
    )
    (row,) = rebalances(events).rows(named=True)
    assert (row["generation"], row["members"], row["n_members"]) == (4, ["a-1", "b-2"], 2)
    assert row["members_without_log"] == ["b-2"]


def test_the_settings_of_a_clients_join_are_reported_once():
    old = "{group_id=g,session_timeout=10000,member_id=,group_protocols=[{protocol_name=range,protocol_metadata=x}]}"
    new = "sessionTimeoutMs=45000, x, JoinGroupRequestProtocol(name='range', m), JoinGroupRequestProtocol(name='sticky'"
    cluster = (
        "Updated cluster metadata version 2 to Cluster(nodes = [Node(2, k-2, 9092), Node(1, k-1, 9092)], partitions"
    )
    way = [("joined", {"generation": 1}), ("assigned", {"partitions": ["t-0"]})]
    events = log(
        ("metadata", {"text": cluster}),
        ("join_requested", {"text": old}),
        *way,
        ("join_requested", {"text": old}),
        *way,
        ("join_requested", {"text": new}),
        *way,
    )
    rows = member_rebalances(events)
    assert rows.select("session_timeout_ms", "protocols", "brokers").rows() == [
        (10_000, ["range"], ["1 k-1:9092", "2 k-2:9092"]),
        (10_000, ["range"], None),
        (45_000, ["range", "sticky"], None),
    ]
    first, second, third = story(events)[:3]
    assert "knows the brokers 1 k-1:9092, 2 k-2:9092" in first
    assert "asked to join with a session time-out of 10 s and the assignors range" in first
    assert "asked to join" not in second
    assert "a session time-out of 45 s and the assignors range, sticky" in third


NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_times_with_and_without_a_zone_in_one_file_are_not_compared():
    """A line in local time, its neighbour in UTC: their difference is the zone's, and no duration."""
    events = log(
        ("joining", {"at": 7200}),
        ("joined", {"generation": 5, "member_id": "a", "observed_at": NOON}),
        ("assigned", {"partitions": ["t-0"], "observed_at": NOON + timedelta(seconds=1)}),
    )
    (row,) = member_rebalances(events).to_dicts()
    assert (row["started_at"], row["join_ms"], row["assign_ms"]) == (NOON, None, 1000)
    (generation,) = rebalances(events).to_dicts()
    assert (generation["duration_ms"], generation["is_utc"]) == (1000, True)


def test_the_duration_of_a_generation_is_not_known_by_two_clocks():
    at = int(NOON.timestamp())
    joined = ("joined", {"generation": 5, "member_id": "a", "observed_at": NOON, "at": at})
    printed = ("joined", {"generation": 5, "member_id": "b", "at": at + 7200})
    done = ("assigned", {"partitions": ["t-0"], "at": at + 7201})
    events = pl.concat([log(("joining", {"observed_at": NOON}), joined), log(printed, done, client="till-2")])
    (generation,) = rebalances(events).to_dicts()
    assert (generation["duration_ms"], generation["last_joiner"], generation["join_spread_ms"]) == (None, None, None)
    assert generation["members"] == ["a", "b"]
