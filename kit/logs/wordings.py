"""What consumers and brokers print about coordination: one template per wording, with the kind of event it tells.

A template is the text as it stands in the client's source, ``{}`` for what varies; a message has that wording if it
begins so. The versions are those in whose sources the text stands: release tags 0.8.2.2 … 3.9 of Kafka and the classes
of 4.1.1; v0.9.5 … v2.15 of librdkafka; 1.3.5 … 3.0.11 of kafka-python. The first wording that fits wins. ``CONTEXT`` is
known and tells no event; the member's own id, generation and partitions are ``kit.logs.fields``' business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

JAVA = "java"
OLD_CONSUMER = "zookeeper"
LIBRDKAFKA = "librdkafka"
PYTHON = "kafka-python"
BROKER = "broker"

CONTEXT = "context"
CONTINUATION = "continuation"


@dataclass(frozen=True)
class Wording:
    """One text of one kind of client. ``versions``: first and last that print it (``+``: still does)."""

    kind: str
    template: str
    versions: str
    source: str = JAVA

    @property
    def head(self) -> str:
        """The fixed text that a message of this wording begins with; may be empty."""
        return self.template.partition("{}")[0]

    @property
    def pattern(self) -> str | None:
        """A regular expression for the whole; None where the head says all."""
        head, gap, rest = self.template.partition("{}")
        if not gap or not rest.strip():
            return None
        return "^" + ".*?".join(re.escape(part) for part in [head, *rest.split("{}")])


def _rows(source: str, text: str) -> list[Wording]:
    rows = [line.split("|", 2) for line in text.strip().splitlines() if line.strip()]
    return [Wording(kind.strip(), template.strip(), versions.strip(), source) for kind, versions, template in rows]


CLASSIC = _rows(
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
offset_reset|2.3+|Truncation detected for partition
offset_reset|2.3+|Seeking to
offsets_failed|0.10.2+|Offset fetch
offsets_failed|0.10-0.11|Group {} failed to fetch offset
offsets_failed|1.0+|Failed to fetch offset for partition
commit_ok|0.9, 1.0+|Committed offset
commit_ok|0.10-0.11|Group {} committed offset
context|0.9+|Committing offsets:
context|0.10.2+|Completed au
context|1.0+|Completed asynchronous auto-commit
context|0.10.2+|Sending asynchronous auto-commit
context|0.10.2+|Sending synchronous auto-commit
commit_failed|0.9-0.10.1|Auto offset commit failed
commit_failed|0.10.2+|Auto-commit
commit_failed|1.0+|Asynchronous auto-commit of offsets
commit_failed|1.0+|Synchronous auto-commit of offsets
commit_failed|0.9+|Offset commit
commit_failed|0.10-0.11|Group {} failed to commit partition
commit_failed|0.9|Error committing partition
commit_failed|0.9|Error {} occurred while committing offsets
commit_failed|0.9+|Not authorized to commit
commit_failed|2.3+|Failing OffsetCommit request
commit_failed|2.6+|OffsetCommit failed
context|2.5+|The following partitions still have unstable offsets
context|2.5+|Ignoring the returned
listener_failed|0.9+|User provided listener
closing|0.10.2+|Close timed out with
""",
)

CONSUMER_PROTOCOL = _rows(
    JAVA,
    """
state_change|3.7+|Member {} with epoch {} transitioned from
state_change|3.7+|Member {} with epoch {} transitioned to
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
member_fatal|3.7+|No action taken to join the group
heartbeat_ok|3.7-3.9|GroupHeartbeat responded successfully
heartbeat_failed|3.7-3.9|GroupHeartbeat failed
heartbeat_failed|3.7-3.9|GroupHeartbeatRequest failed
heartbeat_ok|4.0+|ConsumerGroupHeartbeat{} responded successfully
heartbeat_failed|4.0+|ConsumerGroupHeartbeat{} failed
listener_failed|3.7+|onPartitions
context|3.7+|OffsetCommit completed successfully
context|3.7+|Enqueuing
context|3.8+|OffsetCommit timeout
commit_failed|3.7+|OffsetFetch failed
context|3.7+|Refreshing committed offsets
""",
)

CONTEXTS = _rows(
    JAVA,
    """
metadata|0.9|Sending metadata request ClientRequest(
metadata|0.9+|Updated cluster metadata version
context|0.9+|Initiating connection to node
""",
)

OLD = _rows(
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
session_expired|0.8-1.1|ZK expired
released|0.8-1.1|Releasing partition ownership
owned|0.8-1.1|{} successfully owned partition {} for topic
claiming|0.8-1.1|{} attempting to claim partition
waiting_for_owner|0.8-1.1|waiting for the partition ownership to be deleted
selected|0.8-1.1|Consumer {} selected partitions :
leader_assigning|0.8-1.1|Consumer {} rebalancing the following partitions
not_assigned|0.8-1.1|No broker partitions consumed by consumer thread
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
commit_failed|0.8-1.1|exception during autoCommit
commit_failed|0.8-1.1|Error while committing offsets
context|0.8-1.1|Could not commit offsets
context|0.8-1.1|Could not fetch offsets
context|0.8-1.1|Creating topic event watcher
context|0.8-1.1|Topics to consume
""",
)

KAFKA_PYTHON = _rows(
    PYTHON,
    """
coordinator_query|1.3+|Sending group coordinator request for group
leader_assigning|1.3+|Elected group leader -- performing partition assignments
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
heartbeat_failed|1.3+|Heartbeat failed
heartbeat_failed|1.3+|Heartbeat session expired
poll_timeout|1.4+|Heartbeat poll expired, leaving group
heartbeat_failed|1.3+|Heartbeat: local member_id was not recognized
heartbeat_ok|2.2+|Received heartbeat response for group
heartbeat_ok|3.0|Received successful heartbeat
heartbeat_sent|1.3+|Heartbeat: 
heartbeat_sent|1.4+|Sending heartbeat for group
context|1.3+|Heartbeat
context|1.3+|Received JoinGroup response
context|1.3+|Received SyncGroup response
commit_failed|1.3+|Auto offset commit failed
commit_failed|1.3+|OffsetCommit for group {} failed
commit_ok|1.3+|Successfully auto-committed
context|1.3+|Sending offset-commit request
context|1.3+|Starting new heartbeat thread
context|1.3+|Stopping heartbeat thread
context|1.3+|Group state is not stable
""",
)

BROKERS = _rows(
    BROKER,
    """
group_rebalancing|0.9-0.10|Preparing to restabilize group
group_rebalancing|0.11+|Preparing to rebalance group
group_stabilized|0.9+|Stabilized group
group_assigned|0.9+|Assignment received from leader
group_empty|0.10.1+|Group {} with generation {} is now empty
group_dead|0.9-0.10.0|Group {} generation {} is dead and removed
group_dead|0.10.1+|Group {} transitioned to Dead in generation
group_dead|2.3+|Group {} is dead, skipping rebalance stage
group_failed|2.3+|Group {} could not complete rebalance
group_members_removed|2.7+|Group {} remove
member_failed|0.11+|Member {} in group {} has failed, removing it
member_left|0.11-2.3|Member {} in group {} has left, removing it
member_left|2.4-2.8|Member[group.instance.id {} in group {} has left
member_left|3.0+|Member {} has left group {} through explicit `LeaveGroup`
member_left|3.7+|[Group {}] {}ember {} has left group through explicit `LeaveGroup`
member_failed|2.2+|Pending member {} has been removed after session timeout
member_left|2.2+|Pending member
member_joining|2.4+|Dynamic {}ember with unknown member id
member_joining|2.5+|Static Member with unknown member id
member_joining|2.5-2.8|Dynamic Member with specific member id
member_joining|2.3+|Static member with groupInstanceId=
member_joining|2.3-2.8|Static member {} with unknown member id rejoins
member_joining|3.0+|Pending dynamic member with id
member_joining|2.5-2.8|Adding new static member
context|2.3+|Static member
member_fenced|2.3+|Request memberId={} is fenced by
leader_replaced|2.3+|Group leader [
empty_assignment|2.5+|Setting empty assignments for members
empty_assignment|2.5+|Sending empty assignment to member
group_loaded|0.9-2.8|Loading group metadata for
group_loaded|3.6+|Loaded c
group_unloaded|0.9+|Unloading group metadata for
context|2.8+|Loaded member
context|0.9+|Received notification of heartbeat expiration
context|2.3+|Member id {} was not found
context|2.2+|Member {} has already been removed
coordinator_elected|2.8+|Elected as the group coordinator for partition
coordinator_resigned|2.8+|Resigned as the group coordinator for partition
context|0.9+|The following groups were deleted
context|2.4+|The following offsets of the group
context|2.0+|Removed 
context|0.9+|Scheduling 
context|0.9+|Finished loading
context|0.9+|Finished unloading
context|0.9+|Loading offsets and group metadata
context|3.6+|Started unloading
context|2.8+|Already loading offsets
context|2.8+|Not loading offsets
context|0.9+|Starting up.
context|0.9+|Startup complete.
context|0.9+|Shutting down.
context|0.9+|Shutdown complete.
context|3.7+|Generated {} tombstone records
context|0.10.1+|BrokerId {} is no longer a coordinator
store_failed|0.10.2+|Failed to persist metadata for group
store_failed|0.10.1+|Failed to write empty metadata for group
store_failed|0.9+|Appending metadata message for group
epoch_bumped|3.6+|[GroupId {}] Bumped group epoch to
member_joining|3.6+|[GroupId {}] Member {} joins the consumer group
member_joining|3.7+|[GroupId {}] Static member {} joins the consumer group
member_joining|3.7+|[GroupId {}] Static member {} re-joins the consumer group
member_joining|3.8+|[GroupId {}] Dynamic member with unknown member id joins
member_left|3.6+|[GroupId {}] Member {} left the consumer group
member_left|3.7+|[GroupId {}] Static Member {} left the consumer group
member_left|3.7+|[GroupId {}] Static Member {} temporarily left
member_fenced|3.6+|[GroupId {}] Member {} fenced from the group
member_fenced|3.7+|[GroupId {}] Static member {} fenced by existing member
member_assigned|3.8+|[GroupId {}] Member {} new assignment state:
member_assigned|3.6-3.7|[GroupId {}] Member {} transitioned from
target_computed|3.6+|[GroupId {}] Computed a new target assignment
context|3.6+|[GroupId {}] Computed new subscription metadata
context|3.6+|[GroupId {}] Member {} updated its subscribed
context|3.6+|[GroupId {}] Could not fence
context|3.6+|[GroupId {}] Ignoring re
context|3.7+|[GroupId {}] Expired offset
context|3.6+|[GroupId {}] Committing
context|4.0+|[GroupId {}] Creating a simple consumer group
group_unloaded|3.8+|[GroupId={}] Unload
""",
)

RDKAFKA = _rows(
    LIBRDKAFKA,
    """
coordinator_failed|0.9+|Group "{}": no broker available for coordinator query
coordinator_query|0.9+|Group "{}": querying for coordinator
coordinator_found|0.9+|Group "{}" coordinator is
context|0.9+|Group "{}" changing coordinator
context|1.0+|Group "{}" coordinator set to broker
coordinator_lost|1.0+|Group "{}" broker {} is no longer coordinator
coordinator_lost|0.9+|Group "{}": marking the coordinator
coordinator_failed|0.9+|Group "{}" {}response error
join_requested|0.11+|Joining group "
context|0.9+|Group "{}": join with
joined|0.9+|JoinGroup response: GenerationId
join_failed|0.9+|JoinGroup response:
leader_assigning|1.6+|I am elected leader for group
leader_assigning|0.9-1.5|Elected leader for group
assignment_computed|1.6+|Group "{}" {} assignment for {} member(s) finished
context|1.6+|Group "{}" running
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
session_timeout|1.5+|Consumer group session timed out
state_change|0.9+|Group "{}" changed join state
state_change|0.9+|Group "{}" changed state
member_id|0.9+|Group "{}": updating member id
offsets_fetching|1.6+|Fetching committed offsets for
offset_found|1.6+|OffsetFetchResponse:
context|2.0+|Group {} OffsetFetchRequest
commit_failed|1.5+|Offset commit ({}) failed
commit_failed|0.9+|OffsetCommit failed for
commit_ok|0.9+|OffsetCommit for {} returned: Success
context|0.9+|OffsetCommit for {} returned: Local: No offset stored
commit_failed|0.9+|OffsetCommit for
subscribed|0.9+|Group "{}": subscribe to new
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
context|0.9+|Unsupported assignment strategy
context|0.9+|Leave
""",
)

BY_SOURCE = {
    JAVA: [*CLASSIC, *CONSUMER_PROTOCOL, *CONTEXTS],
    PYTHON: [*KAFKA_PYTHON, *CLASSIC],
    OLD_CONSUMER: OLD,
    BROKER: BROKERS,
    LIBRDKAFKA: RDKAFKA,
}
"""In the order in which they are tried for a line whose kind of client is known."""

HEAD_LENGTH = 12
"""Of so many characters is the head that a message of a Java client ≥ 1.0 is looked up by."""
