"""Offsets of a group in Kafka, written by its only member: what was read is what is overwritten.

A commit from outside (``kit.moves.offsets.kafka``) is accepted while the group has no member, whatever the offset is.
Who assigns partitions manually and commits is no member either, so both may write at once. A member's commit has its
generation: from the join to the departure the coordinator accepts no other commit without one
(``ClassicGroup.validateOffsetCommit``). The member subscribes to every topic that the group has offsets of, because
a group in use keeps old offsets of those topics alone, and assigns itself nothing.

A broker delays the first member of a group (``group.initial.rebalance.delay.ms``, three seconds by default), and a
connection waits meanwhile: several connections take a group each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest

from kit.clients.broker_client import DEADLINE_S, RETRIABLE_CODES, BrokerClient, Deadline
from kit.clients.cluster import Cluster, connect_kafka
from kit.errors import ConnectError
from kit.moves.offsets import requests
from kit.moves.offsets.kafka import TOO_LARGE, UNANSWERED, Answer, KafkaWriter, answer_of, batches
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.requests import Asked
from kit.moves.offsets.selection import Key, Place

CONNECTIONS = 8
SESSION_S = 10.0
"""Seconds after which the coordinator removes the member of a process that died."""
_JOIN_S, _ANSWER_S = 30.0, 10.0
_REBALANCE, _MEMBER_ID_REQUIRED = 27, 79
_JOINED = Answer("a member joined the group meanwhile: stop its members")


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
    """Nothing was written to the group, for certain; has the answer that says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.error)
        self.answer = answer


def _write_group(
    client: BrokerClient, group_id: str, asked: Asked, known: Mapping[Key, Stored], deadline: Deadline
) -> dict[Place, Answer]:
    attempt, stored = 0, KafkaWriter(client)
    while True:
        try:
            with membership(client, group_id, stored, asked) as member:
                current = _offsets(stored, group_id)
                moved = {
                    place: now for place in asked if (now := current.get(place, NOTHING)) != known[group_id, *place]
                }
                fresh = {place: it for place, it in asked.items() if place not in moved}
                answers = _commit(client, group_id, member, fresh)
                return answers | {place: _moved(now) for place, now in moved.items()}
        except Refused as refused:
            return dict.fromkeys(asked, refused.answer)
        except ConnectError as error:  # Nothing was sent that writes: a commit has its own answer for this.
            if not deadline.allows(attempt):
                return dict.fromkeys(asked, Answer(str(error)))
            client.run(client.pause, attempt)
            attempt += 1


@contextmanager
def membership(client: BrokerClient, group_id: str, stored: KafkaWriter, asked: Collection[Place]) -> Iterator[Member]:
    """Be the group's only member.

    Raises:
        Refused: the group has members, or the coordinator refuses this one.
        ConnectError: the coordinator is not there now.
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
    if group.members:
        raise Refused(_JOINED)
    topics = sorted({topic for topic, _ in {*_offsets(stored, group_id), *asked}})
    member_id = ""
    try:
        joined = send(requests.join(group_id, member_id, topics, SESSION_S), _JOIN_S)
        if joined.error_code == _MEMBER_ID_REQUIRED:
            member_id = joined.member_id
            joined = send(requests.join(group_id, member_id, topics, SESSION_S), _JOIN_S)
        _refuse_unless_accepted(joined.error_code)
        member_id = joined.member_id
        if joined.leader != member_id or len(joined.members) != 1:
            raise Refused(_JOINED)
        _refuse_unless_accepted(send(requests.sync(group_id, joined.generation_id, member_id)).error_code)
        yield Member(coordinator, member_id, joined.generation_id)
    finally:
        if member_id:
            with suppress(ConnectError):  # The coordinator removes it when its session ends.
                send(requests.leave(group_id, member_id))


def _refuse_unless_accepted(code: int) -> None:
    if code in RETRIABLE_CODES:
        raise ConnectError(RETRIABLE_CODES[code])
    if code == _REBALANCE:
        raise Refused(_JOINED)
    if code:
        raise Refused(answer_of(code))


def _offsets(stored: KafkaWriter, group_id: str) -> Asked:
    found = stored.read_groups([group_id])[group_id]
    if isinstance(found, str):
        raise Refused(Answer(found))
    return found


def _commit(client: BrokerClient, group_id: str, member: Member, asked: Asked) -> dict[Place, Answer]:
    """An unanswered commit is not sent again: the offset that is read back says whether it was written."""
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
            answers |= {place: _JOINED if code == _REBALANCE else answer_of(code) for place, code in codes.items()}
    return answers


def _moved(now: Stored) -> Answer:
    found = now.error or ("there is no offset now" if now.offset is None else f"the offset is {now.offset} now")
    return Answer(f"another client committed before the group was joined: {found}")
