"""Offsets of a group in Kafka, written by its only member: what was read is what is overwritten.

A commit from outside (``kit.moves.offsets.kafka``) is accepted while the group has no member, whatever the offset is.
A client that assigns partitions manually and commits is no member either, so both may write at once. A member's commit
has its generation: from the join to the departure the coordinator accepts no other commit without one
(``ClassicGroup.validateOffsetCommit``). The member subscribes to every topic that the group has offsets of, because a
group in use keeps old offsets of those topics alone, and assigns itself nothing.

A broker delays the first member of a group (``group.initial.rebalance.delay.ms``, three seconds by default), and a
connection waits meanwhile: several connections take a group each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeGroupsRequest

from kit.clients.broker_client import DEADLINE_S, RETRIABLE_CODES, BrokerClient, Deadline
from kit.clients.cluster import Cluster, connect_kafka
from kit.errors import ConnectError
from kit.groups.read import consumer_group_describe
from kit.moves.offsets import requests
from kit.moves.offsets.kafka import (
    ACCEPTED,
    TOO_LARGE,
    UNANSWERED,
    Answer,
    KafkaWriter,
    answer_of,
    batches,
    is_passing,
    take,
)
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.requests import Asked
from kit.moves.offsets.selection import Key, Place

CONNECTIONS = 8
SESSION_S = 10.0
"""Seconds after which the coordinator removes the member of a process that died."""
_JOIN_S, _ANSWER_S = 30.0, 10.0
_MEMBER_ID_REQUIRED = 79
_UNSUPPORTED_VERSION, _GROUP_ID_NOT_FOUND = 35, 69
_JOINED = Answer("a member joined the group meanwhile: stop its members")
_ENDED = Answer(
    "the coordinator ended offramp's membership of the group: a member joined, or a request took longer than"
    f" {SESSION_S:g} s"
)
_REFUSALS = {
    22: _ENDED,
    23: Answer("another application uses the group: it has another protocol type"),
    25: _ENDED,
    26: Answer(
        f"offramp joins a group with a session timeout of {SESSION_S:g} s, and the brokers refuse it"
        " (group.min.session.timeout.ms, group.max.session.timeout.ms): plan the group without --exclusive"
    ),
    27: _JOINED,
}
_CONVERTED = Answer("a member converted the group to the consumer protocol since the plan: plan it without --exclusive")


class ExclusiveWriter(KafkaWriter):
    """A :class:`KafkaWriter` that commits as each group's only member. It deletes as that does: a member can't."""

    def __init__(self, cluster: Cluster, deadline_s: float = DEADLINE_S) -> None:
        super().__init__(cluster.broker_client, deadline_s)
        self._profile = cluster.profile

    def write(self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored]) -> dict[Key, Answer]:
        """Commit each offset if it is the ``known`` one while no other operator or tool can commit; see
        ``KafkaWriter.write``.

        Raises:
            ConnectError, ReadError: the brokers do not answer a new connection, or sent what can't be parsed.
        """
        commits: dict[str, dict[Place, Stored]] = {}
        for (group_id, topic, partition), stored in wanted.items():
            if stored.offset is not None:
                commits.setdefault(group_id, {})[topic, partition] = stored
        answers = super().write({key: stored for key, stored in wanted.items() if stored.offset is None}, known)
        shares = [share for start in range(CONNECTIONS) if (share := list(commits)[start::CONNECTIONS])]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for written in pool.map(lambda share: self._write_share({it: commits[it] for it in share}, known), shares):
                answers |= written
        return answers

    def _write_share(self, commits: Mapping[str, Asked], known: Mapping[Key, Stored]) -> dict[Key, Answer]:
        answers: dict[Key, Answer] = {}
        client = connect_kafka(self._profile)
        try:
            for group_id, asked in commits.items():
                found = _write_group(client, group_id, asked, known, Deadline(self._deadline_s))
                answers |= {(group_id, *place): answer for place, answer in found.items()}
        finally:
            client.close()
        return answers


@dataclass(frozen=True, slots=True)
class Member:
    """The only member of a group, at its coordinator."""

    coordinator: int
    member_id: str
    generation: int


class Refused(Exception):
    """Nothing was written to the group, for certain; has the answer that gives the reason."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.error)
        self.answer = answer


def _write_group(
    client: BrokerClient, group_id: str, asked: Asked, known: Mapping[Key, Stored], deadline: Deadline
) -> dict[Place, Answer]:
    """Try again what may not have been written. A new generation has begun then, so no former commit is still to come:
    the offset that is read reports whether it was made.
    """
    answers, left, attempt, own = dict[Place, Answer](), dict(asked), 0, set[str]()
    stored = KafkaWriter(client)
    while True:
        try:
            with membership(client, group_id, stored, left, own) as member:
                current = _offsets(stored, group_id)
                judged = {
                    place: _unwritten(answers.get(place), current.get(place, NOTHING), known[group_id, *place], it)
                    for place, it in left.items()
                }
                answers |= {place: answer for place, answer in judged.items() if answer is not None}
                left = {place: it for place, it in left.items() if judged[place] is None}
                _take_all(answers, _commit(client, group_id, member, left))
                left = {place: it for place, it in left.items() if is_passing(answers[place])}
        except Refused as refused:
            _take_all(answers, dict.fromkeys(left, refused.answer))
            return answers
        except ConnectError as error:  # Nothing was sent that writes: a commit has its own answer for this.
            _take_all(answers, dict.fromkeys(left, Answer(str(error))))
        if not left or not deadline.allows(attempt):
            return answers
        client.run(client.pause, attempt)
        attempt += 1


def _unwritten(before: Answer | None, now: Stored, known: Stored, wanted: Stored) -> Answer | None:
    """The answer for an offset that is not written any more; None: write it. ``before``: of the last attempt."""
    if before is not None and not before.is_certain and now.offset == wanted.offset:
        return ACCEPTED
    return None if now == known else _moved(now)


def _take_all(answers: dict[Place, Answer], found: Mapping[Place, Answer]) -> None:
    for place, answer in found.items():
        take(answers, place, answer)


@contextmanager
def membership(
    client: BrokerClient, group_id: str, stored: KafkaWriter, asked: Collection[Place], own: set[str]
) -> Iterator[Member]:
    """Be the group's only member.

    ``own``: the member ids that this writer had in the group before; its new one is added. A member whose departure
    was not answered stays until its session ends.

    Raises:
        Refused: the group has members, or is of the consumer protocol, or the coordinator refuses this member.
        ConnectError: the coordinator is not there now, or a former member of this writer still is.
    """
    coordinators = client.run(client.find_coordinators, [group_id], Deadline(_ANSWER_S))
    if group_id not in coordinators:
        raise ConnectError(f"group {group_id!r} has no coordinator at the moment")
    coordinator = coordinators[group_id]

    def send(request: Any, seconds: float = _ANSWER_S) -> Any:
        return client.run(client.send_within, request, coordinator, seconds)

    described = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=False, max_version=5)
    (group,) = send(described).groups
    _refuse_unless_accepted(group.error_code)
    _refuse_members({each.member_id for each in group.members}, own)
    _refuse_consumer_protocol(client.run(_consumer_group_code, client, group_id, coordinator))
    topics = sorted({topic for topic, _ in {*_offsets(stored, group_id), *asked}})
    member_id = ""
    try:
        joined = send(requests.join(group_id, member_id, topics, SESSION_S), _JOIN_S)
        if joined.error_code == _MEMBER_ID_REQUIRED:
            member_id = joined.member_id
            own.add(member_id)
            joined = send(requests.join(group_id, member_id, topics, SESSION_S), _JOIN_S)
        _refuse_unless_accepted(joined.error_code)
        member_id = joined.member_id
        own.add(member_id)
        if joined.leader != member_id or len(joined.members) != 1:
            raise Refused(_JOINED)
        _refuse_unless_accepted(send(requests.sync(group_id, joined.generation_id, member_id)).error_code)
        yield Member(coordinator, member_id, joined.generation_id)
    finally:
        if member_id:
            with suppress(ConnectError):  # The coordinator removes it when its session ends.
                send(requests.leave(group_id, member_id))


def _refuse_members(present: Set[str], own: Set[str]) -> None:
    if present - own:
        raise Refused(_JOINED)
    if present:
        raise ConnectError("the coordinator still has offramp's former member of the group")


async def _consumer_group_code(client: BrokerClient, group_id: str, coordinator: int) -> int:
    """The error code of ConsumerGroupDescribe; 0: the group is of the consumer protocol.

    DescribeGroups has the same answer for such a group as for one that does not exist, and a join would convert it.
    """
    try:
        request = consumer_group_describe.describe_request([group_id])
        (group,) = (await client.send_within(request, coordinator, _ANSWER_S)).groups
    except kafka_errors.IncompatibleBrokerVersion:  # Brokers without the consumer protocol.
        return _UNSUPPORTED_VERSION
    return int(group.error_code)


def _refuse_consumer_protocol(code: int) -> None:
    if code == 0:
        raise Refused(_CONVERTED)
    if code not in (_UNSUPPORTED_VERSION, _GROUP_ID_NOT_FOUND):
        _refuse_unless_accepted(code)


def _refuse_unless_accepted(code: int) -> None:
    if code in RETRIABLE_CODES:
        raise ConnectError(RETRIABLE_CODES[code])
    if code:
        raise Refused(_answer(code))


def _answer(code: int) -> Answer:
    """Return the outcome of a member's commit; ``answer_of`` has the meanings for a commit from outside."""
    return _REFUSALS.get(code) or answer_of(code)


def _offsets(stored: KafkaWriter, group_id: str) -> Asked:
    found = stored.read_groups([group_id])[group_id]
    if isinstance(found, str):
        raise Refused(Answer(found))
    return found


def _commit(client: BrokerClient, group_id: str, member: Member, asked: Asked) -> dict[Place, Answer]:
    """An unanswered commit is not sent again in this generation: the coordinator may have it."""
    answers, left = dict.fromkeys(asked, UNANSWERED), list(batches(group_id, asked)) if asked else []
    while left:
        part = left.pop()
        request = requests.commit_of(group_id, part, member.generation, member.member_id)
        try:
            response = client.run(client.send_within, request, member.coordinator, _ANSWER_S)
        except ConnectError:
            continue
        codes = dict(requests.commit_codes(part)(response))
        if len(part) > 1 and set(codes.values()) in TOO_LARGE:
            places = list(part)
            half = len(places) // 2
            left += [{place: part[place] for place in each} for each in (places[:half], places[half:])]
        else:
            answers |= {place: _answer(code) for place, code in codes.items()}
    return answers


def _moved(now: Stored) -> Answer:
    found = now.error or ("there is no offset now" if now.offset is None else f"the offset is {now.offset} now")
    return Answer(f"another client committed before the group was joined: {found}")
