"""ListOffsets over librdkafka's admin client, without the delay of a new client."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec


def list_offsets(
    admin: AdminClient,
    wanted: Mapping[TopicPartition, OffsetSpec],
    seconds: float,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, Future[Any]]:
    """One request per leader.

    librdkafka 2.16 closes the connection to the bootstrap address as soon as it knows the broker behind it. It then
    drops a request for leaders that is under way, and sends it again 3 s later. So the cluster is described first.

    Raises:
        KafkaException: no broker answered in time.
    """
    admin.describe_cluster(request_timeout=seconds).result()
    return dict(admin.list_offsets(dict(wanted), isolation_level=isolation, request_timeout=seconds))
