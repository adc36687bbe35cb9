"""A member of a streams group (KIP-1071), of which no Python client has one."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage

from kit.clients.broker_client import BrokerClient, Deadline


class StreamsGroupHeartbeatRequest(ApiMessage, load_json="tests.servers"):
    pass


class StreamsGroupHeartbeatResponse(ApiMessage, load_json="tests.servers"):
    pass


async def heartbeat(client: BrokerClient, group: str, topic: str, member_id: str, epoch: int) -> Any:
    """Join (epoch 0), stay, or leave (-1); → the coordinator's answer."""
    deadline = Deadline(60.0)
    (broker_id,) = (await client.find_coordinators([group], deadline)).values()
    topology = StreamsGroupHeartbeatRequest.Topology
    part = topology.Subtopology(
        subtopology_id="0",
        source_topics=[topic],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=30_000 if epoch == 0 else -1,
        topology=topology(epoch=0, subtopologies=[part]) if epoch == 0 else None,
        active_tasks=[] if epoch == 0 else None,
        standby_tasks=[] if epoch == 0 else None,
        warmup_tasks=[] if epoch == 0 else None,
        process_id="process" if epoch == 0 else None,
        client_tags=[] if epoch == 0 else None,
        min_version=0,
        max_version=0,
    )
    return await client.ask(request, broker_id, deadline)
