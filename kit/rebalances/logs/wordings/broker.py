"""Define the lines that the coordinators in the brokers print: the old one in Scala, the new one since 3.6. And the
errors that they answer, as phpkafka prints them."""

from __future__ import annotations

from kit.rebalances.logs.wordings.template import BROKER, PHPKAFKA, rows

BROKERS = rows(
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
group_loaded|2.3+|Static member {} loaded with member id
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
context|0.9+|Failed to parse Consumer Protocol
context|2.5-2.8|Dynamic Member
member_joining|2.5-2.8|Static Member
context|2.2+|Attempt to add rejoining member
sync_expired|2.8+|Received unexpected notification of sync expiration
context|3.8+|Received notification of sync expiration
context|4.0+|Creating simple consumer group
context|2.1+|Expired offsets from group
member_fenced|2.3-2.8|given member.id
store_failed|3.4+|Failed to invoke
store_failed|0.9+|Failed to mark
store_failed|0.10.1+|Failed to append
store_failed|0.9+|Metadata from group
commit_failed|0.9+|Offset commit {} from group
store_failed|0.9+|Error in loading offsets
store_failed|0.10.2+|Error loading offsets
context|0.9-1.1|Offset load from
context|0.9+|Could not fetch offsets for group
context|0.9+|Attempt to load group
context|0.9+|No log found for
context|0.10.2+|Attempted to load offsets
context|0.9+|Collecting expired offsets
context|0.9+|Found {} expired offsets
context|0.11+|group: {} with leader:
context|0.11+|Loaded group metadata
context|2.0+|Loaded offsets and group metadata
context|0.11+|Group {} has moved away
context|2.8+|Started loading offsets
context|2.8+|Not removing offsets
context|3.4+|Unknown message key
context|3.6+|Scheduled execution of
context|3.6+|Ignored high watermark
context|3.6+|Ignored new metadata image
context|3.6+|The write event {} for the timer
context|3.6+|The coordinator {} is already
context|3.6+|Cannot load coordinator
context|3.6+|Skipped the materialization
context|3.9+|Updated committed offset of
context|4.1+|The write event for the task
store_failed|3.6+|Failed to complete the loading
store_failed|4.1+|Failed to unload coordinator
store_failed|3.9+|The state machine of the coordinator
context|3.8+|Skip downgrading the consumer group
downgrade_refused|3.8+|Cannot downgrade
upgrade_refused|3.8+|Cannot upgrade
context|3.8+|Cannot find the group
context|4.0+|Cannot complete join phase of group
group_loaded|3.6|Loaded generic group
context|3.8+|Loaded group {} with an unknown group type
context|3.9+|onUnloaded group
context|0.9+|Starting up.
context|0.9+|Startup complete.
context|0.9+|Shutting down.
context|0.9+|Shutdown complete.
context|3.7+|Generated {} tombstone records
context|0.10.1+|BrokerId {} is no longer a coordinator
store_failed|0.10.2+|Failed to persist metadata for group
store_failed|0.10.1+|Failed to write empty metadata for group
store_failed|0.9+|Appending metadata message for group
member_fenced|3.7+|[GroupId {}] Static member {} cannot join the group
member_joining|3.9+|[GroupId {}] Member {} joins the share group
member_left|3.9+|[GroupId {}] Member {} left the share group
epoch_bumped|3.6+|[GroupId {}] Bumped group epoch to
member_joining|3.6+|[GroupId {}] Member {} joins the consumer group
member_joining|3.7+|[GroupId {}] Static member {} joins the consumer group
member_joining|3.7+|[GroupId {}] Static member {} re-joins the consumer group
member_joining|3.8+|[GroupId {}] Dynamic member with unknown member id joins
member_left|3.6+|[GroupId {}] Member {} left the consumer group
context|3.7+|[GroupId {}] Static Member {} temporarily left
member_left|3.7+|[GroupId {}] Static Member {} left the consumer group
context|4.1+|[GroupId {}] Static member {} temporarily left
member_left|4.1+|[GroupId {}] Static member {} left the consumer group
member_left|4.1+|[GroupId {}] {} member {} has left group through explicit `LeaveGroup`
group_converted|4.1+|[GroupId {}] Converted the classic group to a consumer group
group_converted|4.1+|[GroupId {}] Converted the empty classic group to a consumer group
context|4.1+|[GroupId {}] Converted the {}consumer group to a classic group
member_joining|4.1+|[GroupId {}][MemberId {}] Member joins the streams group
member_joining|4.1+|[GroupId {}][MemberId {}] Static member {}joins the streams group
epoch_bumped|4.1+|[GroupId {}][MemberId {}] Bumped streams group epoch to
member_assigned|4.1+|[GroupId {}][MemberId {}] Member's new assignment state:
context|4.1+|[GroupId {}][MemberId {}] Static member {} temporarily left
member_left|4.1+|[GroupId {}][MemberId {}] Member {} left the streams group
member_left|4.1+|[GroupId {}][MemberId {}] Static member {} left the streams group
member_fenced|4.1+|[GroupId {}] Streams member {} fenced from the group
group_converted|4.1+|[GroupId {}] Converted the empty classic group to a streams group
context|4.1+|[GroupId {}] Converted the empty streams group to a classic group
context|4.1+|[GroupId {}] Could not fence streams member
context|4.1+|[GroupId {}] C{}ing shutdown requested for the streams application
context|4.4+|[GroupId {}] Requested topology description push
context|4.4+|[GroupId {}] Skipping delayed target assignment
context|4.4+|[GroupId {}] Computed new metadata hash
context|4.1+|[GroupId {}][MemberId {}]
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
context|0.10+|[ExpirationReaper-
context|0.11+|[TransactionCoordinator id=
context|3.9+|[ShareCoordinator id=
context|3.6+|[group-coordinator-
context|4.0+|[share-coordinator-
context|3.0+|[broker-{}-to-controller-heartbeat-
context|3.0+|[NodeToControllerChannelManager
context|3.0+|[BrokerLifecycleManager
context|3.0+|[QuorumController
context|0.9+|Completed request:
context|0.9+|Handling request:
context|3.6+|Group coordinator is already
context|3.9+|Share coordinator is already
context|3.6+|Coordinator runtime
context|3.6+|Closing coordinator runtime
context|3.6+|Coordinator loader is already
context|3.7+|[GroupId {}] Removing expired offset
""",
)

PHPKAFKA_LINES = rows(
    PHPKAFKA,
    """
out_of_range|1.0+|KafkaErrorException: [1] The requested offset is not within
coordinator_failed|1.0+|KafkaErrorException: [14] The coordinator is loading
coordinator_failed|1.0+|KafkaErrorException: [15] The coordinator is not available
coordinator_failed|1.0+|KafkaErrorException: [16] This is not the correct coordinator
member_reset|1.0+|KafkaErrorException: [22] Specified group generation id is not valid
join_failed|1.0+|KafkaErrorException: [23] The group member's supported protocols are incompatible
join_failed|1.0+|KafkaErrorException: [24] The configured groupId is invalid
member_reset|1.0+|KafkaErrorException: [25] The coordinator is not aware of this member
join_failed|1.0+|KafkaErrorException: [26] The session timeout is not within
rebalancing|1.0+|KafkaErrorException: [27] The group is rebalancing
coordinator_failed|1.0+|KafkaErrorException: [30] Group authorization failed
context|1.0+|KafkaErrorException: [79] The group member needs to have a valid member id
join_failed|1.0+|KafkaErrorException: [81] The consumer group has reached its max size
member_fenced|1.0+|KafkaErrorException: [82] The broker rejected this static consumer
""",
)
"""phpkafka prints no line of its own: it throws what the coordinator answers, by Kafka's number and text."""
