"""What the writer of offsets does while coordinators come late: no server can be made to take just that long."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kit.migrate.offsets.kafka import KafkaWriter
from kit.migrate.offsets.moves import Stored
from kit.read.broker_client import backoff_s

DEADLINE_S = 0.15
SLOW_S = 0.2
"""One request takes longer than the whole deadline."""


class SlowBroker:
    """One broker, whose group ``late`` has a coordinator from the lookup number ``ready`` on."""

    def __init__(self, ready: int) -> None:
        self.ready, self.lookups = ready, 0

    def run(self, coroutine: Any, *arguments: Any) -> Any:
        return asyncio.run(coroutine(*arguments))

    async def gather(self, coroutines: Any) -> list[Any]:
        return [await each() for each in coroutines]

    async def pause(self, attempt: int) -> None:
        await asyncio.sleep(backoff_s(attempt))

    async def find_coordinators(self, group_ids: list[str], deadline: Any) -> dict[str, int]:
        self.lookups += 1
        return {each: 1 for each in group_ids if each != "late" or self.lookups >= self.ready}

    def supports(self, request: Any, version: int) -> bool:
        return True

    async def send(self, request: Any, broker_id: int) -> Any:
        await asyncio.sleep(SLOW_S)
        if hasattr(request, "groups") and request.groups:
            groups = [SimpleNamespace(group_id=each.group_id, error_code=0, topics=[]) for each in request.groups]
            return SimpleNamespace(groups=groups)
        partition = SimpleNamespace(partition_index=0, error_code=0)
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[partition])])


@pytest.fixture
def wanted():
    return {(group_id, "t", 0): Stored(7) for group_id in ("early", "late")}


def test_a_write_that_gets_on_asks_again_for_a_coordinator_after_its_deadline(wanted):
    answers = KafkaWriter(SlowBroker(ready=2), DEADLINE_S).write(wanted, {})
    assert {key[0]: answer.error for key, answer in answers.items()} == {"early": None, "late": None}


def test_a_read_that_gets_on_asks_again_for_a_coordinator_after_its_deadline(wanted):
    stored = KafkaWriter(SlowBroker(ready=2), DEADLINE_S).read(wanted)
    assert {key[0]: each.error for key, each in stored.items()} == {"early": None, "late": None}


def test_a_coordinator_that_never_comes_is_told_after_the_deadline(wanted):
    broker = SlowBroker(ready=1000)
    answers = KafkaWriter(broker, DEADLINE_S).write(wanted, {})
    assert answers["late", "t", 0].error == "the group's coordinator was not found or did not answer"
    assert 2 <= broker.lookups <= 4
