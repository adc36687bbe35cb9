"""The settings that decide when records are deleted, where brokers refuse or are gone: null, with the reason."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.health.read.retention import fetch_retention

SETTINGS = {
    "cleanup.policy": "delete",
    "remote.storage.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.ms": "3600000",
    "segment.bytes": "1000",
}
CHECK = {"log.retention.check.interval.ms": "300000"}
FORBIDDEN = 31


class FakeClient:
    """Answers as a broker does; ``failing`` is what it refuses, or a broker that is gone."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing

    def run(self, coroutine: Any, *arguments: Any) -> Any:
        return asyncio.run(coroutine(*arguments))

    async def gather(self, coroutines: Any) -> list[Any]:
        return [await each() for each in coroutines]

    async def ask(self, request: Any, broker_id: int | None, deadline: Any) -> Any:
        if self.failing == "broker" and broker_id is not None:
            raise kafka_errors.KafkaConnectionError("gone")
        if isinstance(request, DescribeLogDirsRequest):
            return self._logs()
        if isinstance(request, MetadataRequest):
            return self._leaders()
        (resource,) = request.resources
        known = CHECK if broker_id is not None else SETTINGS
        code = FORBIDDEN if self.failing == "topic" and broker_id is None else 0
        configs = [SimpleNamespace(name=name, value=value) for name, value in known.items()] if not code else []
        found = SimpleNamespace(error_code=code, resource_name=resource.resource_name, configs=configs)
        return SimpleNamespace(results=[found])

    async def refresh_metadata(self) -> None:
        pass

    def _leaders(self) -> Any:
        leads = {"leader_id": -1 if self.failing == "leader" else 1, "leader_epoch": 1}
        partition = SimpleNamespace(partition_index=0, replica_nodes=[1], isr_nodes=[1], **leads)
        return SimpleNamespace(
            brokers=[1], topics=[SimpleNamespace(name="t", is_internal=False, partitions=[partition])]
        )

    def _logs(self) -> Any:
        if self.failing == "sizes":
            return SimpleNamespace(error_code=FORBIDDEN, results=[])
        own, future = (SimpleNamespace(partition_index=0, partition_size=n, is_future_key=n > 7) for n in (7, 9))
        topic = SimpleNamespace(name="t", partitions=[own, future])
        return SimpleNamespace(error_code=0, results=[SimpleNamespace(error_code=0, topics=[topic])])


@pytest.fixture
def row():
    def fetched(failing: str = "") -> Any:
        (found,) = fetch_retention(FakeClient(failing), [("t", 0)])  # type: ignore[arg-type]
        return found

    return fetched


def test_all_is_reported_and_a_log_on_its_way_to_another_disk_is_not_counted(row):
    found = row()
    assert (found.retention_ms, found.retention_bytes, found.segment_ms, found.segment_bytes) == (
        604_800_000, -1, 3_600_000, 1000,
    )  # fmt: skip
    assert (found.cleanup_policy, found.is_tiered, found.check_ms, found.size_bytes) == ("delete", False, 300_000, 7)
    assert found.error is None


@pytest.mark.parametrize(
    ("failing", "unknown", "said"),
    [
        ("topic", "retention_ms", "the settings of the topic can't be read: "),
        ("sizes", "size_bytes", "broker 1 did not report the sizes of its logs: "),
        ("broker", "check_ms", "broker 1 does not answer: "),
        ("leader", "size_bytes", "the partition has no leader, so the size of its log is unknown"),
    ],
)
def test_a_refused_value_is_null_with_the_reason(row, failing, unknown, said):
    found = row(failing)
    assert getattr(found, unknown) is None
    assert found.error.startswith(said)
