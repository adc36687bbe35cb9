"""One question to every coordinator about its groups, hundreds per request, with retries until a deadline."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from kit.clients.broker_client import (
    RETRIABLE_CODES,
    RETRIABLE_FAILURES,
    BrokerClient,
    Deadline,
)
from kit.groups.read import offset_fetch

GROUPS_PER_REQUEST = 500
_REQUESTS_IN_FLIGHT = 2


async def sweep(
    client: BrokerClient,
    coordinators: dict[str, int],
    request: Callable[[Sequence[str]], Any],
    answers: Callable[[Any], Iterable[tuple[str, int, Any]]],
    take: Callable[[str, Any], None],
    deadline: Deadline,
) -> dict[str, str]:
    """Ask every coordinator (broker id by group) about its groups, hundreds per request.

    ``take`` gets each group's answer. Returns the groups that failed, with the error.
    """
    pending, attempt = dict(coordinators), 0
    failed: dict[str, str] = {}
    while True:
        again: dict[str, str] = {}
        groups_of: dict[int, list[str]] = defaultdict(list)
        for group_id, broker_id in pending.items():
            groups_of[broker_id].append(group_id)
        ask = partial(_sweep_broker, client, request, answers, take, again, failed)
        await client.gather([partial(ask, broker_id, group_ids) for broker_id, group_ids in groups_of.items()])
        if len(again) < len(pending):
            deadline.renew()
        if not again or not deadline.allows(attempt):
            return failed | again
        await client.pause(attempt)
        attempt += 1
        pending = {group_id: pending[group_id] for group_id in again}
        await client.refresh_metadata()
        pending |= await client.find_coordinators(list(again), deadline)


async def _sweep_broker(
    client: BrokerClient,
    request: Callable[[Sequence[str]], Any],
    answers: Callable[[Any], Iterable[tuple[str, int, Any]]],
    take: Callable[[str, Any], None],
    again: dict[str, str],
    failed: dict[str, str],
    broker_id: int,
    group_ids: list[str],
) -> None:
    """One broker's groups; the next request is under way while an answer is decoded."""
    under_way: deque[tuple[Sequence[str], Any]] = deque()
    for chunk in _chunks(group_ids):
        under_way.append((chunk, client.send(request(chunk), broker_id)))
        if len(under_way) == _REQUESTS_IN_FLIGHT:
            await _take_answers(*under_way.popleft(), answers, take, again, failed)
    while under_way:
        await _take_answers(*under_way.popleft(), answers, take, again, failed)


async def _take_answers(
    asked: Sequence[str],
    future: Any,
    answers: Callable[[Any], Iterable[tuple[str, int, Any]]],
    take: Callable[[str, Any], None],
    again: dict[str, str],
    failed: dict[str, str],
) -> None:
    try:
        response = await future
    except RETRIABLE_FAILURES as error:
        again.update(dict.fromkeys(asked, str(error)))
        return
    unanswered = set(asked)
    for group_id, code, answer in answers(response):
        unanswered.discard(group_id)
        if code == 0:
            take(group_id, answer)
        else:
            (again if code in RETRIABLE_CODES else failed)[group_id] = offset_fetch.describe(code)
    failed.update(dict.fromkeys(unanswered, "the coordinator's answer does not contain this group"))


def _chunks(group_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(group_ids), GROUPS_PER_REQUEST):
        yield group_ids[start : start + GROUPS_PER_REQUEST]
