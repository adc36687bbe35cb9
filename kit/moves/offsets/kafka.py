"""Offsets of many groups at their coordinators: fetched, committed and deleted, with retries and a result for each.

A commit is a simple committer's (generation −1, no member id): the coordinator itself refuses it while the group has
a member. ``OffsetCommit`` and ``OffsetDelete`` take one group each, so several are under way to each coordinator;
``OffsetFetch`` takes hundreds (KIP-709, brokers ≥ 3.0). kit.groups.read.coordinator lists the groups of each broker;
here the coordinators of known groups are asked for, so a group whose coordinator moves does not appear deleted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetDeleteRequest

from kit.clients.broker_client import (
    RETRIABLE_CODES,
    RETRIABLE_FAILURES,
    Deadline,
    describe_code,
    describe_refusal,
)
from kit.groups.read.sweep import GROUPS_PER_REQUEST
from kit.moves.offsets.group_offsets import IN_FLIGHT, NO_COORDINATOR, GroupOffsets, chunks, stored_of
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.requests import (
    Asked,
    Codes,
    commit_codes,
    commit_of,
    delete_codes,
    delete_groups_of,
    delete_of,
)
from kit.moves.offsets.selection import Key, Place

T = TypeVar("T")
BATCH_BYTES = 500_000
"""A coordinator appends the offsets of one request as one batch, of at most ``max.message.bytes`` of
``__consumer_offsets``: 1,048,588 by default. A request stays below a half of that."""
_RECORD_BYTES = 80
"""The most that a record takes besides its names and its metadata: lengths, times, offset and epoch."""
_LOADING = 14
"""COORDINATOR_LOAD_IN_PROGRESS is answered before anything is appended. The other codes that may pass are not certain:
a coordinator that appended a request, and whose followers were late or elected another leader, answers
COORDINATOR_NOT_AVAILABLE or NOT_COORDINATOR. The records may be in the log all the same
(``GroupCoordinatorService.handleOperationException``).
"""
TOO_LARGE = ({28}, {-1})
"""Coordinators before Kafka 4.0 answer INVALID_COMMIT_OFFSET_SIZE for each offset of a request that is larger than a
batch; those since 4.0 answer UNKNOWN_SERVER_ERROR."""
_GROUP_ID_NOT_FOUND, _GROUP_AUTHORIZATION_FAILED = 69, 30
_READ, _DELETE = "READ", "DELETE"
_MEANINGS = {
    3: "the topic or partition no longer exists",
    12: "the metadata is too large",
    28: "the offset is larger than a batch of __consumer_offsets may be (max.message.bytes)",
    22: "the group has members now, and only members can commit: stop them",
    25: "the group has members now, and only members can commit: stop them",
    68: "the group has members now: stop them",
    86: "the group is subscribed to this topic: stop its members",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one write. ``error`` None: accepted. ``is_certain``: the failed write certainly had no effect."""

    error: str | None = None
    is_certain: bool = True

    @property
    def is_refused(self) -> bool:
        """Nothing was written, for certain."""
        return self.error is not None and self.is_certain


ACCEPTED = Answer()
ABSENT = Answer("the group no longer exists")
_NO_COORDINATOR = Answer(NO_COORDINATOR)
UNANSWERED = Answer("the coordinator did not answer the request", is_certain=False)


class KafkaWriter(GroupOffsets):
    """Write to groups: their offsets, by topic and partition, and their deletion."""

    @property
    def can_delete(self) -> bool:
        """Return whether the brokers can delete single offsets (OffsetDelete, KIP-496: Kafka ≥ 2.4)."""
        try:
            return self._client.supports(OffsetDeleteRequest, 0)
        except kafka_errors.IncompatibleBrokerVersion:
            return False

    def delete_groups(self, known: Mapping[str, Asked]) -> dict[str, Answer]:
        """Delete whole groups, with all their offsets. A coordinator refuses it while the group has a member.

        Before a deletion is tried again, the group's offsets are read again. If they are not the ``known`` ones,
        members have committed meanwhile, and the deletion is refused.
        """
        answers: dict[str, Answer] = {}
        self._client.run(self._delete_groups, known, answers, Deadline(self._deadline_s))
        return answers

    def write(self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored]) -> dict[Key, Answer]:
        """Commit each offset with its metadata and leader epoch; delete those whose wanted offset is None.

        The protocol has no condition on the offset before; its only condition is that the group has no members. So
        before a write is tried again, the offset is read again: if it is no longer the ``known`` one, members have
        committed meanwhile, and the write is refused. A key without a known offset has no such condition.
        """
        commits = {key: stored for key, stored in wanted.items() if stored.offset is not None}
        deletes = {key: stored for key, stored in wanted.items() if stored.offset is None}
        sent = self._write(commits, known, commit_of, commit_codes, _READ)
        return sent | self._write(deletes, known, delete_of, delete_codes, _DELETE)

    def take_made_parents(self) -> Mapping[str, int]:
        """Kafka has no parents."""
        return {}

    def remove_parents(self, made: Mapping[str, int]) -> None:
        """Kafka has no parents to remove."""

    def _write(
        self,
        wanted: Mapping[Key, Stored],
        known: Mapping[Key, Stored],
        request: Callable[[str, Asked], Any],
        codes: Callable[[Asked], Codes],
        right: str,
    ) -> dict[Key, Answer]:
        by_group: dict[str, dict[Place, Stored]] = {}
        for (group_id, topic, partition), stored in wanted.items():
            by_group.setdefault(group_id, {})[topic, partition] = stored
        answers: dict[Key, Answer] = {}
        if by_group:
            writing = _Writing(request, codes, right, answers, known)
            self._client.run(self._carry_out, by_group, writing, Deadline(self._deadline_s))
        return answers

    async def _carry_out(self, pending: dict[str, dict[Place, Stored]], writing: _Writing, deadline: Deadline) -> None:
        attempt = 0
        while True:
            homes = await self.homes(pending, deadline)
            for group_id in pending.keys() - {each for groups in homes.values() for each in groups}:
                writing.take(group_id, pending[group_id], _NO_COORDINATOR)
            jobs = [partial(self._write_to, broker_id, groups, pending, writing) for broker_id, groups in homes.items()]
            await self._client.gather(jobs)
            asked, pending = pending, writing.left(pending)
            if sum(map(len, pending.values())) < sum(map(len, asked.values())):
                deadline.renew()
            if not pending or not deadline.allows(attempt):
                return
            self.forget(pending)
            await self._client.pause(attempt)
            attempt += 1
            if writing.known:
                pending = writing.unmoved(pending, await self.fetch(pending, deadline))

    async def _write_to(
        self, broker_id: int, groups: Sequence[str], pending: Mapping[str, Asked], writing: _Writing
    ) -> None:
        left = deque((group_id, part) for group_id in groups for part in batches(group_id, pending[group_id]))
        under_way: deque[tuple[str, Asked, Any]] = deque()
        while left or under_way:
            if left and len(under_way) < IN_FLIGHT:
                group_id, part = left.popleft()
                under_way.append((group_id, part, self._client.send(writing.request(group_id, part), broker_id)))
            else:
                left.extendleft(await writing.receive(*under_way.popleft()))

    async def _delete_groups(self, known: Mapping[str, Asked], answers: dict[str, Answer], deadline: Deadline) -> None:
        pending, attempt = sorted(known), 0
        while True:
            homes = await self.homes(pending, deadline)
            for group_id in set(pending).difference(*homes.values()):
                take(answers, group_id, _NO_COORDINATOR)
            jobs = [partial(self._delete_from, broker_id, groups, answers) for broker_id, groups in homes.items()]
            await self._client.gather(jobs)
            asked, pending = pending, [group_id for group_id in pending if is_passing(answers[group_id])]
            if len(pending) < len(asked):
                deadline.renew()
            if not pending or not deadline.allows(attempt):
                return
            self.forget(pending)
            await self._client.pause(attempt)
            attempt += 1
            current = await self.fetch(dict.fromkeys(pending), deadline)
            for group_id in [each for each in pending if current[each] and current[each] != known[each]]:
                pending.remove(group_id)
                if not isinstance(current[group_id], str):
                    take(answers, group_id, _moved("the group's offsets have changed since the plan"))

    async def _delete_from(self, broker_id: int, groups: Sequence[str], answers: dict[str, Answer]) -> None:
        for chunk in chunks(groups, GROUPS_PER_REQUEST):
            try:
                response = await self._client.send(delete_groups_of(chunk), broker_id)
            except RETRIABLE_FAILURES:
                codes = {}
            else:
                codes = {each.group_id: each.error_code for each in response.results}
            for group_id in chunk:
                take(answers, group_id, _deleted(codes.get(group_id), answers.get(group_id, ACCEPTED)))


@dataclass(frozen=True, slots=True)
class _Writing:
    """One kind of write, and the answers so far. ``right``: what it needs on the group."""

    request: Callable[[str, Asked], Any]
    codes: Callable[[Asked], Codes]
    right: str
    answers: dict[Key, Answer]
    known: Mapping[Key, Stored]

    def take(self, group_id: str, asked: Iterable[Place], answer: Answer) -> None:
        for place in asked:
            take(self.answers, (group_id, *place), answer)

    async def receive(self, group_id: str, asked: Asked, future: Any) -> list[tuple[str, Asked]]:
        """Take the answers. Return the halves of a request that was too large for a batch, as far as can be known."""
        try:
            response = await future
        except kafka_errors.UnknownBrokerIdError:  # Nothing was sent.
            self.take(group_id, asked, _NO_COORDINATOR)
            return []
        except RETRIABLE_FAILURES:
            self.take(group_id, asked, UNANSWERED)
            return []
        found = dict(self.codes(asked)(response))
        if len(asked) > 1 and set(found.values()) in TOO_LARGE:
            places = list(asked)
            halves = places[: len(places) // 2], places[len(places) // 2 :]
            return [(group_id, {place: asked[place] for place in half}) for half in halves]
        for place, code in found.items():
            take(self.answers, (group_id, *place), answer_of(code, self.right))
        self.take(group_id, asked.keys() - found, UNANSWERED)
        return []

    def left(self, pending: Mapping[str, Asked]) -> dict[str, dict[Place, Stored]]:
        """The writes to try again."""
        left = {
            group_id: {place: it for place, it in asked.items() if is_passing(self.answers[group_id, *place])}
            for group_id, asked in pending.items()
        }
        return {group_id: asked for group_id, asked in left.items() if asked}

    def unmoved(
        self, pending: Mapping[str, Asked], current: Mapping[str, Asked | str]
    ) -> dict[str, dict[Place, Stored]]:
        """The writes whose offset is still as known; all other writes get an answer, or keep the one they have."""
        left: dict[str, dict[Place, Stored]] = {}
        for group_id, asked in pending.items():
            for place, wanted in asked.items():
                key, now = (group_id, *place), stored_of(current[group_id], place)
                if now == self.known.get(key, now) and not now.is_hidden:
                    left.setdefault(group_id, {})[place] = wanted
                elif now.offset != wanted.offset and not now.is_hidden:
                    take(self.answers, key, _moved(f"the offset is {now.offset} now"))
        return left


@dataclass(frozen=True, slots=True)
class Passing(Answer):
    """A refusal that a later attempt may not meet."""


def is_passing(answer: Answer) -> bool:
    return isinstance(answer, Passing) or answer is _NO_COORDINATOR or (not answer.is_certain)


def take(answers: dict[T, Answer], what: T, answer: Answer) -> None:
    """After an unanswered request, a later refusal does not prove that nothing was written."""
    before = answers.get(what)
    if answer.error is not None and before is not None and not before.is_certain:
        answer = Answer(answer.error, is_certain=False)
    answers[what] = answer


def _moved(found: str) -> Answer:
    return Answer(f"another client committed between two attempts of this write: {found}")


def _deleted(code: int | None, before: Answer) -> Answer:
    """A group that is not there after a request that was not answered was deleted by that."""
    if code is None:
        return UNANSWERED
    if code == _GROUP_ID_NOT_FOUND:
        return ABSENT if before.is_certain else ACCEPTED
    return answer_of(code, _DELETE)


def answer_of(code: int, right: str = _READ) -> Answer:
    """``right``: what the request needs on the group. On the topic every write needs READ."""
    if code == 0:
        return ACCEPTED
    refusal = describe_refusal(code, right if code == _GROUP_AUTHORIZATION_FAILED else _READ)
    error = f"{_MEANINGS[code]}: {describe_code(code)}" if code in _MEANINGS else refusal
    if code in RETRIABLE_CODES:
        return Passing(error, is_certain=code == _LOADING)
    return Answer(error)


def batches(group_id: str, asked: Asked) -> Iterator[Asked]:
    """Parts of at most about ``BATCH_BYTES`` each."""
    part: dict[Place, Stored] = {}
    n_bytes = 0
    for place, stored in asked.items():
        n_record = len(f"{group_id}{place[0]}{stored.metadata or ''}".encode()) + _RECORD_BYTES
        if part and n_bytes + n_record > BATCH_BYTES:
            yield part
            part, n_bytes = {}, 0
        part[place] = stored
        n_bytes += n_record
    yield part
