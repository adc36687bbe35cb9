"""Define the lines that the old consumers (over ZooKeeper) and kafka-python print."""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import OLD_CONSUMER, PYTHON, rows

OLD = rows(
    OLD_CONSUMER,
    """
registering|0.8-1.1|begin registering consumer
registered|0.8-1.1|end registering consumer
rebalance_begun|0.8-1.1|begin rebalancing consumer
rebalance_ended|0.8-1.1|end rebalancing consumer
rebalance_failed|0.8-1.1|exception during rebalance
rebalance_failed|0.8-1.1|Rebalancing attempt failed
rebalance_failed|0.8-1.1|error during syncedRebalance
rebalance_failed|0.8-1.1|no brokers found when trying to rebalance
rebalance_failed|0.8-1.1|kafka.common.ConsumerRebalanceFailedException: {} can't rebalance after {} retries
rebalance_failed|0.8-1.1|{} can't rebalance after {} retries
session_expired|0.8-1.1|ZK expired
released|0.8-1.1|Releasing partition ownership
owned|0.8-1.1|{} successfully owned partition {} for topic
claiming|0.8-1.1|{} attempting to claim partition
waiting_for_owner|0.8-1.1|waiting for the partition ownership to be deleted
selected|0.8-1.1|Consumer {} selected partitions :
leader_assigning|0.8-1.1|Consumer {} rebalancing the following partitions
without_partitions|0.8-1.1|No broker partitions consumed by consumer thread
join_reason|0.8-1.1|Topic info for path
join_reason|0.8-1.1|Topic event:
context|0.8-1.1|Consumer {} releasing
context|0.8-1.1|Invoking rebalance listener
context|0.8-1.1|Committing all offsets after clearing
context|0.8-1.1|Cleared 
context|0.8-1.1|starting watcher executor thread
context|0.8-1.1|stopping watcher executor thread
context|0.8-1.1|starting auto committer
context|0.8-1.1|Connecting to zookeeper instance
context|0.8-1.1|Starting round-robin assignment
closing|0.8-1.1|ZKConsumerConnector shutting down
left|0.8-1.1|ZKConsumerConnector shutdown completed
left|0.8.1|ZKConsumerConnector shut down completed
commit_failed|0.8-1.1|exception during autoCommit
commit_failed|0.8-1.1|Error while committing offsets
context|0.8-1.1|Could not commit offsets
context|0.8-1.1|Could not fetch offsets
context|0.8-1.1|Creating topic event watcher
context|0.8-1.1|Topics to consume
context|0.8-1.1|Connected to offset manager
context|0.8-1.1|No updates to offsets since last commit
context|0.8-1.1|Retrying offset
offsets_failed|0.8-1.1|Error while fetching offsets from
join_reason|0.8-1.1|Error while handling topic partition change
join_reason|0.8-1.1|Topic for path
context|0.8-1.1|Adding topicThreadId
context|0.8-1.1|adding topic
context|0.8-1.1|Handling topic event
context|0.8-1.1|Shutting down topic event watcher
context|0.8-1.1|error in handling child changes
context|0.8-1.1|entering consume
context|0.8-1.1|Clearing up queue
""",
)

KAFKA_PYTHON = rows(
    PYTHON,
    """
coordinator_query|1.3+|Sending group coordinator request for group
context|1.3+|Completed autocommit of offsets
context|1.3+|No partitions assigned; sleeping
leader_assigning|1.3+|Elected group leader -- performing partition assignments
not_assigned|1.3+|No partition metadata for topic
leaving|1.3+|Leaving consumer group
joined|3.0|Joined group '
context|2.2+|Received member id
assignment_diff|3.0|Cooperative rebalance complete for group
revoked|3.0|Cooperative pre-rebalance for group
join_reason|3.0|Triggering follow-up rebalance for group
join_reason|3.0|need_rejoin: True
context|3.0|need_rejoin:
join_failed|2.2+|Failed to join group
lost|3.0|Group {} lost membership; forcibly revoking
join_reason|3.0|Group {} is rebalancing; rejoining
heartbeat_ok|1.0-1.2|Heartbeat successful
context|1.0-1.3|Heartbeat failed ([Error {}); retrying
heartbeat_failed|1.3+|Heartbeat failed
heartbeat_failed|1.3+|Heartbeat session expired
poll_timeout|1.4+|Heartbeat poll expired, leaving group
heartbeat_failed|1.3+|Heartbeat: local member_id was not recognized
heartbeat_ok|2.2+|Received heartbeat response for group
heartbeat_ok|3.0|Received successful heartbeat
heartbeat_failed|0.5+|Heartbeat send request failed
heartbeat_sent|1.3+|Heartbeat: 
heartbeat_sent|1.4+|Sending heartbeat for group
heartbeat_ok|1.0+|Heartbeat success
heartbeat_failed|1.0+|Heartbeat failure
heartbeat_failed|1.0+|Unknown error in heart beat response
context|1.3+|Heartbeat thread
context|1.0+|Heartbeat closed
context|1.0+|Heartbeat disabled
context|1.0+|Heartbeat re-enabled
context|1.0+|Heartbeat loop
context|1.0+|Heartbeat task unneeded
context|1.0+|Heartbeat unneeded
context|0.5+|Stopping heartbeat task
context|1.3+|Received JoinGroup response
context|1.3+|Received SyncGroup response
commit_failed|1.3+|Auto offset commit failed
commit_failed|1.3+|OffsetCommit for group {} failed
commit_ok|1.3+|Successfully auto-committed
context|1.3+|Sending offset-commit request
context|1.3+|Starting new heartbeat thread
context|1.3+|Stopping heartbeat thread
context|1.3+|Group state is not stable
context|2.2+|Requesting metadata for group coordinator request
coordinator_failed|1.3+|Group Coordinator Not Available
coordinator_failed|1.3+|Group Coordinator Request failed
coordinator_failed|1.3+|Group Coordinator lookup
coordinator_failed|1.3+|Unrecognized failure in Group Coordinator Request
coordinator_failed|1.3-1.4|Coordinator unknown during heartbeat
context|1.3+|Coordinator already known
context|1.3+|Group coordinator for {} is BrokerMetadata
context|1.3+|<BrokerConnection
join_requested|0.5+|<AIOKafkaConnection {} Request {}: JoinGroupRequest_v
joined|0.5+|<AIOKafkaConnection {} Response {}: JoinGroupResponse_v{}error_code=0,
context|0.5+|<AIOKafkaConnection
context|1.4-2.1|Sending request {}Request_v
context|1.4-2.1|Processing response {}Response_v
context|0.5+|Join group response JoinGroupResponse_v
context|2.2+|Looking up coordinator
context|2.2+|Received find coordinator response
join_failed|1.3+|Unexpected error in join group
join_failed|2.3+|JoinGroup for group
sync_failed|1.3+|Unexpected error from SyncGroup
leaving|2.2+|Sending LeaveGroupRequest
context|2.2+|Received LeaveGroupResponse
heartbeat_sent|2.2+|Sending HeartbeatRequest
context|3.0|node={}] Sending request
context|3.0|node={}] Send:
context|3.0|node={}] Received response
context|3.0|node={}] Recv:
context|3.0|<KafkaConnection node_id=
context|3.0|<KafkaTCPTransport
context|3.0|Initializing connection for node_id
context|3.0|Coordinator for GROUP/
context|3.0|Updating coordinator for GROUP/
context|3.0|Bootstrap complete: ClusterMetadata(
context|3.0|Updated metadata: ClusterMetadata(
context|1.4+|Added sensor with name
context|3.0|poll: timeout during coordinator.poll()
context|1.3+|Skipping heartbeat
context|2.2+|Treating RebalanceInProgressError
context|1.3+|Starting heartbeat loop
context|3.0+|Enabling heartbeat
context|3.0+|Disabling heartbeat
context|1.4+|Started heartbeat thread
heartbeat_failed|3.0|Unhandled Heartbeat loop error
context|3.0+|_heartbeat_loop
context|2.2+|coordinator.poll:
context|1.3+|Waiting {} secs to send next heartbeat
context|1.3+|heartbeat_interval_ms is high
context|1.3+|group_id is None
context|1.3+|Broker version
coordinator_lost|0.5+|Error sending {} marking coordinator dead
context|1.3+|Error sending
context|1.3+|No offsets to commit
context|1.3+|Node {} not ready
context|2.2+|Received OffsetCommitResponse
context|2.2+|Received OffsetFetchResponse
offsets_failed|1.3+|OffsetFetchRequest -- unknown topic
offsets_failed|1.3+|Unknown error fetching offsets
commit_failed|1.3+|Failed to auto-commit offsets
commit_failed|1.3+|Pre-rebalance offset commit failed
commit_failed|0.2+|Auto offset commit errored
commit_failed|1.0+|Unexpected error committing partition
sync_failed|0.2+|Error from SyncGroup
join_failed|0.2+|Error in join group
join_requested|0.1-1.3|Issuing request (JoinGroup
context|0.1-1.3|Issuing request (
assigned|0.1+|Set newly assigned partitions
listener_failed|0.1+|User provided rebalance listener
listener_failed|0.1+|User provided subscription
context|1.0+|HeartbeatRequest throttled
context|1.0+|JoinGroupRequest throttled
context|1.0+|OffsetCommitRequest throttled
context|1.0+|FindCoordinatorRequest throttled
context|2.0+|_initiate_join_group:
context|2.0+|join_group:
context|1.0+|Not ready to heartbeat
context|1.0+|Running Heartbeat task
context|1.0+|AutoCommitTask
context|2.0+|On generation assignment
context|2.0+|Member assignment is available
context|2.0+|No member assignment available
join_reason|0.5+|Metadata for topic has changed from
join_reason|0.5+|Subscription changed during rebalance
commit_failed|0.5+|OffsetCommit failed before join
commit_failed|0.5+|OffsetCommit failed for
commit_failed|0.5+|Failed to commit on finallization
offsets_failed|0.5+|Failed to fetch committed offsets
offsets_failed|0.5+|Error fetching offset for
context|1.3+|Updated partition assignment
context|1.3+|Updating subscribed topics to
join_reason|2.2+|Assignment rejected
join_reason|3.0+|Cooperative assignment rejected
listener_failed|3.0+|Rebalance listener
poll_timeout|3.0+|Consumer poll timeout has expired
offset_missing|0.5+|No committed offset found for
offset_reset|0.9+|Fetch offset {} is out of range for topic-partition
out_of_range|3.0+|Truncation detected for {}but no reset policy is set
offset_reset|3.0+|Truncation detected for
context|0.5+|Join group response
context|2.0+|On assignment: assignment=
context|2.0+|Partition {} is assigned to multiple consumers following sticky
""",
)
