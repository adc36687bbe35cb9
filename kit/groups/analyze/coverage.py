"""Find the partitions that a group is concerned with: the frames that several analyses start from."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import GROUP_PARTITION, ZOOKEEPER


def subscribed_partitions(subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    """Existing partitions of the topics that members of the group subscribe to, in either source.

    Columns: group_id, topic, partition; no row twice.
    """
    topics = subscriptions.select("group_id", "topic").unique()
    return topics.join(topic_partitions.select("topic", "partition"), on="topic", how="inner").select(*GROUP_PARTITION)


def existing_partitions(topic_partitions: FrameT) -> FrameT:
    """Without the one row that represents a topic of which no partition is known (it has no replica)."""
    return topic_partitions.filter(nw.col("replicas").list.len() > 0)


def live_members(members: FrameT) -> FrameT:
    """Without persistent registrations: a live consumer's is ephemeral (``ZookeeperConsumerConnector``). A registration
    whose session is unknown stays."""
    is_persistent = (nw.col("source") == ZOOKEEPER) & (nw.col("session_id") == 0)
    return members.filter(~is_persistent.fill_null(False))


def unreadable_groups(groups: FrameT) -> FrameT:
    """Groups of which at least one source could not be read: what they seem to lack may exist.

    Columns: group_id, group_error (``<source>: <error>``).
    """
    failed = groups.filter(~nw.col("error").is_null())
    reasons = failed.with_columns(group_error=nw.concat_str([nw.col("source"), nw.col("error")], separator=": "))
    return reasons.group_by("group_id").agg(nw.col("group_error").min())
