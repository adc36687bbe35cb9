"""Committed offsets of many groups, read at their coordinators, which are found again where they move."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from kit.clients.broker_client import (
    DEADLINE_S,
    RETRIABLE_CODES,
    RETRIABLE_FAILURES,
    BrokerClient,
    Deadline,
)
from kit.groups.read import offset_fetch
from kit.groups.read.sweep import GROUPS_PER_REQUEST
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.requests import (
    Asked,
    parse_stored,
)
from kit.moves.offsets.selection import Key, Place

IN_FLIGHT = 4
"""kafka-python refuses a sixth request to one broker; the broker handles them one after another anyway."""
NO_COORDINATOR = "the group's coordinator was not found or did not answer"


class GroupOffsets:
    """Groups, and their committed offsets by topic and partition. Each call retries until ``deadline_s`` pass without
    progress."""

    def __init__(self, client: BrokerClient, deadline_s: float = DEADLINE_S) -> None:
        self._client, self._deadline_s = client, deadline_s
        self._coordinators: dict[str, int] = {}

    def read(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """The committed offsets; NOTHING where there is none, an error where the offset can't be read.

        They are stable, here and in all that this class reads: while a transaction that is open has sent an offset
        for one of the partitions, all of the group's have that error.
        """
        asked, places = list(keys), dict[str, list[Place]]()
        for group_id, topic, partition in sorted(asked):
            places.setdefault(group_id, []).append((topic, partition))
        stored = self._client.run(self.fetch, places, Deadline(self._deadline_s))
        return {key: stored_of(stored[key[0]], key[1:]) for key in asked}

    def read_groups(self, group_ids: Iterable[str]) -> dict[str, Asked | str]:
        """All committed offsets of each group, none for one that is not there; an error where they can't be read."""
        return self._client.run(self.fetch, dict.fromkeys(sorted(set(group_ids))), Deadline(self._deadline_s))

    async def fetch(self, asked: Mapping[str, offset_fetch.Partitions], deadline: Deadline) -> dict[str, Asked | str]:
        """The offsets of each group, or the error of the group; see :meth:`read` and :meth:`read_groups`."""
        fetched: dict[str, Asked | str] = {}
        pending, attempt = list(asked), 0
        while True:
            again: dict[str, str] = {}
            homes = await self.homes(pending, deadline)
            again |= dict.fromkeys(pending, NO_COORDINATOR)
            for group_id in (each for groups in homes.values() for each in groups):
                del again[group_id]
            jobs = [
                partial(self._fetch_from, broker_id, {each: asked[each] for each in groups}, fetched, again)
                for broker_id, groups in homes.items()
            ]
            await self._client.gather(jobs)
            if len(again) < len(pending):
                deadline.renew()
            pending = list(again)
            if not pending or not deadline.allows(attempt):
                return fetched | again
            self.forget(pending)
            await self._client.pause(attempt)
            attempt += 1

    async def _fetch_from(
        self,
        broker_id: int,
        groups: Mapping[str, offset_fetch.Partitions],
        fetched: dict[str, Asked | str],
        again: dict[str, str],
    ) -> None:
        is_batched = offset_fetch.takes_many(self._client)
        under_way: deque[tuple[Sequence[str], Any]] = deque()
        for chunk in chunks(list(groups), GROUPS_PER_REQUEST if is_batched else 1):
            if len(under_way) == IN_FLIGHT:
                await _fetched(*under_way.popleft(), fetched, again)
            if is_batched:
                request = offset_fetch.fetch_many({each: groups[each] for each in chunk}, only_stable=True)
            else:
                request = offset_fetch.fetch_one(chunk[0], groups[chunk[0]], only_stable=True)
            under_way.append((chunk, self._client.send(request, broker_id)))
        while under_way:
            await _fetched(*under_way.popleft(), fetched, again)

    async def homes(self, groups: Collection[str], deadline: Deadline) -> dict[int, list[str]]:
        """Groups by their coordinator; groups without a coordinator at the moment are missing."""
        unknown = [group_id for group_id in groups if group_id not in self._coordinators]
        try:
            for chunk in chunks(unknown, GROUPS_PER_REQUEST):
                self._coordinators |= await self._client.find_coordinators(list(chunk), deadline)
        except RETRIABLE_FAILURES:
            pass  # A later attempt reads the rest, or reports it.
        homes: dict[int, list[str]] = {}
        for group_id in groups:
            if group_id in self._coordinators:
                homes.setdefault(self._coordinators[group_id], []).append(group_id)
        return homes

    def forget(self, groups: Iterable[str]) -> None:
        """Let the coordinators of these groups be found again."""
        for group_id in groups:
            self._coordinators.pop(group_id, None)


def stored_of(group: Asked | str, place: Place) -> Stored:
    return Stored(error=group) if isinstance(group, str) else group.get(place, Stored())


async def _fetched(asked: Sequence[str], future: Any, fetched: dict[str, Asked | str], again: dict[str, str]) -> None:
    try:
        response = await future
    except RETRIABLE_FAILURES as error:
        again.update(dict.fromkeys(asked, f"the group's coordinator does not answer: {error}"))
        return
    fetched |= dict.fromkeys(asked, "the coordinator's answer does not have this group")
    for group_id, code, topics in offset_fetch.answers(asked, response):
        if code in RETRIABLE_CODES:
            del fetched[group_id]
            again[group_id] = offset_fetch.describe(code)
        elif code:
            fetched[group_id] = offset_fetch.describe(code)
        else:
            stored = {(topic.name, it.partition_index): parse_stored(it) for topic in topics for it in topic.partitions}
            fetched[group_id] = {place: it for place, it in stored.items() if it != NOTHING}


def chunks(groups: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(groups), size):
        yield groups[start : start + size]
