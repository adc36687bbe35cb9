"""What clients of other languages print, as people paste it: kafkajs, franz-go, sarama, ruby-kafka, kafka-go, brod.

kafkajs and franz-go put the facts beside the text: as keys of JSON, or behind a semicolon.
"""

from __future__ import annotations

from kit.rebalances.logs.wording import BROD, FRANZ_GO, KAFKA_GO, KAFKAJS, RUBY_KAFKA, SARAMA, rows

KAFKAJS_LINES = rows(
    KAFKAJS,
    """
group_assignment|1.0+|[ConsumerGroup] Consumer has joined the group
leader_assigning|1.0+|[ConsumerGroup] Chosen as group leader
assignment_computed|1.0+|[ConsumerGroup] Group assignment
context|1.0+|[ConsumerGroup] Received assignment
offset_reset|1.0+|[ConsumerGroup] Offset out of range, resetting
rebalancing|1.0+|[Runner] The group is rebalancing, re-joining
rebalancing|1.0+|[ConsumerGroup] The group is rebalancing, re-joining
join_reason|1.13+|[ConsumerGroup] Topic has been updated, resync group
left|1.0+|[Consumer] Stopped
crashed|1.0+|[Consumer] Crash:
restarting|1.0+|[Consumer] Restarting the consumer
coordinator_found|1.0+|[Cluster] Found group coordinator
coordinator_query|1.0+|[Connection] Request GroupCoordinator(
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
commit_failed|1.0+|[Connection] Response OffsetCommit({}"error":
context|1.0+|[Connection] Response OffsetCommit(
context|1.0+|[Connection] Request OffsetCommit(
""",
)

FRANZ_GO_LINES = rows(
    FRANZ_GO,
    """
context|0.7+|beginning to manage the group lifecycle; group:
joining|0.7+|joining group; group:
context|0.7+|join returned MemberIDRequired
joined|0.7+|joined, balancing group; group:
joined|0.7+|joined; group:
leader_assigning|0.7+|balancing group as leader
context|0.7+|balance group member; id:
context|0.7+|balanced; plan:
sync_sent|0.7+|syncing; group:
group_assignment|0.7+|synced; group:
context|0.7+|beginning heartbeat loop; group:
heartbeat_sent|0.7+|heartbeating; group:
heartbeat_ok|0.7+|heartbeat complete; group:
heartbeat_failed|0.7+|heartbeat errored; group:
revoked|0.7+|eager consumer revoking prior assigned partitions; group:
context|0.7+|cooperative consumer calling onRevoke at the end of a session
unassigned|0.7+|assigning partitions; why: clearing assignment at end of group management session
leaving|0.7+|leaving group; group:
commit_failed|1.0+|in default commit: unable to commit offsets
commit_failed|0.7+|default commit failed; group:
join_failed|1.0+|join group failed; group:
join_failed|0.7+|join and sync loop errored; group:
""",
)

SARAMA_LINES = rows(
    SARAMA,
    """
coordinator_query|1.0+|client/coordinator requesting coordinator for consumergr
coordinator_query|1.0+|client/coordinator requesting coordinator for consumergo
coordinator_found|1.0+|client/coordinator coordinator for consumergr
coordinator_found|1.0+|client/coordinator coordinator for consumergo
coordinator_failed|1.0+|client/coordinator coordinator for
coordinator_failed|1.0+|client/coordinator the __consumer_offsets topic is not initialized
coordinator_query|1.0-1.20|client/coordinator Requesting coordinator for consumergo
coordinator_found|1.0-1.20|client/coordinator Coordinator for consumergo
rebalancing|1.26+|consumergroup/{} loop check partition number coroutine will exit
rebalancing|1.26+|loop check partition number coroutine will exit
rebalancing|1.0+|cluster/consumer {} rebalance
offset_reset|1.0+|kafka: error while consuming {}The requested offset is outside the range
context|1.0+|consumer/broker/{} added subscription to
context|1.0+|consumer/broker/{} closed dead subscription to
context|1.0+|consumer/broker/{} accumulated
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
heartbeat_failed|0.3+|Error sending heartbeat: Kafka::
commit_failed|0.3+|Error committing offsets: Kafka::
coordinator_failed|0.3+|Failed to find coordinator for group
coordinator_failed|0.3+|Group coordinator not available for group
join_failed|0.3+|Failed to join group; resetting member id
join_failed|0.3+|Connection error while trying to join group
""",
)

KAFKA_GO_LINES = rows(
    KAFKA_GO,
    """
context|0.3+|entering loop for consumer group
joined|0.3+|joined group {} as member {} in generation
context|0.3+|joinGroup succeeded for response
joined|0.3+|Joined group {} as member {} in generation
leader_assigning|0.3+|selected as leader for group
context|0.3+|using '{}' balancer to assign group
context|0.3+|assigned member/topic/partitions
sync_sent|0.3+|Syncing {} assignments for generation {} as member
synced|0.3+|sync group finished for group
context|0.3+|received empty assignments for group
group_assignment|0.3+|subscribed to topics and partitions: map[
rebalancing|0.4+|rebalancing group
leaving|0.3+|Leaving group {}, member
join_reason|0.3+|Problem getting partitions during startup
join_reason|0.3+|Problem getting partitions while checking for changes
join_reason|0.3+|Partition changes found, re
coordinator_failed|0.3+|Unable to establish connection to consumer group coordinator for group
sync_failed|0.3+|Failed to sync group
offsets_failed|0.3+|Failed to fetch offsets for group
context|0.3+|started partition watcher for group
context|0.3+|stopped partition watcher for group
context|0.3+|started heartbeat for group
context|0.3+|stopped heartbeat for group
context|0.3+|started commit for group
context|0.3+|stopped commit for group
""",
)

_BROD = """
join_reason|{}re-joining group, reason:
join_failed|{}failed to join group
joined|{}elected=
group_assignment|{}assignments received:
leaving|{}Leaving group, reason:
coordinator_found|{}connected to group coordinator
commit_failed|{}failed to commit offset
"""
BROD_LINES = rows(
    BROD,
    "".join(
        line.replace("|{}", f"|{versions}|{head}({{}}): ") + "\n"
        for versions, head in (("2.0-2.2", "group coordinator "), ("2.3+", "Group member "))
        for line in _BROD.split("\n")
        if line
    ),
)
"""Records of several lines, joined by ``brod_records``."""
