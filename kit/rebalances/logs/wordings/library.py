"""Define the lines that clients of other languages print, as people paste them: kafkajs, ruby-kafka, brod, kafka-node,
pykafka.

kafkajs puts the facts beside the text, as keys of JSON.
"""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import (
    BROD,
    KAFKA_NODE,
    KAFKAJS,
    PYKAFKA,
    RUBY_KAFKA,
    rows,
)

KAFKAJS_LINES = rows(
    KAFKAJS,
    """
group_assignment|1.0+|[ConsumerGroup] Consumer has joined the group
group_assignment|1.0+|[Runner] Consumer has joined the group
group_assignment|1.0+|Consumer has joined the group{}"memberAssignment":
rebalancing|1.0+|The group is rebalancing, re-joining{}"groupId":
member_reset|1.0+|The coordinator is not aware of this member, re-joining the group{}"groupId":
join_failed|1.0+|Response JoinGroup(key: {}"error":
sync_failed|1.0+|Response SyncGroup(key: {}"error":
heartbeat_failed|1.0+|Response Heartbeat(key: {}"error":
offsets_failed|1.0+|Response OffsetFetch(key: {}"error":
commit_failed|1.0+|Response OffsetCommit(key: {}"error":
leader_assigning|1.0+|[ConsumerGroup] Chosen as group leader
assignment_computed|1.0+|[ConsumerGroup] Group assignment
context|1.0+|[ConsumerGroup] Received assignment
offset_reset|1.0+|[ConsumerGroup] Offset out of range, resetting
rebalancing|1.0+|[Runner] The group is rebalancing, re-joining
rebalancing|1.0+|[ConsumerGroup] The group is rebalancing, re-joining
member_reset|1.0+|[Runner] The coordinator is not aware of this member, re-joining the group
member_reset|1.0+|[ConsumerGroup] The coordinator is not aware of this member, re-joining the group
join_reason|1.0+|[ConsumerGroup] {}, resync group
commit_failed|1.0+|[Runner] Error while committing offsets
context|1.0+|[Consumer] Starting
context|1.0+|[ConsumerGroup] Consumer group received unsubscribed topics
context|1.0+|[ConsumerGroup] Consumer is not aware of all assigned partitions
context|1.0+|[Runner] consumer not running, exiting
context|1.0+|[Runner] stop consumer group
context|1.0+|[Runner] waiting for consumer to finish
context|1.0+|[Cluster] Tried to find group coordinator
coordinator_failed|1.0+|[Cluster] Group coordinator not available
left|1.0+|[Consumer] Stopped
crashed|1.0+|[Consumer] Crash:
restarting|1.0+|[Consumer] Restarting the consumer
coordinator_found|1.0+|[Cluster] Found group coordinator
coordinator_query|1.0+|[Connection] Request GroupCoordinator(
coordinator_failed|1.0+|[Connection] Response GroupCoordinator({}"error":
context|1.0+|[Connection] Response GroupCoordinator(
join_requested|1.0+|[Connection] Request JoinGroup(
context|1.0+|[Connection] Response JoinGroup({}needs to have a valid member id
join_failed|1.0+|[Connection] Response JoinGroup({}"error":
joined|1.0+|[Connection] Response JoinGroup({}"generationId":
context|1.0+|[Connection] Response JoinGroup(
sync_sent|1.0+|[Connection] Request SyncGroup(
sync_failed|1.0+|[Connection] Response SyncGroup({}"error":
synced|1.0+|[Connection] Response SyncGroup(
heartbeat_sent|1.0+|[Connection] Request Heartbeat(
heartbeat_failed|1.0+|[Connection] Response Heartbeat({}"error":
heartbeat_ok|1.0+|[Connection] Response Heartbeat(
leaving|1.0+|[Connection] Request LeaveGroup(
context|1.0+|[Connection] Response LeaveGroup(
offsets_failed|1.0+|[Connection] Response OffsetFetch({}"error":
context|1.0+|[Connection] Response OffsetFetch(
context|1.0+|[Connection] Request OffsetFetch(
commit_failed|1.0+|[Connection] Response OffsetCommit({}"error":
context|1.0+|[Connection] Response OffsetCommit(
context|1.0+|[Connection] Request OffsetCommit(
""",
)

RUBY_KAFKA_LINES = rows(
    RUBY_KAFKA,
    """
coordinator_query|0.3+|Getting group coordinator for
coordinator_found|0.3+|Connected to coordinator: {} for
context|0.3+|Coordinator for `
context|0.7+|[join_group]
context|0.7+|[find_coordinator]
joining|0.3+|Joining group `
joined|0.3+|Joined group `{}` with member id
assigned|0.3+|Partitions assigned for `
leader_assigning|0.3+|Chosen as leader of group
leaving|0.3+|Leaving group `
rebalancing|0.3+|Group rebalance in progress, re-joining
rebalancing|0.3|Group is rebalancing; rejoining
rebalancing|0.3|Group has transitioned to a new generation; rejoining
join_reason|0.3|Illegal generation {}; rejoining group
member_reset|0.3|Kicked out of group; rejoining
sync_sent|0.3|Synchronizing group
context|0.3|Leader for group `
heartbeat_failed|0.3|Connection error while sending heartbeat; rejoining
commit_failed|0.3+|Failed to commit offsets before re-joining
coordinator_failed|0.3|Failed to get group coordinator info from
context|0.3+|Getting transaction coordinator for
context|0.3+|Retrying to make final offsets commit
heartbeat_sent|0.3+|Sending heartbeat...
heartbeat_failed|0.3+|Error sending heartbeat: Kafka::
coordinator_failed|0.3+|Coordinator not available; retrying
coordinator_failed|0.3+|Failed to get coordinator info from
coordinator_failed|0.3+|Coordinator broker still loading
context|0.3+|Committing offsets
context|0.3+|Failed to fetch from some partitions. Maybe a rebalance has happened?
commit_failed|0.3+|Error committing offsets:
coordinator_failed|0.3+|Failed to find coordinator for group
coordinator_failed|0.3+|Group coordinator not available for group
join_failed|0.3+|Failed to join group; resetting member id
join_failed|0.3+|Connection error while trying to join group
""",
)

KAFKA_NODE_LINES = rows(
    KAFKA_NODE,
    """
join_reason|2.0+|kafka-node:ConsumerGroup Topic/Partitions has changed
leader_assigning|1.0+|kafka-node:ConsumerGroup Assigning Partitions to members
joined|1.0+|kafka-node:ConsumerGroup joinGroupResponse {
coordinator_found|1.0+|kafka-node:ConsumerGroup GroupCoordinator Response:
sync_sent|1.0+|kafka-node:ConsumerGroup SyncGroup Request from
synced|1.0+|kafka-node:ConsumerGroup SyncGroup Response
group_assignment|1.0+|kafka-node:ConsumerGroup {} owns topics:
leaving|1.0+|kafka-node:ConsumerGroup {} leaving group
heartbeat_failed|1.0+|kafka-node:ConsumerGroup {} Heartbeat error:
join_reason|1.0+|kafka-node:ConsumerGroupRecovery tryToRecoverFrom
join_reason|1.0+|kafka-node:ConsumerGroupRecovery RECOVERY from
context|1.0+|kafka-node:ConsumerGroupHeartbeat
context|1.0+|kafka-node:ConsumerGroup trying to reconnect
context|1.0+|kafka-node:ConsumerGroup Using group protocol
context|1.0+|kafka-node:ConsumerGroup loadingMetadata
context|1.0+|kafka-node:ConsumerGroup mapTopicToPartitions
context|2.0+|kafka-node:ConsumerGroup {} is leader scheduled
context|2.0+|kafka-node:ConsumerGroup checking for new topics
context|2.0+|kafka-node:ConsumerGroup no new Topic/Partitions
context|1.0+|kafka-node:ConsumerGroup {} fetchOffset Response:
context|1.0+|kafka-node:ConsumerGroup No saved offsets
context|1.0+|kafka-node:ConsumerGroup Has saved offsets
context|1.0+|kafka-node:ConsumerGroup Connecting
synced|1.0+|kafka-node:ConsumerGroup generationId
context|1.0+|kafka-node:ConsumerGroup startFetch is
context|1.0+|kafka-node:ConsumerGroup {} started heartbeats
joined|1.0+|kafka-node:ConsumerGroup joinGroupResponse
context|1.0+|kafka-node:ConsumerGroup heartbeat yielded
context|1.0+|kafka-node:ConsumerGroup Leave group failed
offset_reset|4.0+|kafka-node:ConsumerGroup replacing {} stale offset of
rebalance_begun|0.2+|kafka-node:HighLevelConsumer HighLevelConsumer {} is attempting to rebalance
rebalance_ended|0.2+|kafka-node:HighLevelConsumer HighLevelConsumer {} rebalance attempt was successful
rebalance_failed|0.2+|kafka-node:HighLevelConsumer HighLevelConsumer {} rebalance attempt failed
context|0.2+|kafka-node:HighLevelConsumer
context|0.2+|kafka-node:zookeeper
""",
)

PYKAFKA_LINES = rows(
    PYKAFKA,
    """
join_reason|2.0+|Rebalance triggered by
rebalance_begun|2.0+|Rebalancing consumer {} for topic
rebalance_ended|2.0+|Rebalancing Complete
rebalance_failed|2.0+|Failed to acquire partition
waiting_for_owner|2.0+|Unable to acquire partition
rebalance_failed|2.0+|Unable to complete rebalancing
rebalance_failed|2.0+|Failed to rebalance s after
without_partitions|2.0+|No partitions assigned to consumer
join_requested|2.3+|Sending JoinGroupRequest for consumer id
join_failed|2.3+|Error code {} encountered during JoinGroupRequest
sync_sent|2.3+|Sending SyncGroupRequest for consumer id
sync_failed|2.3+|Error code {} encountered during SyncGroupRequest
heartbeat_sent|2.3+|Sending heartbeat from consumer
heartbeat_failed|2.3+|Error code {} encountered on heartbeat
coordinator_query|2.0+|Attempting to discover offset manager for consumer group
coordinator_found|2.0+|Found coordinator broker with id
coordinator_failed|2.0+|Error discovering offset manager
coordinator_lost|2.0+|Updating cluster in response to NotCoordinatorFor
listener_failed|2.0+|post rebalance callback threw
context|2.0+|_rebalance called from
context|2.0+|Balancing {} participants for
context|2.0+|Committing offsets for {} partitions
commit_failed|2.0+|Error committing offsets for topic
offsets_failed|2.0+|Error fetching offsets for topic
context|2.3+|Starting heartbeat worker
context|2.3+|Heartbeat worker exiting
context|2.3+|Successfully rebalanced consumer
context|2.0+|Autocommitting consumer offset for consumer group
""",
)

_BROD = """
join_reason|{}re-joining group, reason:
join_failed|{}failed to join group
joined|{}elected=
group_assignment|{}assignments received:
leaving|{}Leaving group, reason:
leaving|{}leaving group, reason
context|{}Static member stopped without leaving group
member_fenced|{}Static member was fenced
coordinator_found|{}connected to group coordinator
commit_failed|{}failed to commit offset
"""
BROD_LINES = rows(
    BROD,
    "join_reason|2.0+|re-joining group, reason:\n"
    + "".join(
        line.replace("|{}", f"|{versions}|{head}({{}}): ") + "\n"
        for versions, head in (("2.0-2.2", "group coordinator "), ("2.3+", "Group member "))
        for line in _BROD.split("\n")
        if line
    ),
)
"""Records of several lines, joined by ``brod_records``."""
