"""OffsetFetch: the committed offsets of groups, as requests and answers. No I/O.

``only_stable`` (KIP-447; OffsetFetch ≥ 7, Kafka ≥ 2.5): a partition for which a transaction that is still open has
sent an offset answers UNSTABLE_OFFSET_COMMIT. A coordinator that is asked for all partitions of a group goes through
its committed offsets, so it shows that only of partitions that have one; asked by name it shows it of every partition
(GroupMetadataManager.getOffsets, OffsetMetadataManager.fetchOffsets). Brokers before 2.5 never report it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from kafka.protocol.consumer import OffsetFetchRequest

from kit.clients.broker_client import BrokerClient, describe_code, describe_refusal

MULTI_GROUP_VERSION = 8
"""Hundreds of groups in one request (KIP-709, Kafka ≥ 3.0)."""
_STABLE_VERSION = 7
_UNSTABLE_OFFSET_COMMIT, _UNSUPPORTED_VERSION = 88, 35

Partitions: TypeAlias = Collection[tuple[str, int]] | None
"""Topics with partitions; None: all for which the group has a committed offset."""


def takes_many(client: BrokerClient) -> bool:
    """Return whether the brokers take several groups in one request."""
    return client.supports(OffsetFetchRequest, MULTI_GROUP_VERSION)


def tells_unstable(client: BrokerClient) -> bool:
    """Return whether the brokers report offsets that an open transaction has sent."""
    return client.supports(OffsetFetchRequest, _STABLE_VERSION)


def fetch_many(groups: Mapping[str, Partitions], only_stable: bool) -> Any:
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup
    asked = [
        of_group(group_id=group_id, topics=_topics(partitions, of_group.OffsetFetchRequestTopics))
        for group_id, partitions in groups.items()
    ]
    version = MULTI_GROUP_VERSION
    return OffsetFetchRequest(groups=asked, require_stable=only_stable, min_version=version, max_version=version)


def fetch_one(group_id: str, partitions: Partitions, only_stable: bool) -> Any:
    topics = _topics(partitions, OffsetFetchRequest.OffsetFetchRequestTopic)
    return OffsetFetchRequest(
        group_id=group_id,
        topics=topics,
        require_stable=only_stable,
        min_version=2,
        max_version=MULTI_GROUP_VERSION - 1,
    )


def answers(asked: Collection[str], response: Any) -> Iterator[tuple[str, int, Any]]:
    """Each group that is answered, with its error code and its topics.

    A group with an unstable offset has that error as a whole: what is read of it would be true for a moment only.
    """
    groups = [(each.group_id, each) for each in response.groups] if response.groups else [(*asked, response)]
    for group_id, answer in groups:
        codes = {each.error_code for topic in answer.topics or () for each in topic.partitions}
        unstable = _UNSTABLE_OFFSET_COMMIT if _UNSTABLE_OFFSET_COMMIT in codes else 0
        yield group_id, answer.error_code or unstable, answer.topics


def describe(code: int) -> str:
    """The error as a sentence's part."""
    if code == _UNSTABLE_OFFSET_COMMIT:
        return f"a transaction that is still open has sent offsets for it: {describe_code(code)}"
    if code == _UNSUPPORTED_VERSION:
        features = "kafka-features.sh --bootstrap-server ADDRESS describe"
        return (
            "the brokers do not serve this group's protocol, because a feature level switches it off (see "
            f"{features}): {describe_code(code)}"
        )
    return describe_refusal(code, "DESCRIBE")


def _topics(partitions: Partitions, topic_type: Any) -> list[Any] | None:
    if partitions is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [topic_type(name=name, partition_indexes=numbers) for name, numbers in by_topic.items()]
