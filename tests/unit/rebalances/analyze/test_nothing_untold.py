"""Each event that is counted is described: whatever its kind, also where it stands alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.findings import log_findings
from kit.rebalances.analyze.remarks import log_remarks
from kit.rebalances.analyze.story import story
from kit.rebalances.logs.wordings import BROKER, BY_SOURCE, CONTEXT, JAVA, LIBRDKAFKA
from tests.generators.pasted_lines import every_said, pasted
from tests.unit.rebalances.analyze.test_attempts import GROUP, log
from tests.unit.rebalances.logs.pasted import read_each

AT = "2021-02-03 04:05:06"
KINDS = {(source, each.kind) for source, table in BY_SOURCE.items() for each in table} - {
    (source, CONTEXT) for source in BY_SOURCE
}
RDKAFKA = "%7|1612325106.007|FACILITY|c-1#consumer-1| "
LINES = {
    (said.source, said.template.kind): pasted(
        said, RDKAFKA if said.source == LIBRDKAFKA else f"{AT},007 INFO a.B: ", "", "{}"
    ).line
    for said in reversed(every_said())
    if said.own or said.source not in (JAVA, BROKER)
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, pl.DataFrame]:
    """The events of each line."""
    logs = read_each(tmp_path_factory.mktemp("logs"), LINES.values())
    return {line: each.events for line, each in logs.items()}


@pytest.mark.parametrize(("source", "kind"), sorted(KINDS))
def test_an_event_alone_is_described(alone, source, kind):
    events = alone[LINES[source, kind]]
    (event,) = events.rows(named=True)
    told = story(events)
    assert told
    assert any(AT in sentence for sentence in told)
    for name in ("group_id", "member_id"):
        assert event[name] is None or any(event[name] in sentence for sentence in told), name


def test_each_kind_is_tried():
    assert set(LINES) >= KINDS


WAY = (("joining", {}), ("joined", {"generation": 3, "member_id": "m-1"}), ("assigned", {"partitions": ["t-0"]}))
STEPS_OF_A_CONSUMER = {
    *("assigned", "assignment_acked", "assignment_computed", "assignment_diff", "claiming", "commit_ok"),
    *("coordinator_found", "coordinator_query", "group_assignment", "heartbeat_ok", "heartbeat_sent", "join_requested"),
    *(
        "joined",
        "joining",
        "leader_assigning",
        "member_id",
        "member_list",
        "metadata",
        "offset_found",
        "offset_missing",
    ),
    *("offsets_fetching", "owned", "rebalance_begun", "rebalance_ended", "reconciling", "registered", "registering"),
    *("released", "revoked", "selected", "state_change", "subscribed", "sync_sent", "synced", "target_received"),
    "unassigned",
}
"""The steps of a rebalance, and its successes: the sentence about the rebalance describes them."""
INCIDENTS = sorted({kind for source, kind in KINDS if source != BROKER} - STEPS_OF_A_CONSUMER)


@pytest.mark.parametrize("place", range(len(WAY) + 1))
@pytest.mark.parametrize("kind", INCIDENTS)
def test_an_event_within_a_rebalance_is_described_with_its_reason(kind, place):
    events = log(*WAY[:place], (kind, {"reason": "why-x"}), *WAY[place:])
    told, frames = " ".join(story(events)), (member_rebalances(events), log_remarks(events), log_findings(events))
    assert "why-x" in told
    assert "why-x" in str([frame.to_dicts() for frame in frames])
    assert (GROUP in told, "till-1" in told) == (True, True)


MEMBERS = st.sampled_from(["m-1", "m-2", "m-3"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["member_left", "member_failed"]), MEMBERS),
    st.tuples(st.sampled_from(["group_rebalancing", "group_stabilized", "group_empty"]), st.none()),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=8))
def test_each_member_that_a_broker_names_is_described(steps):
    generation, rows = 1, []
    for kind, member in steps:
        said = {"member_id": member} if member else {"generation": generation}
        generation += kind != "group_rebalancing" and member is None
        rows.append((kind, said))
    events = log(*rows, source="broker")
    told = " ".join(story(events))
    frames = (member_rebalances(events), rebalances(events), log_remarks(events), log_findings(events))
    as_json = str([frame.to_dicts() for frame in frames])
    for member in {member for _, member in steps if member}:
        assert member in told
        assert member in as_json
    assert GROUP in told


def test_heartbeats_and_commits_are_one_sentence():
    events = log(*[("heartbeat_ok", {}), ("commit_ok", {})] * 3)
    (remark,) = log_remarks(events).rows(named=True)
    assert (remark["consumer"], remark["n_events"]) == ("till-1", 6)
    assert remark["sentence"].endswith(f"Group {GROUP}: till-1 had a heartbeat answered 3 times, committed 3 times.")


def test_an_error_that_is_printed_at_two_levels_is_one_fact():
    at = datetime(2021, 2, 3, 4, 5, 6, tzinfo=UTC)
    rows = [("heartbeat_failed", {"reason": "x", "observed_at": at + timedelta(milliseconds=ms)}) for ms in (0, 1, 900)]
    (remark,) = log_remarks(log(*rows)).rows(named=True)
    assert remark["sentence"].endswith("till-1 had a heartbeat that failed, 2 times: x.")


def test_errors_of_two_reasons_are_both_described():
    events = log(("heartbeat_failed", {"reason": "x"}), ("heartbeat_failed", {"reason": "y"}))
    assert log_remarks(events)["sentence"][0].endswith("2 times: x; y.")


def test_a_step_of_a_rebalance_is_described_once():
    events = log(("joining", {}), ("joined", {"generation": 3}), ("assigned", {"partitions": ["t-0"]}))
    assert log_remarks(events).is_empty()


def test_an_event_in_a_finding_is_no_remark():
    events = log(("poll_timeout", {"reason": "slow"}))
    assert log_findings(events)["finding"].to_list() == ["evicted"]
    assert log_remarks(events).is_empty()


def test_a_coordinator_that_is_found_again_at_once_is_a_remark():
    events = log(("assigned", {}), ("coordinator_lost", {}), ("coordinator_found", {}))
    (remark,) = log_remarks(events).rows(named=True)
    assert remark["kinds"] == ["coordinator_lost", "coordinator_found"]
    assert "lost its coordinator; found its coordinator" in remark["sentence"]


def test_a_coordinator_without_a_query_is_named():
    found = ("coordinator_found", {"coordinator": "k-1:9092", "coordinator_id": 7})
    (remark,) = log_remarks(log(found)).rows(named=True)
    assert remark["sentence"].endswith("till-1 found its coordinator: k-1:9092 (broker 7).")
    told = story(log(found, ("joining", {}), ("join_failed", {"reason": "x"})))
    assert any("had the coordinator k-1:9092 (broker 7), did not complete the rebalance: x" in each for each in told)


def test_a_coordinator_without_an_address_is_named_by_its_number():
    (remark,) = log_remarks(log(("coordinator_found", {"coordinator_id": 7}))).rows(named=True)
    assert remark["sentence"].endswith("found its coordinator: broker 7.")


def test_the_states_of_librdkafka_are_named():
    texts = [
        f'Group "g" changed join state {step} (state up)' for step in ("steady -> wait-unassign", "init -> wait-join")
    ]
    (remark,) = log_remarks(log(*[("state_change", {"text": text}) for text in texts])).rows(named=True)
    assert remark["sentence"].endswith("changed its state, 2 times: wait-unassign, wait-join.")


def test_a_poll_timeout_that_only_the_leaving_names_is_a_finding():
    why = {"text": "Member m sending LeaveGroup request to coordinator c due to consumer poll timeout has expired."}
    for events in (log(("leaving", why)), log(("poll_timeout", why), ("leaving", {**why, "at": 0}))):
        (finding,) = log_findings(events).rows(named=True)
        assert (finding["finding"], "times" in finding["sentence"]) == ("evicted", False)
    assert log_findings(
        log(("leaving", {"text": "Member m sending LeaveGroup request due to the consumer is being closed"}))
    ).is_empty()


def test_a_failure_without_a_reason_is_described_without_its_layout():
    text = "2022-01-02T03:04:05Z host INFO [Consumer clientId=c, groupId=g] Rebalance failed."
    told = story(log(("joining", {}), ("join_failed", {"text": text})))
    assert any(each.endswith("did not complete the rebalance: Rebalance failed.") for each in told)
    assert not any("host INFO" in each for each in told)
