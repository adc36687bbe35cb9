"""Define the lines that the Java clients print, 0.9 … 4.1, in the classic and in the new protocol (KIP-848)."""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import JAVA, rows

CLASSIC = rows(
    JAVA,
    """
coordinator_query|0.9|Issuing group metadata request to broker
coordinator_query|0.10.0-0.10.1|Sending coordinator request for group
coordinator_query|0.10.2-0.11|Sending GroupCoordinator request for group
coordinator_query|1.0+|Sending FindCoordinator request to broker
coordinator_found|0.9|Group metadata response
context|0.10.0-0.10.1|Received group coordinator response
context|0.10.2-0.11|Received GroupCoordinator response
context|1.0+|Received FindCoordinator response
coordinator_found|0.10-0.11|Discovered coordinator
coordinator_found|1.0+|Discovered group coordinator
coordinator_failed|0.10.1+|Group coordinator lookup
coordinator_failed|0.10.2+|Coordinator discovery failed
coordinator_failed|0.10.2-0.11|No broker available to send GroupCoordinator request
coordinator_failed|1.0+|No broker available to send FindCoordinator request
coordinator_failed|2.7+|FindCoordinator request
coordinator_failed|4.1+|FindCoordinator failed with exception
coordinator_lost|0.9-1.0|Marking the coordinator
coordinator_lost|1.1+|Group coordinator {} is unavailable or invalid
context|3.1+|Requesting disconnect from last known coordinator
coordinator_failed|2.7+|Consumer has been disconnected from the group coordinator for
joining|0.9+|(Re-)joining group
join_requested|0.9|Issuing request (JOIN_GROUP:
join_requested|0.10+|Sending JoinGroup (
context|2.3+|Joining group with current subscription:
join_reason|3.0+|Request joining group due to:
join_reason|2.7-2.8|Requesting to re-join the group and trigger rebalance since
join_reason|2.4-2.8|Need to revoke partitions {} and re-join the group
join_reason|2.4-2.8|We received an assignment
joined|0.9|Joined group:
joined|0.10.0-0.10.1|Received successful join group response
joined|0.10.2+|Received successful JoinGroup response
joined|0.10+|Successfully joined group
context|2.7+|JoinGroup failed {}MEMBER_ID_REQUIRED
context|2.3-2.6|Join group failed with {}MemberIdRequired
join_failed|0.9-2.6|Attempt to join group
join_failed|2.5|Join group failed with
join_failed|2.5+|JoinGroup failed
join_failed|2.4-2.8|Generation data was cleared by heartbeat thread
join_failed|2.7+|Generation data was cleared
join_failed|2.6-2.8|Rebalance failed.
context|2.0+|still waiting to ensure active group
leader_assigning|0.9|Performing {} assignment for subscriptions
leader_assigning|0.10+|Performing assignment
assignment_computed|0.9-2.3, 2.4+ with all members|Finished assignment
context|3.2+|Skipped assignment for returning static leader
sync_sent|0.9|Issuing leader SyncGroup
sync_sent|0.9|Issuing follower SyncGroup
sync_sent|0.10+|Sending leader SyncGroup
sync_sent|0.10+|Sending follower SyncGroup
synced|0.9|Received successful sync group response
synced|2.5+|Received successful SyncGroup response
synced|2.6+|Successfully synced group
sync_failed|0.9+|SyncGroup
context|2.4+|Executing on
context|2.6+|Notifying assignor about the new
assignment_diff|2.4+|Updating assignment with
assigned|0.9-2.3|Setting newly assigned partitions
assigned|2.4+|Adding newly assigned partitions:
revoked|0.9-2.3, 3.7+ before the callback|Revoking previously assigned partitions
revoked|2.4+|Revoke previously assigned partitions
lost|2.4+|Lost previously assigned partitions
lost_all|2.4+|Giving away all assigned partitions as lost since
context|3.2+|The pause flag in partitions
context|3.3+|Marking assigned partitions pending for revocation
not_assigned|0.10.2+|The following subscribed topics are not assigned to any members
context|0.10.2+|The following not-subscribed topics are assigned
context|2.4+|Found multiple consumers {} claiming the same TopicPartition
context|3.3+|Consumer {} in generation {} claiming the same TopicPartition
context|2.4+|Found partition {} still claimed as owned by consumer
context|2.4+|No more unfilled consumers to be assigned
context|2.4+|unassigned Partitions:
context|2.4+|With the COOPERATIVE protocol
subscribed|0.9+|Subscribed to
context|3.3+|Assigned to partition(s):
unsubscribed|0.9+|Unsubscribed all topics or patterns
unsubscribed|3.7+|Unsubscribing all topics or patterns
heartbeat_sent|0.10.2+|Sending Heartbeat request
heartbeat_ok|0.9-0.10.1|Received successful heartbeat response
heartbeat_ok|0.10.2+|Received successful Heartbeat response
heartbeat_failed|0.9-0.10.1|Attempt to heart beat failed
heartbeat_failed|0.10.2+|Attempt to heartbeat
context|2.6+|Ignoring heartbeat response
context|0.10.2+|Heartbeat thread
context|1.0+|Enabling heartbeat thread
context|1.0+|Disabling heartbeat thread
member_reset|2.4+|Resetting generation
member_fenced|2.3-2.5|Received fatal exception: group.instance.id gets fenced
member_fenced|2.3+|Caught fenced group.instance.id
leaving|0.10.2-0.11, 1.0-2.1|Sending LeaveGroup request to coordinator
leaving|2.2+|Member {} sending LeaveGroup request to coordinator
left|0.10.1+|LeaveGroup re
poll_timeout|2.1-2.3|This member will leave the group because consumer poll timeout has expired
poll_timeout|3.0+|consumer poll timeout has expired
poll_timeout|3.4+|worker poll timeout has expired
offsets_fetching|0.9, 1.0+|Fetching committed offsets for partitions
offsets_fetching|0.10-0.11|Group {} fetching committed offsets for partitions
offset_found|0.9-1.0|Resetting offset for partition {} to the committed offset
offset_found|1.1+|Setting offset for partition {} to the committed offset
offset_missing|0.9|No committed offset for partition
offset_missing|0.10-0.11|Group {} has no committed offset for partition
offset_missing|1.0+|Found no committed offset for partition
offset_reset|0.9+|Resetting offset for partition
offset_reset|0.9|Fetch offset {} is out of range, resetting
offset_reset|0.10-2.5|Fetch offset {} is out of range for partition {}, resetting
offset_reset|2.6+|Fetch position {}resetting offset
out_of_range|2.3-2.5|Fetch offset {}raising error to the application
out_of_range|2.6+|Fetch position {}raising error to the application
out_of_range|2.3+|Truncation detected for partition {}but no reset policy is set
offset_reset|2.3+|Truncation detected for partition
sought|2.3+|Seeking to
offsets_failed|0.10.2+|Offset fetch
offsets_failed|0.10-0.11|Group {} failed to fetch offset
offsets_failed|1.0+|Failed to fetch offset for partition
commit_ok|0.9, 1.0+|Committed offset
commit_ok|0.10-0.11|Group {} committed offset
context|0.9+|Committing offsets:
context|0.9+|Sending OffsetCommit request
context|2.3+|Assigned partition
context|0.10.2+|Completed au
context|1.0+|Completed asynchronous auto-commit
context|0.10.2+|Sending asynchronous auto-commit
context|0.10.2+|Sending synchronous auto-commit
commit_failed|0.9-0.10.1|Auto offset commit failed
context|3.8+|Auto-commit {} completed successfully
commit_failed|0.10.2+|Auto-commit
commit_failed|1.0+|Asynchronous auto-commit of offsets
commit_failed|1.0+|Synchronous auto-commit of offsets
commit_failed|0.9+|Offset commit
commit_failed|0.10-0.11|Group {} failed to commit partition
commit_failed|0.9|Error committing partition
commit_failed|0.9|Error {} occurred while committing offsets
commit_failed|0.9+|Not authorized to commit
commit_failed|0.9|Unauthorized to commit
context|0.9|Failed to send automatic offset commit
commit_failed|0.10+|Automatic commit of offsets
commit_failed|3.8+|Commit request before revocation failed
context|0.9-0.10.0|Cannot auto-commit offsets
offsets_failed|0.9|Error fetching offset for topic-partition
coordinator_failed|1.0+|An authentication error occurred in the heartbeat thread
coordinator_failed|1.0+|A group authorization error occurred in the heartbeat thread
context|0.10.1+|Unexpected interrupt received in heartbeat thread
context|0.10.2+|Interrupted while waiting for consumer heartbeat thread
commit_failed|2.3+|Failing OffsetCommit request
commit_failed|2.6+|OffsetCommit failed
context|2.5+|The following partitions still have unstable offsets
context|2.5+|Ignoring the returned
listener_failed|0.9+|User provided listener
closing|0.10.2+|Close timed out with
""",
)

CONSUMER_PROTOCOL = rows(
    JAVA,
    """
state_change|3.7+|Member {} with epoch {} transitioned from
state_change|3.7+|Member {} with epoch {} transitioned to
state_change|3.7|Member {} transitioned from
state_change|3.7|Member {} transitioned to
member_fenced|3.7+|Member {} with epoch {} got fenced
member_fatal|3.7+|Member {} with epoch {} got fatal error
leaving|3.7+|Member {} with epoch {} generated the heartbeat to leave
left|3.9+|Member {} with epoch {} received a
context|3.7+|Member {} with epoch {} w
leaving|3.8|Member {} sent heartbeat to leave
leaving|3.8+|Member {} is triggering callbacks to release assignment
leaving|4.1+|Member {} attempting to leave has no rebalance callbacks
context|3.8+|Member {} completed callback to release assignment
listener_failed|3.8+|Member {} callback to release assignment failed
context|3.7+|Member {} w
context|3.8+|Member {} sent leave group heartbeat
context|4.4+|Member {} received heartbeat interval
context|4.4+|Dynamic member {} closed with REMAIN_IN_GROUP
left|4.0+|Completed leaving the group
closing|4.0+|Consumer attempted to leave the group but couldn't complete it
closing|3.9|Consumer triggered an unsubscribe event to leave the group but couldn't complete it
context|4.1+|Member {} updated its target assignment
context|3.7|Member {} is staled
reconciling|3.8+|Reconciling assignment with local epoch
reconcile_failed|3.7+|Reconciliation failed
context|3.7+|Interrupting reconciliation
context|3.7+|Ignoring reconciliation attempt
context|3.7+|Target assignment
context|3.7+|Ignoring new assignment
context|3.7+|There are unresolved partitions
context|3.7+|Marking partitions pending for revocation
context|3.7+|Leave group operation already in progress
context|3.8+|Releasing assignment and leaving group
context|3.8+|Completed releasing assignment
leaving|3.7+|Heartbeat to leave group cannot be sent
leaving|3.7-3.8|Heartbeat for leaving group could not be sent
poll_timeout|3.8+|Consumer poll timeout has expired
poll_timeout|3.8+|Time between subsequent calls to poll() was longer
context|3.8+|Expired poll timer has been reset
member_fatal|3.8+|Non-member transitioned to
context|3.8+|Fenced member onPartitionsLost
context|3.7|Revocation callback completed
context|3.7+|Topic Ids {} received in target assignment
context|3.8+|Leaving newly assigned partitions
context|3.7+|The event to trigger
listener_failed|3.7+|The {} method completed with an error
context|3.7+|The {} method completed
member_fatal|3.7+|No action taken to join the group
heartbeat_ok|3.7-3.9|GroupHeartbeat responded successfully
heartbeat_failed|3.7-3.9|GroupHeartbeat failed
heartbeat_failed|3.7-3.9|GroupHeartbeatRequest failed
heartbeat_ok|4.0+|ConsumerGroupHeartbeat{} responded successfully
heartbeat_failed|4.0+|ConsumerGroupHeartbeat{} failed
heartbeat_failed|4.0+|ConsumerGroupHeartbeat{} regex resolution not supported
heartbeat_ok|4.0+|ShareGroupHeartbeat{} responded successfully
heartbeat_failed|4.0+|ShareGroupHeartbeat{} failed
context|3.8+|Heartbeat failed, reset the timer
listener_failed|3.7+|onPartitions{} callback invocation failed
context|3.7+|OffsetCommit completed successfully
context|3.7|OffsetCommit response received
commit_failed|3.7|OffsetCommit completed with error
commit_failed|3.7|Unexpected error when completing offset commit
commit_failed|3.7+|Unexpected error handling response for
context|3.8+|OffsetCommit request
context|3.8+|OffsetFetch request
context|3.5+|Duplicated
context|3.5+|A duplicated, inflight, request
context|3.7+|Skipping
context|4.1+|Failing all unsent commit requests
commit_failed|3.7+|OffsetCommit failed
context|3.7+|Enqueuing
context|3.8+|OffsetCommit timeout
commit_failed|3.7+|OffsetFetch failed
context|3.7+|Refreshing committed offsets
offsets_failed|3.7+|The committed offsets for {} could not be refreshed
context|4.1+|Leaving the consumer group during consumer close
context|4.1+|Stop finding coordinator during consumer close
context|4.1+|Signal CoordinatorRequestManager closing
context|4.1+|Signal the ConsumerMembershipManager to leave
context|3.7+|Node is not ready, handle the request in the next event loop
reconciling|4.1+|Assigned tasks with local epoch
revoked|4.1+|Revoking previously assigned active tasks
lost|4.1+|Revoking previously assigned and now lost active tasks
heartbeat_ok|4.1+|StreamsGroupHeartbeatRequest responded successfully
heartbeat_failed|4.1+|StreamsGroupHeartbeatRequest failed
listener_failed|4.1+|Streams rebalance listener failed on invocation of
listener_failed|4.1+|The on{}Tasks{} callback completed with an error
listener_failed|4.1+|The onTasks{} callback completed with an error
context|4.1+|Received Streams group configuration from the group coordinator
context|4.1+|Assigning active tasks {
""",
)

CONTEXTS = rows(
    JAVA,
    """
metadata|0.9|Sending metadata request ClientRequest(
context|0.9+|Rebalance started
join_reason|0.10+|Connector {} config updated
join_reason|0.10+|Connector {} config removed
join_reason|0.10+|Tasks {} configs updated
join_reason|0.9+|Current config state offset {} does not match group assignment
join_reason|0.9+|Join group completed, but assignment failed
join_reason|0.9+|Requesting rebalance
lost_all|2.3+|Broker coordinator was unreachable for {} Revoking previous assignment
lost_all|2.3+|Revoking current running assignment
context|2.3+|Broker coordinator is
context|0.9+|Catching up to assignment's config offset
context|0.9+|Current config state offset {} is behind group assignment
context|2.3+|Handling task config update by stopping tasks
context|0.9+|Finished {} in preparation for rebalance
context|0.9+|Wasn't able to resume work after last rebalance
context|0.9+|Was selected to perform assignments, but do not have latest config
context|0.9+|Ensuring group membership is still active
context|2.3+|Cooperative rebalance triggered. Keeping assignment
join_reason|3.3+|Failed to write to config topic as leader; will rejoin group
context|2.3+|Handling completed but unresolved rebalance
context|2.3+|Scheduled rebalance
context|2.3+|Delayed rebalance
context|2.3+|Consecutive revoking rebalances observed
context|2.3+|Performing allocation-balancing revocation
context|2.3+|Sending heartbeat request with
context|2.3+|Handling config updates with
context|2.3+|Clearing the view of previous assignments
context|2.3+|No worker seems to have departed the group
context|2.3+|Processing task config updates with incremental
context|2.3+|Resetting rebalance delay to the max
context|2.3+|Returning early because rebalance is marked
context|2.3+|Revoking assignments immediately since
context|0.9+|Stopping the Connect group member
context|0.9+|The Connect group member has stopped
context|0.9+|Sink task {} was stopped before completing join group
context|0.9+|Woken up while ensur
context|0.9+|Polling for group activity
leader_assigning|0.9+|Performing task assignment
commit_failed|0.9+|WorkerSinkTask{id={} Commit of offsets t
commit_failed|0.9+|WorkerSinkTask{id={} Offset commit failed
commit_failed|2.0+|WorkerSinkTask{id={} Ignoring offset commit
commit_failed|2.0+|WorkerSinkTask{id={} Ignoring invalid task provided offset
commit_failed|0.9-1.1|Ignoring invalid task provided offset
context|0.9+|WorkerSinkTask{id={}
rebalance_ended|4.0+|Finished rebalance with {} election result
rebalance_ended|2.3+|Joined group at generation
rebalance_ended|0.10-2.2|Joined group and got assignment
metadata|0.9+|Updated cluster metadata version
context|0.9+|Initiating connection to node
context|0.10-2.6|Recorded API versions for node
context|2.7+|Node {} has finalized features
context|2.8+|Sending {} request with header RequestHeader(
context|2.8+|Received {} response from node
context|2.4+|After reassigning previously owned partitions
context|0.8-1.1|Property {} is overridden to
""",
)

FRAMEWORKS = rows(
    JAVA,
    """
context|1.0+|partitions assigned:
context|1.0+|partitions revoked:
context|1.0+|partitions lost:
context|1.0+|{}: partitions assigned: [
context|1.0+|{}: partitions revoked: [
context|1.0+|{}: partitions lost: [
context|1.1+|Partitions revoked. [consumer-group=
context|1.1+|Partitions reassignment. [task-ID=
context|1.3+|Committing on assignment:
commit_failed|0.10+|Commit cannot be completed since the group has already rebalanced
commit_failed|2.2+|Offset commit cannot be completed since the consumer is not part of an active group
commit_failed|2.3+|Offset commit cannot be completed since the consumer is undergoing a rebalance
out_of_range|0.10+|Offsets out of range with no configured reset policy
offset_missing|0.9+|Undefined offset with no reset policy
commit_failed|2.5+|Commit retries exhausted
commit_failed|2.5+|These offsets could not be committed; partition(s) lost
commit_failed|2.5+|Non-fatal commit failure
commit_failed|2.5+|Fatal commit error after revocation
member_fenced|2.3+|'group.instance.id' has been fenced
context|2.5+|Paused consumer resumed by Kafka due to rebalance
context|2.5+|No current assignment for partition
context|2.5+|{}: Consumer stopped
state_change|0.10+|stream-client [{}State transition from
state_change|0.10+|stream-thread [{}State transition from
state_change|1.0+|stream-thread[{}State transition from
member_reset|1.0+|Detected that the thread is being fenced
member_reset|1.0+|Detected task {} that got migrated
join_reason|2.6+|Triggering the followup rebalance
join_reason|2.8+|Active task(s) got corrupted. Triggering a rebalance
rebalance_failed|2.4+|Rebalance failed due to task assignor
context|2.6+|Requested to schedule
context|2.6+|Requesting followup rebalance
context|2.6+|No followup rebalance
context|2.6+|Finished stable assignment
context|2.6+|Finished unstable assignment
member_reset|2.0+|Failed to process stream task {} since it got migrated to another thread
member_reset|2.0+|Failed to punctuate stream task {} since it got migrated to another thread
context|2.6+|Requested client {} to schedule a followup rebalance
context|2.4+|Decided on assignment:
leader_assigning|0.10-2.3|stream-thread [{}Assigned tasks to clients as {
context|2.6+|Removing task {} active assignment until it is safely revoked
context|2.6+|Adding removed stateful active task
context|2.4+|Cooperative rebalancing protocol is enabled now
context|2.4+|Eager rebalancing protocol is enabled now
context|3.1+|The eager rebalancing protocol is deprecated
context|2.6+|Created active task {} with assigned partitions
context|2.6+|Created standby task {} with assigned partitions
context|2.6+|Failed to fetch end offsets for changelogs
context|2.8+|Starting to describe topics
context|2.8+|Starting to validate internal topics
context|2.6+|The following revoked partitions
context|2.6+|Unable to commit as we are in the middle of a rebalance
context|0.10+|partition assignment took
context|0.10+|partition revocation took
context|2.4+|at state {}: partitions {} lost due to missed rebalance
context|2.7+|{} partitions are assigned
context|2.7+|{} partitions are revoked
context|2.7+|{} partitions are lost
commit_failed|1.3+|Async Kafka commit failed
commit_failed|1.12+|Failed to commit consumer offsets for checkpoint
context|1.3+|Consumer subtask {} will start reading
context|1.3+|Consumer subtask {} restored state
context|1.3+|Consumer subtask {} has no restore state
context|1.3+|Consumer subtask {} creating fetcher with offsets
context|1.12+|Discovered new partitions:
context|1.12+|Assigning splits to readers
""",
)
"""Spring's containers, Storm's spouts, Flink's sources, Kafka Streams and zio-kafka. The client reports the same of
partitions itself; Flink assigns them without a group. Versions are theirs, of a refused commit the client's."""
