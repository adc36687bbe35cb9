"""Define the lines that clients in Go print, as people paste them: franz-go, sarama, kafka-go.

franz-go puts the facts beside the text: as keys of JSON, or behind a semicolon.
"""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import FRANZ_GO, KAFKA_GO, SARAMA, rows

FRANZ_GO_LINES = rows(
    FRANZ_GO,
    """
context|0.7+|beginning to manage the group lifecycle; group:
joining|0.7+|joining group; group:
context|1.19+|beginning to manage the next-gen group lifecycle; group:
context|0.7+|beginning autocommit loop; group:
context|0.7+|join returned MemberIDRequired
member_reset|0.7+|join returned UnknownMemberID
context|0.7+|group protocol downgraded from cooperative to eager
joined|1.12+|joined as leader but unable to balance group
joined|0.7+|joined, balancing group; group:
joined|0.7+|joined; group:
leader_assigning|0.7+|balancing group as leader
context|0.7+|balance group member; id:
context|0.7+|balanced; plan:
sync_sent|0.7+|syncing; group:
group_assignment|0.7+|synced; group:
sync_failed|0.7+|sync failed with RebalanceInProgress
sync_failed|0.7+|sync group failed; group:
sync_failed|0.7+|sync assignment parse failed; group:
sync_failed|0.7+|sync assignment could not find chosen balancer
joined|1.4+|joined, skipping assignment even though leader
join_failed|1.19+|consumer group is at maximum capacity
join_failed|1.19+|consumer group assignor is not supported by the broker
context|0.7+|JoinGroup completed
context|0.7+|JoinGroup request blocked
context|0.7+|blocking commits from join&sync
context|0.7+|unblocking commits from join&sync
context|0.7+|grabbed join/sync mu
context|0.7+|new group session begun; group:
context|0.7+|heartbeat loop complete
context|0.7+|beginning heartbeat loop; group:
join_reason|0.7+|forced rejoin quitting heartbeat loop
rebalancing|1.0+|heartbeat saw a change in group status
heartbeat_failed|1.19+|heartbeat hit retryable error
heartbeat_failed|1.0-1.18|heartbeat hit retriable error
context|0.7+|heartbeat errored again while waiting
heartbeat_sent|0.7+|heartbeating; group:
heartbeat_ok|0.7+|heartbeat complete; group:
heartbeat_failed|0.7+|heartbeat errored; group:
revoked|0.7+|eager consumer revoking prior assigned partitions; group:
revoked|0.7+|cooperative consumer revoking prior assigned partitions because leaving group; group:
revoked|0.7+|cooperative consumer revoking lost partitions
context|0.7+|cooperative consumer calling on
context|0.7+|consumer calling onRevoke at the end of a session
context|1.0+|calling onRevoke at the end of a session
unassigned|0.7+|assigning partitions; why: clearing assignment at end of group management session
context|0.7+|assigning partitions; why:
context|1.0+|injecting fake fetch with an error
context|0.7+|in CommitOffsets
context|0.7+|left CommitOffsets
leaving|0.7+|leaving group; group:
leaving|1.19+|leaving next-gen group; group:
context|1.0+|tried to leave group but we have no member ID yet
offsets_fetching|0.7+|fetching offsets; group:
context|0.7+|fetch offsets returned; group:
offsets_failed|0.7+|fetch offsets failed
offsets_failed|1.19+|fetch offsets: stale member epoch
context|0.7+|fetched committed offsets
context|0.7+|beginning commit loop
context|0.7+|updated uncommitted; group:
context|0.7+|autocommitting; group:
context|0.7+|issuing commit; group:
context|0.7+|skipping autocommit
context|0.7+|default commit canceled
context|0.7+|autocommit canceled
context|0.7+|canceling prior commit to issue another
context|0.7+|waiting for prior commit to finish
context|0.7+|issuing blocking commit due to leaving group
context|0.7+|issuing txn commit
commit_failed|0.7+|autocommit failed
commit_failed|0.7+|in autocommit: unable to commit offsets
commit_failed|0.7+|in revoke: unable to commit offsets
commit_failed|0.7+|default revoke failed
commit_failed|0.7+|default revoke BlockingCommitOffsets failed
commit_failed|1.19+|offset commit got stale member epoch
commit_ok|0.7+|updated committed; group:
commit_failed|0.7+|unable to commit offset for topic partition; group:
commit_failed|1.19+|offset commit returned a fatal group member error
commit_failed|1.19+|offset commit: stale member epoch
commit_failed|1.0+|in default commit: unable to commit offsets
commit_failed|0.7+|default commit failed; group:
join_failed|1.0+|join group failed; group:
join_failed|0.7+|join and sync loop errored; group:
join_failed|1.0+|group manage loop errored; group:
heartbeat_failed|1.19+|consumer group initial heartbeat hit ret
heartbeat_failed|1.19+|consumer group heartbeat hit
member_fenced|1.19+|consumer group heartbeat saw fenced member epoch
member_fenced|1.19+|received fenced member epoch with epoch 0
heartbeat_failed|1.19+|consumer group heartbeat error, abandoning assignment
target_received|1.19+|consumer group heartbeat detected an updated assignment
target_received|1.19+|consumer group initial heartbeat received assignment
context|1.19+|storing member and epoch; group:
context|1.19+|storing epoch; group:
context|1.19+|falling back to standard consumer group management
offsets_failed|1.19+|fetch offsets returned stale member epoch
context|0.7+|received an OffsetCommitResponse after our group session has ended
context|1.20+|ignoring consumer group heartbeat response
context|1.20+|beginning to manage the share group lifecycle; group:
context|1.20+|assigning share partitions; group:
heartbeat_sent|1.20+|share group heartbeating; group:
heartbeat_ok|1.20+|share group heartbeat complete; group:
member_reset|1.20+|share group heartbeat lost membership
heartbeat_failed|1.20+|share group manage loop hit
leaving|1.20+|leaving share group; group:
""",
)

SARAMA_LINES = rows(
    SARAMA,
    """
coordinator_query|1.0+|client/coordinator requesting coordinator for
coordinator_found|1.0+|client/coordinator coordinator for {} is #
coordinator_failed|1.0+|client/coordinator coordinator for
coordinator_failed|1.0+|client/coordinator the __consumer_offsets topic is not initialized
coordinator_failed|1.0+|client/coordinator request to broker
coordinator_failed|1.0+|client/coordinator no available broker to send consumer metadata request
coordinator_failed|1.30+|client was not authorized to access group
context|1.0+|client/coordinator retrying after
coordinator_failed|1.0-1.20|client/coordinator Coordinator for consumer group {} is not available
coordinator_failed|1.0-1.20|client/coordinator Request to broker
coordinator_failed|1.0-1.20|client/coordinator The __consumer_offsets topic is not initialized
context|1.19+|consumergroup/session/
context|1.26+|Consumer Group refresh metadata failed
lost|1.46+|consumergroup/{}: lost ownership of
member_fenced|1.30+|JoinGroup failed: group instance id {} has been fenced
join_reason|1.26+|consumergroup/{} loop check partition number goroutine find partitions in topics
rebalancing|1.26+|consumergroup/{} loop check partition number goroutine will exit
coordinator_query|1.0-1.20|client/coordinator Requesting coordinator for consumergo
coordinator_found|1.0-1.20|client/coordinator Coordinator for consumergo
rebalancing|1.26+|consumergroup/{} loop check partition number coroutine will exit
rebalancing|1.26+|loop check partition number coroutine will exit
rebalancing|1.0+|cluster/consumer {} rebalance
context|1.0+|cluster/consumer {} consume
offset_reset|1.0+|kafka: error while consuming {}The requested offset is outside the range
heartbeat_failed|1.19+|kafka: error while consuming /-1: kafka server:
commit_failed|1.19+|kafka: error while consuming {}The provided member is not known
commit_failed|1.19+|kafka: error while consuming {}The provided generation id is not the current
commit_failed|1.19+|kafka: error while consuming {}A rebalance for the group is in progress
commit_failed|1.19+|kafka: error while consuming {}a consumer group that is not coordinated by this broker
member_reset|1.0+|kafka server: The provided member is not known
member_reset|1.0+|kafka server: The provided generation id is not the current
rebalancing|1.0+|kafka server: A rebalance for the group is in progress
coordinator_failed|1.0+|kafka server: Request was for a consumer group that is not coordinated by this broker
out_of_range|1.0+|kafka server: The requested offset is outside the range
rebalancing|2.1+|&{Type:rebalance start
group_assignment|2.1+|&{Type:rebalance OK
join_failed|2.1+|&{Type:rebalance error
context|1.0+|consumer/broker/{} added subscription to
context|1.0+|consumer/broker/{} closed dead subscription to
context|1.0+|consumer/broker/{} accumulated
context|1.0+|consumer/broker/{} abandoned subscription to
context|1.0+|consumer/{} shutting down because
context|1.19+|client/coordinator the __transaction_state topic
registered|0.1+|[{}/{}] Consumer instance registered (
left|0.1+|[{}/{}] Deregistered consumer instance
rebalancing|0.1+|[{}/{}] Triggering rebalance due to consumer list change
context|0.1+|[{}/{}] Currently registered consumers:
context|0.1+|[{}/{}] {} :: Started topic consumer
context|0.1+|[{}/{}] {} :: Stopped topic consumer
context|0.1+|[{}/{}] {} :: Claiming
offset_reset|0.1+|[{}/{}] {} :: Partition consumer offset reset to
context|0.1+|[{}/{}] {} :: Partition consumer offset out of Range
owned|0.1+|[{}/{}] {} :: Partition consumer
waiting_for_owner|0.1+|[{}/{}] {} :: FAILED to claim partition on attempt
rebalance_failed|0.1+|[{}/{}] {} :: FAILED to claim the partition
released|0.1+|[{}/{}] {} :: Stopping partition consumer
rebalance_failed|0.1+|[{}/{}] {} :: FAILED
rebalance_failed|0.1+|[{}/{}] FAILED
context|0.1+|[{}/{}] {} :: Consumer encountered an invalid state
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
context|0.3+|found topic/partition:
context|0.3+|initializing kafka reader for partition
group_assignment|0.3+|subscribed to topics and partitions: map[
rebalancing|0.4+|rebalancing group
leaving|0.3+|Leaving group {}, member
join_failed|0.3+|Failed to join group {}: 
leaving|0.3+|leave group failed for group,
commit_ok|0.3+|committed offsets for group {}: 
join_failed|0.1-0.2|rebalance failed for consumer group,
rebalancing|0.1-0.2|rebalancing consumer group,
coordinator_found|0.1-0.2|coordinator for group, {}, set to
coordinator_failed|0.1-0.2|unable to find coordinator for group,
coordinator_failed|0.1-0.2|unable to coordinator to any connect for group,
coordinator_failed|0.3+|unable to connect to coordinator
join_failed|0.1-0.2|joinGroup failed:
sync_failed|0.1-0.2|syncGroup failed:
heartbeat_failed|0.1-0.2|heartbeat failed:
commit_failed|0.1+|unable to commit offset
context|0.1+|using '{}' strategy to assign group,
context|0.1-0.2|response membership changed.
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
