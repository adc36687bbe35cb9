"""Thousands of groups of offsets alone, made by commits that are sent side by side."""

from __future__ import annotations

from functools import partial

from kafka.protocol.consumer import OffsetCommitRequest

from kit.clients.broker_client import BrokerClient, Deadline


def commit_groups(client: BrokerClient, group_ids: list[str], topic: str, partitions: int) -> None:
    """Commit offset 0 of each partition in every group; the cluster has one broker."""
    client.run(_commit_all, client, group_ids, topic, partitions)


async def _commit_all(client: BrokerClient, group_ids: list[str], topic: str, partitions: int) -> None:
    deadline = Deadline(120.0)
    (broker_id,) = client.broker_ids()
    await client.gather([partial(_commit, client, broker_id, each, topic, partitions, deadline) for each in group_ids])


async def _commit(
    client: BrokerClient, broker_id: int, group_id: str, topic: str, partitions: int, deadline: Deadline
) -> None:
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = of_topic.OffsetCommitRequestPartition
    rows = [of_partition(partition_index=each, committed_offset=0) for each in range(partitions)]
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[of_topic(name=topic, partitions=rows)],
        min_version=2,
        max_version=8,
    )
    attempt = 0
    while True:
        answer = await client.ask(request, broker_id, deadline)
        codes = {each.error_code for row in answer.topics for each in row.partitions}
        if codes == {0}:
            return
        assert codes <= {0, 14, 15, 16}, codes
        assert deadline.allows(attempt), codes
        await client.pause(attempt)
        attempt += 1
