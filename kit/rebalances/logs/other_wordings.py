"""Define the lines that the old consumers (over ZooKeeper), kafka-python and librdkafka print."""

from __future__ import annotations

from kit.rebalances.logs.wording import LIBRDKAFKA, OLD_CONSUMER, PYTHON, rows

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

RDKAFKA = rows(
    LIBRDKAFKA,
    """
coordinator_failed|0.9+|Group "{}": no broker available for coordinator query
offsets_failed|0.9+|Timed out OffsetFetchRequest in flight
context|0.9+|Timed out {}Request in flight
coordinator_query|0.9+|Group "{}": querying for coordinator
coordinator_found|0.9+|Group "{}" coordinator is
context|0.9+|Group "{}" changing coordinator
context|1.0+|Group "{}" coordinator set to broker
coordinator_lost|1.0+|Group "{}" broker {} is no longer coordinator
coordinator_lost|0.9+|Group "{}": marking the coordinator
coordinator_failed|0.9+|Group "{}" {}response error
join_requested|0.11+|Joining group "
context|0.9+|Group "{}": join with
context|1.6+|JoinGroup response: GenerationId {} needs a valid member ID
join_failed|0.9+|JoinGroup response: GenerationId {}: Broker: 
join_failed|0.9+|JoinGroup response: GenerationId {}: Local: 
context|0.9+|JoinGroup response: GenerationId -1
joined|0.9+|JoinGroup response: GenerationId
join_failed|0.9+|JoinGroup response:
leader_assigning|1.6+|I am elected leader for group
leader_assigning|0.9-1.5|Elected leader for group
assignment_computed|1.6+|Group "{}" {} assignment for {} member(s) finished
context|1.6+|Group "{}" running
context|0.11+|Group "{}": resetting group leader info
context|1.0+|GroupCoordinator: Broker
context|1.0+|GroupCoordinator: Received
member_list|0.9+|Member "{} assigned {} partition(s)
context|1.6+|Member "
context|0.9+|Group "{}": "{}" assignor run
synced|1.9+|SyncGroup response: Success
sync_failed|1.9+|SyncGroup response:
group_assignment|0.9+|List with
assigned|0.9+|Group "{}": delegating assign of
assigned|1.6+|Group "{}": delegating incremental assign of
revoked|0.9+|Group "{}": delegating revoke of
revoked|1.6+|Group "{}": delegating incremental revoke of
context|1.6+|Group "{}": assignment operations done
unassigned|0.9+|Group "{}": unassign done
context|1.6+|Group "{}": incremental assignment:
lost|1.6+|Group "{}": current assignment of {} lost
rebalancing|1.0+|Group "{}" is rebalancing
rebalancing|1.6+|Group "{}" initiating rebalance
rebalancing|1.6+|Group "{}": rebalance ({}) already in progress
join_reason|1.6+|Group "{}": Rejoining group
join_reason|1.6+|Group "{}": Joining group
join_reason|1.6+|Group "{}" (re)joining in
join_reason|0.11-1.5|Group "{}" rejoining in
context|1.6+|Group "{}": Not
heartbeat_sent|0.9+|Heartbeat for group "
heartbeat_failed|0.9+|Group "{}" heartbeat error response
heartbeat_failed|0.11+|Heartbeat failed
heartbeat_failed|2.6+|ConsumerGroupHeartbeat failed
heartbeat_sent|2.6+|ConsumerGroupHeartbeat of member id
heartbeat_ok|2.14+|ConsumerGroupHeartbeat response received for member id
target_received|2.6+|ConsumerGroupHeartbeat {}received target assignment
target_received|2.14+|ConsumerGroupHeartbeat received target assignment
reconciling|2.6+|Reconciliation starts with new target assignment
assignment_acked|2.6+|Target assignment acked, new current assignment
leaving|0.9+|Group "{}": leave
leaving|0.11+|Leaving group
left|1.0+|LeaveGroup response
poll_timeout|1.0+|Application maximum poll interval
poll_timeout|1.0+|Maximum application poll interval (
context|0.9+|Commit failed: Local: No offset stored
commit_failed|0.9+|Commit failed: Broker:
commit_failed|0.9+|Commit failed: Local:
assigned|0.1+|New partitions assigned:
revoked|0.1+|Partitions to revoke:
revoked|0.1+|Partitions revoked: [
context|0.1+|Partition revocation complete
context|0.1+|Member id: ''
member_id|0.1+|Member id: '
assigned|19.1+|Topics/partitions assigned:
revoked|19.1+|Rebalance initiated. Revoking partitions:
without_partitions|20.1+|Got empty assignment: Not enough partitions
commit_failed|19.1+|All commit attempts failed
commit_failed|19.1+|Exception during commit attempt:
assigned|0.9+|Local: Assign partitions
revoked|0.9+|Local: Revoke partitions
out_of_range|2.0+|fetch failed due to requested offset not available on the broker
offset_missing|2.0+|no previously committed offset available
out_of_range|0.9+|KafkaError{code=OFFSET_OUT_OF_RANGE
assigned|1.6+|COOPERATIVE rebalance: {} new partition(s) assigned:
revoked|1.6+|COOPERATIVE rebalance: {} partition(s) revoked:
assigned|1.6+|EAGER rebalance: {} new partition(s) assigned:
revoked|1.6+|EAGER rebalance: {} partition(s) revoked:
context|0.10+|Pre rebalance Assign(
assigned|0.10+|Post rebalance Assign(
revoked|0.10+|Pre rebalance Revoke(
context|0.10+|Post rebalance Revoke(
member_fatal|1.4+|Fatal error: {}tatic consumer fenced
member_fatal|2.6+|Fatal error: {}ConsumerGroupHeartbeat
session_timeout|1.5+|Consumer group session timed out
state_change|0.9+|Group "{}" changed join state
state_change|0.9+|Group "{}" changed state
context|0.9+|Group "{}": updating member id "(not-set)" -> ""
context|0.9+|Group "{}": updating member id "" -> ""
member_reset|0.9+|Group "{}": updating member id "{}" -> ""
member_id|0.9+|Group "{}": updating member id
offsets_fetching|1.6+|Fetching committed offsets for
offset_missing|1.6+|OffsetFetchResponse: {} offset -1,
offset_found|1.6+|OffsetFetchResponse:
context|2.0+|Group {} OffsetFetchRequest
commit_failed|1.5+|Offset commit ({}) failed
commit_failed|0.9+|OffsetCommit failed for
commit_ok|0.9+|OffsetCommit for {} returned: Success
context|0.9+|OffsetCommit for {} returned: Local: No offset stored
context|0.9+|OffsetCommit for {} returned: Local: Operation in progress
commit_failed|0.9+|OffsetCommit for
subscribed|0.9+|Group "{}": subscribe to new
context|0.9+|Group "{}": unsubscribe from current unset subscription
unsubscribed|0.9+|Group "{}": unsubscribe from
subscribed|0.9+|Group "{}": effective subscription list changed
offset_reset|2.0+|{}: offset reset (at
closing|0.9+|Terminating group "
context|0.9+|{}: metadata for
context|0.9+|{}: need to refresh metadata
context|1.0+|Consumer group sub-system terminated
context|0.9+|Group "{}" received op
context|0.9+|Group "{}": waiting for
context|0.9+|Group "{}": timed out
context|0.9+|Group "{}": timing out
context|2.15+|ShareGroupHeartbeat
context|2.15+|Share consumer
context|0.9+|Sent {}Request (v
context|0.9+|Sent partial {}Request (v
context|0.9+|{}Request failed: {}: actions
context|1.6+|{}Request failed: {}: explicit actions
context|0.9+|Received {}Response (v
context|1.6+|Group "{}": ops queue is disabled
context|1.6+|Group "{}": Partitions owned by members
context|1.6+|Group "{}": COOPERATIVE protocol collection sizes
context|1.6+|Group "{}": {} partitions assigned to consumers
coordinator_failed|1.3+|Group "{}": unable to send coordinator query
context|0.9+|Group "{}": postponing join
context|0.9+|Group "{}": no matching topics
context|0.9-0.11|Group "{}" in join state
rebalance_failed|1.6+|Group "{}": internal
context|1.6+|Group "{}": skipping COOPERATIVE rebalance
context|1.6+|Group "{}": unexpected instruction to revoke
context|1.6+|Group "{}": revoking all
context|1.6+|Group "{}": consumer is terminating
context|1.6+|Group "{}" revoking
context|0.11+|Group "{}": subscription updated
sync_failed|0.9+|Group "{}": synchronization failed
context|2.6+|Reconciliation in progress
context|2.6+|Not reconciling new assignment
context|2.6+|Metadata
context|2.6+|No metadata to request
context|2.6+|Acknowledging target assignment
context|2.6+|Sending new subscription
lost_all|2.6+|Revoking assignment as lost
context|2.6+|Expediting next heartbeat
context|0.9+|Heartbeat response: discarding
left|2.6+|ConsumerGroupHeartbeat response
context|2.6+|KIP-848
member_fatal|2.6+|ConsumerGroupHeartbeat fatal error:
member_fatal|1.4+|Fatal consumer error:
join_failed|1.4+|JoinGroup failed:
offsets_failed|0.9+|Failed to fetch committed offset
offsets_failed|1.6+|Offset fetch error
coordinator_failed|1.3+|FindCoordinator response error:
listener_failed|1.6+|Group "{}": application *assign() call failed
rebalance_failed|0.9+|Group "{}": failed to run assignor
rebalance_failed|1.6+|Group "{}" {} assignment failed for
context|0.9+|Committing offsets for
context|0.9+|Deferring "
context|1.6+|Pending assignment partition
context|1.6+|Querying committed offset for
context|0.9+|Group "{}": unable to OffsetCommit
context|1.6+|Group "{}": current assignment no longer considered lost
context|0.9+|Group "{}": assigning
context|0.9+|Group "{}": starting fetchers
context|0.9+|Group "{}": add
context|0.9+|Group "{}": delete
context|0.9+|Group "{}": enqueue partition
context|1.6+|Group "{}": clearing
context|1.6+|Group "{}": setting group assignment
context|1.6+|Group "{}": new assignment of
context|1.6+|Group "{}": no longer leader
context|1.6+|Group "{}": no topics in metadata
context|1.6+|Group "{}": not committing assigned offsets
context|1.6+|Group "{}": modifying subscription
context|1.6+|Group "{}": invoking waiting postponed
context|1.6+|Group "{}": {} partition(s) being
context|1.6+|Group "{}" is terminating
context|0.9+|Group "{}" management
assigned|0.11+|AssignedPartitions: [
revoked|0.11+|RevokedPartitions: [
assigned|1.4+|Partitions incrementally assigned: [
revoked|1.4+|Partitions incrementally revoked: [
lost|1.4+|Partitions were lost: [
revoked|1.0+|Revoking assignment: [
revoked|0.11|Revoked partitions: [
assigned|8.0+|Partition: {} was assigned to:
revoked|8.0+|Partition: {} was closed on
lost|8.0+|Partition: {} was lost on
assigned|0.9+|% Consumer group rebalanced: assigned
revoked|0.9+|% Consumer group rebalanced: revoked
assigned|1.6+|% Group rebalanced ({} new partition(s) assigned
revoked|1.6+|% Group rebalanced ({} partition(s) revoked
context|0.9+|Unsupported assignment strategy
context|0.9+|Leave
""",
)
