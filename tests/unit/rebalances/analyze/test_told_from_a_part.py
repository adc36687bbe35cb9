"""Pasted logs begin and end anywhere: what is reported of a rebalance whose lines are not all there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.rebalances.sources import Rebalances, read_rebalances

AT = "[2025-01-02 03:04:{:06.3f}] INFO "
COORDINATOR = "(kafka.coordinator.group.GroupCoordinator)"


def read(tmp_path: Path, *lines: tuple[float, str]) -> Rebalances:
    log = tmp_path / "pasted.log"
    log.write_text("".join(f"{AT.format(second).replace('.', ',')}{text}\n" for second, text in lines))
    return read_rebalances(None, str(log), zone="UTC")


def kinds(found: Rebalances) -> list[str]:
    return found.findings["finding"].to_list()


@pytest.mark.parametrize(
    "text",
    [
        "[Consumer clientId=c, groupId=g] JoinGroup failed: Coordinator is loading. Sent generation was 7",
        "[Consumer clientId=c, groupId=g] SyncGroup failed: Coordinator is loading. Sent generation was 7",
        "[g_host-1488627000000-0a1b2c3d], error during syncedRebalance (kafka.consumer.ZookeeperConsumerConnector)",
    ],
)
def test_a_failure_is_reported_where_the_log_begins_behind_the_start(tmp_path, text):
    found = read(tmp_path, (1, text))
    assert kinds(found) == ["unfinished"]
    assert "did not complete the rebalance" in found.describe()[0]


def test_a_join_is_reported_where_its_request_is_missing(tmp_path):
    joined = "[Consumer clientId=c, groupId=g] Successfully joined group with generation 7 (a.B)"
    assert "joined generation 7" in read(tmp_path, (1, joined)).describe()[0]


def test_an_assignment_that_is_not_listed_is_reported(tmp_path):
    text = "[Worker clientId=w, groupId=g] Joined group and got assignment: Assignment{error=0} (a.DistributedHerder)"
    assert read(tmp_path, (1, text)).describe()[0].endswith("w has an assignment that its log does not list.")


def test_a_worker_and_its_consumer_in_one_log_are_two(tmp_path):
    found = read(
        tmp_path,
        (1, "[Worker clientId=w, groupId=workers] (Re-)joining group (a.WorkerCoordinator)"),
        (2, "[Consumer clientId=c, groupId=connect-sink] (Re-)joining group (a.ConsumerCoordinator)"),
        (3, "[Worker clientId=w, groupId=workers] Joined group at generation 7 and got assignment: x (a.Herder)"),
    )
    rows = found.members.select("group_id", "consumer", "generation", "outcome").sort("group_id").rows()
    assert rows == [("connect-sink", "c", None, "open"), ("workers", "w", 7, "assigned")]


FOUND = "[Consumer clientId=c, groupId=g] Discovered group coordinator k-1:9092 (id: 2147483646 rack: null) (a.B)"
LOST = "[Consumer clientId=c, groupId=g] Group coordinator k-1:9092 (id: 2147483646) is unavailable or invalid (a.B)"


@pytest.mark.parametrize(("lines", "expected"), [((FOUND, LOST), ["unreached_coordinator"]), ((LOST, FOUND), [])])
def test_the_order_within_a_second_is_the_one_of_the_log(tmp_path, lines, expected):
    assert kinds(read(tmp_path, *((1, line) for line in lines))) == expected


def test_a_group_that_ends_has_no_further_generation(tmp_path):
    """Its name is used again: the old generation 1 is no part of the new one."""
    found = read(
        tmp_path,
        (1, f"[GroupCoordinator 1]: Preparing to restabilize group g with old generation 1 {COORDINATOR}"),
        (2, f"[GroupCoordinator 1]: Group g generation 1 is dead and removed {COORDINATOR}"),
        (5, f"[GroupCoordinator 1]: Preparing to restabilize group g with old generation 0 {COORDINATOR}"),
        (6, f"[GroupCoordinator 1]: Stabilized group g generation 1 {COORDINATOR}"),
    )
    assert found.generations.select("generation", "duration_ms").rows() == [(1, 1000)]


SOUGHT = "[Consumer clientId=c, groupId=g] Seeking to EARLIEST offset of partition t-0 (a.SubscriptionState)"
RESET = "[Consumer clientId=c, groupId=g] Resetting offset for partition t-0 to offset 7. (a.SubscriptionState)"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [([SOUGHT, RESET], []), ([RESET], ["offset_reset"]), ([SOUGHT, RESET, RESET], ["offset_reset"])],
)
def test_a_position_that_the_application_chose_is_no_reset(tmp_path, texts, expected):
    assert kinds(read(tmp_path, *((number, text) for number, text in enumerate(texts)))) == expected


MEMBERS = [f"c-{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "12"]


def test_a_leader_among_listed_members_of_its_client_is_the_one_with_what_it_owns(tmp_path):
    listed = f"{{{MEMBERS[0]}=Assignment(partitions=[t-0, t-1]), {MEMBERS[1]}=Assignment(partitions=[])}}"
    own = "[Consumer clientId=c, groupId=g] "
    found = read(
        tmp_path,
        (1, f"{own}Finished assignment for group at generation 4: {listed} (a.B)"),
        (2, f"{own}Successfully joined group with generation 4 (a.B)"),
        (3, f"{own}Adding newly assigned partitions:  (a.B)"),
    )
    (row,) = found.generations.rows(named=True)
    assert (row["leader_id"], row["members"], row["members_without_log"]) == (MEMBERS[1], MEMBERS, MEMBERS[:1])


def test_the_reason_of_a_failed_join_is_reported_where_the_next_line_gives_none(tmp_path):
    own = "[Consumer clientId=c, groupId=g] "
    found = read(
        tmp_path, (1, f"{own}JoinGroup failed: Coordinator k-1 is loading. (a.B)"), (2, f"{own}Rebalance failed. (a.B)")
    )
    assert found.members["failure"].to_list() == ["Coordinator k-1 is loading."]


@pytest.mark.parametrize(("asks", "second"), [(MEMBERS[0], "10"), (MEMBERS[1], "40")], ids=["it came", "another left"])
def test_a_classic_generation_begins_where_a_member_asks_that_the_group_rebalances_for(tmp_path, asks, second):
    coordinator = "[GroupCoordinator 3]: "
    found = read(
        tmp_path,
        (10, f"{coordinator}Dynamic member with unknown member id joins group g in Stable state. Created a new "
             f"member id {asks} and request the member to rejoin with this id. {COORDINATOR}"),
        (40, f"{coordinator}Preparing to rebalance group g in state PreparingRebalance with old generation 3 (o-1) "
             f"(reason: Adding new member {MEMBERS[0]} with group instance id None) {COORDINATOR}"),
        (41, f"{coordinator}Stabilized group g generation 4 (o-1) with 1 members {COORDINATOR}"),
    )  # fmt: skip
    assert [f"{at:%S}" for at in found.generations["started_at"]] == [second]


def test_a_departure_that_is_printed_behind_its_generation_begins_no_other_and_is_counted_once(tmp_path):
    coordinator = "[GroupCoordinator 3]: "
    found = read(
        tmp_path,
        (10, f"{coordinator}Preparing to rebalance group g in state PreparingRebalance with old generation 1 (o-1) "
             f"(reason: Removing member {MEMBERS[0]} on LeaveGroup) {COORDINATOR}"),
        (11, f"{coordinator}Group g with generation 2 is now empty (o-1) {COORDINATOR}"),
        (12, f"{coordinator}Member MemberMetadata(memberId={MEMBERS[0]}, groupInstanceId=None, clientId=c, "
             f"clientHost=/h, sessionTimeoutMs=1, rebalanceTimeoutMs=1, supportedProtocols=List(range)) has left "
             f"group g through explicit LeaveGroup; client reason: not provided {COORDINATOR}"),
        (40, f"{coordinator}Preparing to rebalance group g in state PreparingRebalance with old generation 2 (o-1) "
             f"(reason: Adding new member {MEMBERS[1]} with group instance id None) {COORDINATOR}"),
        (41, f"{coordinator}Stabilized group g generation 3 (o-1) with 1 members {COORDINATOR}"),
    )  # fmt: skip
    rows = found.generations.sort("generation").rows(named=True)
    assert [(row["duration_ms"], row["left"]) for row in rows] == [(1000, [MEMBERS[0]]), (1000, [])]


def test_a_target_assignment_names_the_members_of_an_epoch(tmp_path):
    coordinator = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] [GroupId g] "
    found = read(
        tmp_path,
        (1, f"{coordinator}Computed a new target assignment for epoch 6 with 'uniform' assignor in 1ms: "
            "{a=MemberAssignment(partitions={i=[0, 1]}), b=MemberAssignment(partitions={})}. (o.G)"),
        (2, f"{coordinator}Member a new assignment state: epoch=6, previousEpoch=5, state=STABLE, "
            "assignedPartitions=[i-0, i-1] and revokedPartitions=[i-7]. (o.G)"),
    )  # fmt: skip
    (row,) = found.generations.rows(named=True)
    assert (row["is_epoch"], row["members"], row["n_members"]) == (True, ["a", "b"], 2)
    assert found.events["partitions"].to_list()[-1] == ["i-0", "i-1"]


MAXPOLL = "%4|{}|MAXPOLL|c#consumer-1| [thrd:main]: {} (adjust max.poll.interval.ms): leaving group"
EXCEEDED = "Application maximum poll interval (6000ms) exceeded by {}ms"
LEAVES = MAXPOLL.format("1735787045.006", EXCEEDED.format(7))
RUST = "Kafka { source: PollExceeded (Local: Maximum application poll interval (max.poll.interval.ms) exceeded) }"


@pytest.mark.parametrize(
    ("lines", "n"),
    [
        ([LEAVES, "03:04:05 got 1", f"03:04:05 error: {EXCEEDED.format(7)}"], 1),
        ([LEAVES, "03:04:05 got 1", f"2025-01-02 03:04:06,000 ERROR {EXCEEDED.format(7)}"], 1),
        ([LEAVES, "03:04:05 got 1", f"03:04:05 error: {EXCEEDED.format(8)}"], 2),
        ([MAXPOLL.format(f"173578704{n}.006", EXCEEDED.format(7)) for n in (5, 9)], 2),
        ([f"2025-01-02T03:04:05 [ERROR] - app: Ended with {RUST}", "thread 'main' panicked at src/main.rs:1:2:",
          f"called `Result::unwrap()` on an `Err` value: {RUST}"], 1),
    ],
    ids=["without a date", "by another clock", "of another time", "twice", "a panic of Rust"],
)  # fmt: skip
def test_a_line_that_a_program_repeats_of_its_client_is_one_fact(tmp_path, lines, n):
    log = tmp_path / "pasted.log"
    log.write_text("\n".join(lines))
    (sentence,) = read_rebalances(None, str(log)).findings["sentence"]
    assert (", 2 times" in sentence) == (n == 2)
