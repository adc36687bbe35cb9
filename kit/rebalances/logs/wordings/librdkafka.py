"""Define the lines that librdkafka and its bindings print."""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import LIBRDKAFKA, rows

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
