"""A group's only member writes while the coordinator moves: no server can be timed so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors

from kit.clients.broker_client import Deadline
from kit.errors import ConnectError
from kit.moves.offsets.exclusive import _write_group
from kit.moves.offsets.moves import Stored

GROUP, PLACE = "g", ("t", 0)
NOT_COORDINATOR, UNKNOWN_MEMBER, SESSION_REFUSED = 16, 25, 26
JOIN, SYNC, COMMIT, LEAVE = "JoinGroupRequest", "SyncGroupRequest", "OffsetCommitRequest", "LeaveGroupRequest"
LOST = kafka_errors.KafkaTimeoutError
Hazard = Callable[[], int]


def lost() -> int:
    raise LOST


class Coordinator:
    """One classic group with one offset. ``hazards``: what becomes of the first requests of a kind: an error code, or
    no answer. A member that did not leave stays for ``session`` descriptions of the group.
    """

    def __init__(self, hazards: dict[str, list[Hazard]], session: int = 3, is_consumer: bool = False) -> None:
        self.hazards, self.session, self.is_consumer = hazards, session, is_consumer
        self.members: dict[str, int] = {}
        self.offset, self.sent = 5, list[str]()

    def run(self, coroutine: Any, *arguments: Any) -> Any:
        try:
            return asyncio.run(coroutine(*arguments))
        except LOST as error:
            raise ConnectError("no answer") from error

    async def gather(self, coroutines: Any) -> list[Any]:
        return [await each() for each in coroutines]

    async def pause(self, attempt: int) -> None:
        """Time that a test does not wait for."""

    async def find_coordinators(self, group_ids: list[str], deadline: Any) -> dict[str, int]:
        return dict.fromkeys(group_ids, 1)

    def supports(self, request: Any, version: int) -> bool:
        return True

    async def send_within(self, request: Any, broker_id: int, seconds: float) -> Any:
        return await self.send(request, broker_id)

    async def send(self, request: Any, broker_id: int) -> Any:
        name = type(request).__name__
        self.sent.append(name)
        hazards = self.hazards.get(name)
        code = hazards.pop(0)() if hazards else 0
        return getattr(self, f"_{name.removesuffix('Request')}")(request, code)

    def _DescribeGroups(self, request: Any, code: int) -> Any:
        self.members = {member: left - 1 for member, left in self.members.items() if left > 1}
        members = [SimpleNamespace(member_id=each) for each in self.members]
        return SimpleNamespace(groups=[SimpleNamespace(error_code=code, members=members)])

    def _ConsumerGroupDescribe(self, request: Any, code: int) -> Any:
        return SimpleNamespace(groups=[SimpleNamespace(error_code=0 if self.is_consumer else 69)])

    def _OffsetFetch(self, request: Any, code: int) -> Any:
        partition = SimpleNamespace(
            partition_index=0, error_code=0, committed_offset=self.offset, metadata="", committed_leader_epoch=-1
        )
        topics = [SimpleNamespace(name="t", partitions=[partition])]
        return SimpleNamespace(groups=[SimpleNamespace(group_id=GROUP, error_code=0, topics=topics)])

    def _JoinGroup(self, request: Any, code: int) -> Any:
        member_id = request.member_id or f"offramp-{len(self.sent)}"
        if not request.member_id:
            return SimpleNamespace(error_code=code or 79, member_id=member_id)
        if not code:
            self.members[member_id] = self.session
        return SimpleNamespace(
            error_code=code, member_id=member_id, leader=member_id, members=[member_id], generation_id=1
        )

    def _SyncGroup(self, request: Any, code: int) -> Any:
        return SimpleNamespace(error_code=code)

    def _OffsetCommit(self, request: Any, code: int) -> Any:
        (topic,) = request.topics
        (partition,) = topic.partitions
        self.offset = self.offset if code else partition.committed_offset
        answer = SimpleNamespace(partition_index=0, error_code=code)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[answer])])

    def _LeaveGroup(self, request: Any, code: int) -> Any:
        self.members.pop(request.members[0].member_id, None)
        return SimpleNamespace(error_code=code)


def written(coordinator: Coordinator) -> str | None:
    asked, known = {PLACE: Stored(9)}, {(GROUP, *PLACE): Stored(5)}
    return _write_group(coordinator, GROUP, asked, known, Deadline(60.0))[PLACE].error  # type: ignore[arg-type]


@pytest.mark.parametrize("moved", [JOIN, SYNC, COMMIT])
def test_a_write_whose_coordinator_moves_is_tried_again(moved):
    coordinator = Coordinator({moved: [lambda: NOT_COORDINATOR]})
    assert (written(coordinator), coordinator.offset, coordinator.members) == (None, 9, {})


def test_a_member_of_a_former_attempt_that_could_not_leave_is_waited_for():
    coordinator = Coordinator({SYNC: [lost], LEAVE: [lost]})
    assert (written(coordinator), coordinator.offset) == (None, 9)


@pytest.mark.parametrize("answer", [lost, lambda: NOT_COORDINATOR])
@pytest.mark.parametrize("is_appended", [True, False])
def test_a_commit_whose_answer_does_not_report_whether_it_was_made_is_sent_again_only_if_it_was_not(
    answer, is_appended
):
    coordinator = Coordinator({})

    def commit() -> int:
        coordinator.offset = 9 if is_appended else 5
        return answer()

    coordinator.hazards = {COMMIT: [commit]}
    assert (written(coordinator), coordinator.offset) == (None, 9)
    assert coordinator.sent.count(COMMIT) == (1 if is_appended else 2)


def test_another_clients_commit_between_two_attempts_stays():
    coordinator = Coordinator({})

    def commit() -> int:
        coordinator.offset = 6
        return NOT_COORDINATOR

    coordinator.hazards = {COMMIT: [commit]}
    assert "another client committed" in (written(coordinator) or "")
    assert coordinator.offset == 6


@pytest.mark.parametrize(
    ("hazards", "said"),
    [
        ({COMMIT: [lambda: UNKNOWN_MEMBER]}, "the coordinator ended offramp's membership"),
        ({JOIN: [lambda: SESSION_REFUSED]}, "group.min.session.timeout.ms"),
    ],
)
def test_a_refusal_is_described_as_one_of_a_member(hazards, said):
    coordinator = Coordinator(hazards)
    assert said in (written(coordinator) or "")
    assert coordinator.offset == 5


def test_a_group_that_became_one_of_the_consumer_protocol_is_not_joined():
    coordinator = Coordinator({}, is_consumer=True)
    assert "consumer protocol" in (written(coordinator) or "")
    assert JOIN not in coordinator.sent
