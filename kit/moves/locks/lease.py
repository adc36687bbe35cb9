"""One lock in Kafka: the leadership of a classic group that no consumer joins, on a connection of its own.

The group has a protocol type of its own, so tools that list consumers leave it out, and no consumer can join it. Its
leader is the holder. Each confirmation is an offset commit of that member and generation: it goes through the log of
the coordinator with acks=all, so a coordinator that was deposed can't answer it. A heartbeat it could answer. The
commit's metadata is the mark that outlives the lock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from kit.clients.broker_client import RETRIABLE_CODES, RETRIABLE_FAILURES, BrokerClient, Deadline, describe_code
from kit.clients.brokers import metadata_of
from kit.errors import ConnectError, LockLost, OfframpError, RunError, TargetBusy
from kit.groups.read.coordinator import LOCK_GROUPS
from kit.moves.locks import lease_requests as requests
from kit.moves.locks.mark import Mark, parse_mark
from kit.text.java_hash import OFFSETS_TOPIC, offsets_partition

TOPIC = LOCK_GROUPS.rstrip(".")
"""The topic of the marks' offsets. It stays empty, so every tool shows a lag of 0."""
PROTOCOL_TYPE = "offramp"
SESSION_S = 10.0
"""Seconds after which a holder that died has lost the lock (``group.min.session.timeout.ms`` is 6 by default)."""
_HEARTBEAT_S, _ANSWER_S = 2.0, 5.0
_JOIN_S = 2 * SESSION_S + _ANSWER_S
"""The longest wait for an answer to JoinGroup: brokers delay the first join, and each rebalance."""
UNKNOWN_TOPIC, _ILLEGAL_GENERATION, _UNKNOWN_MEMBER, _REBALANCE, _MEMBER_ID_REQUIRED = 3, 22, 25, 27, 79
_NO_GROUP = 69
_NOT_OURS, _SESSION_REFUSED, _GROUP_FULL, _NO_RIGHT_TO_TOPIC, _NO_RIGHT_TO_GROUP = 23, 26, 81, 29, 30


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a lock's group."""

    member_id: str
    client_id: str
    host: str
    mark: Mark | None


async def described(client: BrokerClient, group_id: str, deadline: Deadline) -> tuple[str, list[Member]]:
    """Return the protocol type of a group, empty if there is none, and its members.

    Raises:
        ConnectError: its coordinator does not answer.
        RunError: it refused.
    """
    attempt = 0
    while True:
        coordinator, code = await _coordinator(client, group_id, deadline)
        if coordinator is not None:
            request = DescribeGroupsRequest(groups=[group_id], include_authorized_operations=False, max_version=5)
            (group,) = (await client.ask(request, coordinator, deadline)).groups
            code = group.error_code
            if code in (0, _NO_GROUP):
                return group.protocol_type or "", [_member(each) for each in group.members]
        if code not in RETRIABLE_CODES:
            raise _refusal(group_id, code)
        if not deadline.allows(attempt):
            raise ConnectError(f"the coordinator of {group_id} does not answer: {describe_code(code)}")
        await client.pause(attempt)
        attempt += 1


async def _coordinator(client: BrokerClient, group_id: str, deadline: Deadline) -> tuple[int | None, int]:
    """The id of a group's coordinator, and the error code; None where there is an error."""
    answer = await client.ask(FindCoordinatorRequest(key=group_id, key_type=0, max_version=3), None, deadline)
    return (None if answer.error_code else answer.node_id), answer.error_code


class Lease:
    """The membership of one lock's group. ``target`` is what errors name; ``mark`` is this run's.

    ``client`` is the lease's own, and closed with it: a join that waits would hold up every other request.

    A heartbeat goes out every two seconds on the client's own thread for as long as the lease is held.
    """

    def __init__(self, client: BrokerClient, group_id: str, target: str, mark: Mark) -> None:
        self.group_id, self._target, self._mark, self._client = group_id, target, mark, client
        self._coordinator: int | None = None
        self._member_id, self._generation = "", -1
        self._lost: LockLost | None = None
        self._rejoining: Any = None
        self._is_held = False

    def take(self) -> None:
        """Become the only member of the group, its leader, and leave the mark.

        Raises:
            TargetBusy: another run has the lock; which, of whom, on which host, since when.
            ConnectError: the coordinator does not answer, or can't write.
            RunError: it refused: a right is missing, or the group is not offramp's.
        """
        self._client.run(self._take)

    def confirm(self, changed_by: str | None = None) -> None:
        """Commit the mark once more, as the member that this is; ``changed_by`` from now on.

        When it returns, the request was sent less than half a session ago.

        Raises:
            LockLost: the coordinator refused it, or did not confirm it within a session.
        """
        if changed_by is not None:
            self._mark = replace(self._mark, changed_by=changed_by)
        self._client.run(self._confirm)

    def close(self) -> None:
        """Leave the group, if this is its member still, and close the connection."""
        try:
            with suppress(OfframpError):
                self._client.run(self._leave)
        finally:
            self._client.close()

    async def _take(self) -> None:
        protocol_type, members = await self._found()
        if members:
            raise self._busy(members[0])
        if protocol_type not in ("", PROTOCOL_TYPE):
            raise _refusal(self.group_id, _NOT_OURS)
        await self._join(time.monotonic() + _JOIN_S, is_first=True)
        before = parse_mark(await self._committed())
        self._mark = replace(self._mark, changed_by=before.changed_by if before is not None else None)
        self._is_held = True
        try:
            await self._confirm()
        except LockLost as error:
            if isinstance(error.__cause__, RunError):  # A right is missing.
                raise error.__cause__ from None
            raise ConnectError(f"the lock of {self._target} can't be taken: {error}") from error
        if parse_mark(await self._committed()) != self._mark:
            raise ConnectError(f"the mark of the lock of {self._target} was written, but another value was read back")
        self._client.start(self._beat)

    async def _found(self) -> tuple[str, list[Member]]:
        return await described(self._client, self.group_id, Deadline(SESSION_S))

    async def _join(self, until: float, is_first: bool = False) -> None:
        """Join as the leader; the first time alone as well: another newcomer leaves."""
        while True:
            answer = await self._ask(self._joining(), _JOIN_S, until)
            if answer.error_code == _MEMBER_ID_REQUIRED or (is_first and answer.error_code == _UNKNOWN_MEMBER):
                self._member_id = answer.member_id if answer.error_code == _MEMBER_ID_REQUIRED else ""
                continue
            if answer.error_code == _GROUP_FULL or (not answer.error_code and answer.leader != self._member_id):
                await self._leave()
                _, others = await described(self._client, self.group_id, Deadline(_ANSWER_S))
                raise self._busy(others[0] if others else None)
            if answer.error_code:
                raise _refusal(self.group_id, answer.error_code)
            if not is_first or len(answer.members) == 1:
                code = (await self._ask(self._syncing(answer.generation_id), _ANSWER_S, until)).error_code
                if not code:
                    self._generation = answer.generation_id
                    return
                if code not in (_REBALANCE, _UNKNOWN_MEMBER):
                    raise _refusal(self.group_id, code)
            elif time.monotonic() > until:
                raise self._busy(None)
            else:
                await self._client.pause(1)

    async def _confirm(self) -> None:
        until, why = time.monotonic() + SESSION_S, ""
        while True:
            if self._lost is not None:
                raise self._lost
            sent, code, generation = time.monotonic(), 0, self._generation
            try:
                code = _commit_code(await self._send(self._committing(), _ANSWER_S))
                why = describe_code(code)
            except RETRIABLE_FAILURES as error:
                code, why = -1, str(error)
            if code == 0 and time.monotonic() - sent < SESSION_S / 2:
                return
            if code == _REBALANCE or self._is_overtaken(code, generation):
                await self._rejoin(generation)
            elif code > 0 and code not in RETRIABLE_CODES and code != UNKNOWN_TOPIC:
                lacks_right = code in (_NO_RIGHT_TO_TOPIC, _NO_RIGHT_TO_GROUP)
                lost = self._loses(f"the coordinator refused the commit: {_described(code)}")
                raise lost from _refusal(self.group_id, code) if lacks_right else None
            elif time.monotonic() > until:
                raise LockLost(f"{self._named} can't be confirmed within {SESSION_S:g} s: {why}{await self._cause()}")
            else:
                await self._found_again()

    async def _cause(self) -> str:
        """Return Metadata's answer about the partition that holds the group, if it explains the silence."""
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in (OFFSETS_TOPIC, TOPIC)]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        metadata = None
        # The coordinator's connection waits for the answer to the commit.
        for broker_id in sorted(self._client.broker_ids(), key=lambda each: each == self._coordinator):
            with suppress(*RETRIABLE_FAILURES, OfframpError):
                metadata = metadata_of(await self._client.send_within(request, broker_id, _ANSWER_S))
                break
        if metadata is None:
            return ""
        logs = {each.partition: each for each in metadata.topic_partitions if each.topic == OFFSETS_TOPIC}
        if not any(each.topic == TOPIC and each.error is None for each in metadata.topic_partitions):
            return f"; topic {TOPIC} does not exist"
        log = logs.get(offsets_partition(self.group_id, len(logs))) if logs else None
        if log is None or len(log.isr) == len(log.replicas):
            return ""
        return (
            f"; {OFFSETS_TOPIC}-{log.partition} has {len(log.isr)} of {len(log.replicas)} replicas in sync, which may"
            " be fewer than its min.insync.replicas: start the brokers that are down"
        )

    async def _beat(self) -> None:
        while self._is_held and self._lost is None:
            await self._client.sleep(_HEARTBEAT_S)
            if not self._is_held:
                return
            generation = self._generation
            try:
                code = (
                    await self._send(requests.heartbeat(self.group_id, self._generation, self._member_id), _ANSWER_S)
                ).error_code
                if code == _REBALANCE or self._is_overtaken(code, generation):
                    await self._rejoin(generation)
                elif code in RETRIABLE_CODES:
                    await self._found_again()
                elif code:
                    self._loses(f"the coordinator refused a heartbeat: {_described(code)}")
            except RETRIABLE_FAILURES:
                await self._found_again()
            except OfframpError:
                return  # The next confirmation reports it.

    def _is_overtaken(self, code: int, generation: int) -> bool:
        """Return whether the other of heartbeat and confirmation has rejoined, or does, since a request was made."""
        return code == _ILLEGAL_GENERATION and (self._rejoining is not None or self._generation != generation)

    async def _rejoin(self, generation: int) -> None:
        """Answer the rebalance that ended this generation; a heartbeat and a confirmation that meet it do it once."""
        if self._rejoining is None:
            if self._generation != generation:
                return
            self._rejoining = self._client.start(self._rejoined)
        await self._rejoining

    async def _rejoined(self) -> None:
        try:
            await self._join(time.monotonic() + _JOIN_S)
        except OfframpError as error:
            raise self._loses(str(error)) from error
        finally:
            self._rejoining = None

    def _loses(self, why: str) -> LockLost:
        self._lost = LockLost(f"{self._named} is lost: {why}")
        return self._lost

    @property
    def _named(self) -> str:
        return f"the lock of {self._target} (group {self.group_id})"

    async def _leave(self) -> None:
        self._is_held, was_held = False, self._is_held
        if not self._member_id:
            return
        with suppress(*RETRIABLE_FAILURES):
            if was_held and self._lost is None:
                self._mark = replace(self._mark, is_held=False)
                await self._send(self._committing(), _ANSWER_S)
            await self._send(requests.leave(self.group_id, self._member_id), _ANSWER_S)

    async def _committed(self) -> str | None:
        """The metadata of the last commit."""
        until = time.monotonic() + SESSION_S
        answer = await self._ask(requests.fetch(self.group_id, TOPIC), _ANSWER_S, until)
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code:
                    raise _refusal(self.group_id, each.error_code)
                return str(each.metadata or "")
        return None

    async def _ask(self, request: Any, answer_s: float, until: float) -> Any:
        """Ask the coordinator until it is there.

        Raises:
            ConnectError: it was not until then.
        """
        while True:
            try:
                answer = await self._send(request, answer_s)
                if answer.error_code not in RETRIABLE_CODES:
                    return answer
                why = describe_code(answer.error_code)
            except RETRIABLE_FAILURES as error:
                why = str(error)
            if time.monotonic() > until:
                raise ConnectError(f"the coordinator of {self.group_id} does not answer: {why}{await self._cause()}")
            await self._found_again()

    async def _send(self, request: Any, answer_s: float) -> Any:
        if self._coordinator is None:
            self._coordinator, _ = await _coordinator(self._client, self.group_id, Deadline(_ANSWER_S))
        return await self._client.send_within(request, self._coordinator, answer_s)

    async def _found_again(self) -> None:
        await self._client.pause(1)
        self._coordinator = None
        with suppress(*RETRIABLE_FAILURES):
            await self._client.refresh_metadata()

    def _joining(self) -> Any:
        session_ms, text = int(SESSION_S * 1000), self._mark.to_text().encode()
        return requests.join(self.group_id, self._member_id, PROTOCOL_TYPE, text, session_ms)

    def _syncing(self, generation: int) -> Any:
        return requests.sync(self.group_id, generation, self._member_id)

    def _committing(self) -> Any:
        return requests.commit(self.group_id, self._generation, self._member_id, TOPIC, self._mark.to_text())

    def _busy(self, holder: Member | None) -> TargetBusy:
        return TargetBusy(
            f"{self._target} is locked by a run: {describe_holder(holder)}. Wait for that run, or stop it: offramp"
            " stop RUN. If"
            f" its process has died, the lock ends by itself {SESSION_S:g} s later"
        )


def describe_holder(holder: Member | None) -> str:
    """Return who holds a lock, as far as its group reports it."""
    if holder is None:
        return "another run is taking the lock"
    return str(holder.mark) if holder.mark is not None else f"client {holder.client_id!r} on {holder.host}"


async def remove_member(client: BrokerClient, group_id: str, member_id: str, deadline: Deadline) -> None:
    """Remove another member from a lock's group; one that is gone is no error.

    Raises:
        ConnectError: the coordinator does not answer.
        RunError: it refuses.
    """
    coordinator, code = await _coordinator(client, group_id, deadline)
    if coordinator is None:
        raise _refusal(group_id, code)
    answer = await client.ask(requests.leave(group_id, member_id), coordinator, deadline)
    codes = {answer.error_code, *(each.error_code for each in answer.members)} - {0, _UNKNOWN_MEMBER}
    if codes:
        raise _refusal(group_id, codes.pop())


def _member(each: Any) -> Member:
    text = (each.member_metadata or b"").decode(errors="replace")
    return Member(each.member_id, each.client_id, each.client_host.removeprefix("/"), parse_mark(text))


def _commit_code(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def _described(code: int) -> str:
    """The error code of a refusal, with what to do where that is known."""
    grant = "kafka-acls.sh --bootstrap-server ADDRESS --add --allow-principal User:OFFRAMP --operation Read"
    why = {
        _NOT_OURS: "another application uses a group of this name, or one of another protocol type",
        _SESSION_REFUSED: f"group.min.session.timeout.ms of the brokers is above {SESSION_S * 1000:.0f}, or"
        " group.max.session.timeout.ms below it: set both, and restart the brokers",
        _NO_RIGHT_TO_GROUP: f"grant the right: {grant} --group {LOCK_GROUPS} --resource-pattern-type prefixed",
        _NO_RIGHT_TO_TOPIC: f"grant the right: {grant} --topic {TOPIC}",
    }.get(code)
    return describe_code(code) if why is None else f"{describe_code(code)}: {why}"


def _refusal(group_id: str, code: int) -> RunError:
    return RunError(f"group {group_id}, offramp's lock, was refused with {_described(code)}")
