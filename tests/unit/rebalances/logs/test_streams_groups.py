"""Streams groups (KIP-1071): the lines of the coordinator and of Kafka Streams 4.1 to 4.4, and their story."""

# ruff: noqa: E501  # lines of logs

from __future__ import annotations

import pytest

from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.story import story
from tests.unit.rebalances.logs.pasted import read

A, B = "a" * 22, "b" * 22
BROKER = "[2026-01-02 10:00:0{},000] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=9] [GroupId words]{} (a.b.GroupMetadataManager)"
CLIENT = "[2026-01-02 10:00:0{},000] INFO stream-thread [w-1] [Consumer clientId=w-1, groupId=words] {} (a.b.StreamsMembershipManager)"
EPOCH_3 = [
    (0, f"[MemberId {A}] Member joins the streams group."),
    (0, f"[MemberId {A}] Bumped streams group epoch to 3 with metadata hash 7 and validated topic epoch 0."),
    (1, " Computed a new target assignment for epoch 3 with 'sticky' assignor in 2ms: {}."),
    (1, f"[MemberId {A}] Member's new assignment state: epoch=3, previousEpoch=0, state=STABLE, assignedTasks=x and tasksPendingRevocation=y."),
]  # fmt: skip
EPOCH_4 = [
    (2, f"[MemberId {B}] Member joins the streams group."),
    (2, f"[MemberId {B}] Bumped streams group epoch to 4 with metadata hash 7 and validated topic epoch 0."),
]
EPOCH_5 = [
    (5, f"[MemberId {A}] Member {A} left the streams group."),
    (5, f"[MemberId {B}] Bumped streams group epoch to 5 with metadata hash 7 and validated topic epoch 0."),
]


def test_the_coordinators_log_gives_epochs_with_who_came_and_went(tmp_path):
    events = read(tmp_path, *(BROKER.format(*each) for each in [*EPOCH_3, *EPOCH_4, *EPOCH_5])).events
    rows = rebalances(events).select("group_id", "generation", "is_epoch", "members", "joined", "left").rows()
    assert rows == [
        ("words", 3, True, [A], [A], None),
        ("words", 4, True, [A, B], [B], []),
        ("words", 5, True, [B], [], [A]),
    ]
    assert "epoch 4" in " ".join(story(events))
    assert "generation" not in " ".join(story(events))


def test_a_member_that_was_fenced_is_named(tmp_path):
    line = BROKER.format(0, f" Streams member {A} fenced from the group because the member session expired.")
    (event,) = read(tmp_path, line).events.rows(named=True)
    assert (event["kind"], event["member_id"], event["group_id"]) == ("member_fenced", A, "words")
    assert A in " ".join(story(read(tmp_path, line).events))


def test_a_members_own_log(tmp_path):
    lines = [
        f"Member {A} with epoch 0 transitioned from UNSUBSCRIBED to JOINING.",
        f"Member {A} with epoch 3 transitioned from JOINING to RECONCILING.",
        "Assigned tasks with local epoch 0 and group words",
        f"Member {A} with epoch 3 transitioned from RECONCILING to ACKNOWLEDGING.",
        f"Member {A} with epoch 3 transitioned from ACKNOWLEDGING to STABLE.",
    ]
    events = read(tmp_path, *(CLIENT.format(n, text) for n, text in enumerate(lines))).events
    (row,) = (
        member_rebalances(events).select("group_id", "generation", "is_epoch", "member_id", "owned", "outcome").rows()
    )
    assert row == ("words", 3, True, A, None, "assigned")
    assert "has an assignment that its log does not list" in story(events)[0] or "epoch 3" in story(events)[0]


@pytest.mark.parametrize(("text", "kind"), [
    ("StreamsGroupHeartbeatRequest failed due to GROUP_AUTHORIZATION_FAILED: no", "heartbeat_failed"),
    ("Streams rebalance listener failed on invocation of onTasksAssigned for tasks [0_1]", "listener_failed"),
    ("The onTasksRevoked callback completed with an error (x); signaling to continue", "listener_failed"),
    ("The onAllTasksLost callback completed with an error (x); signaling to continue", "listener_failed"),
    ("Revoking previously assigned and now lost active tasks 0_1", "lost"),
])  # fmt: skip
def test_a_failure_of_a_member_is_an_event(tmp_path, text, kind):
    assert read(tmp_path, CLIENT.format(0, text)).events["kind"].to_list() == [kind]
