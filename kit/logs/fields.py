"""Ids, partitions, offsets and reasons in a message; what a message does not say is null.

Those with many patterns are texts of SQL about a column that is named (``kit.logs.sql`` says why). Every pattern stops
where the value's own syntax ends, so that text pasted behind a record doesn't run into a value.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from kit.logs import sql, wordings

if TYPE_CHECKING:
    from pyspark.sql import Column

CONSUMER_PREFIX = r"^\[Consumer (?:instanceId=([^,\]]+), )?clientId=([^\]]*?)(?:, groupId=([^\]]*))?\]:? "
BROKER_PREFIX = r"^\[Group(?:Coordinator|MetadataManager)[^\]]*\]:? "
OLD_PREFIX = r"^\[([^\]\s]+_[^\]\s]+-\d{13}-[0-9a-f]{8})\],? "
RDKAFKA_PREFIX = r"^(?:\[[^\]]*\] )?(?:\[thrd:[^\]]*\]+: )?(?:[\w.:-]+/(?:bootstrap|\d+): )?"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_COORDINATOR_NODE, _FIRST_COORDINATOR_NODE = 2147483647, 2147000000
"""A consumer calls its connection to the coordinator the first number minus the broker's id; what is above the second
is such a name."""

_TOPIC_PARTITION = r"(?<![\w.-])([\w.-]+-\d+)(?![\w.-])"
_GROUPS = (
    r"group_id=([^,}\s]+)",
    r"groupId='?([^,')\]\s]+)",
    r"^\[GroupId ([^\]]+)\]",
    r"^\[Group ([^\]]+)\]",
    r"[Gg]roup \"([^\"]+)\"",
    r"group id \"([^\"]+)\"",
    r"(?:restabilize|rebalance|Stabilized) group (\S+)",
    r"\b(?:joining|joined) group '?([^\s':,]+?)'?(?: with| <|$| \(|\s)",
    r"for (?:leader \S+ for )?group '?(?!at |with |due |id )([^\s:'{,]+?)'?(?:[:,]|\.?(?:\s|$))",
    r"\b(?:in|of|joins|left|consumer|classic) group \(?'?(?!because|anymore|at |with )"
    r"([^\s:'{,)]+?)'?(?:[,):]|\.?(?:\s|$))",
    r"^Group (\S+) (?:fetching|has no|committed|failed|with gen|generation|transitioned|is dead|is rebal|could|re|l)",
    r"group metadata for (\S+) with generation",
    r"join group (\S+) (?:rejected|failed)",
    r"^(?:OffsetCommit|SyncGroup) for group (\S+)",
    r"^LeaveGroup request for group (\S+)",
)
_MEMBERS = (
    r"memberId='([^']+)'",
    r"member_id='([^']+)'",
    r"memberId=([^,'}\s)]+)",
    r"(?<!leader)[{,]member_id=([^,}\]\s]+)",
    r"my MemberId ([^,]+),",
    r"member id \"([^\"]+)\" with",
    r"member of id \"([^\"]+)\"",
    r"of member id \"([^\"]+)\"",
    r"-> \"(?!\(not-set\))([^\"]+)\"$",
    r"^\[Group(?:Id)? [^\]]+\] (?:Static |Dynamic )?[Mm]ember (?:\[member id )?(\S+?)(?: |\])(?!member)",
    r"[Mm]ember (?:id )?(\S+) (?:with epoch|sending|in group|has left|is triggering|sent|attempting|callback)",
    r"member\.id ([^\]\s]+)\]",
    r"[Cc]reated a new member(?: id)? (\S+)",
    r"memberId (\S+) ",
    r"member with id (\S+) joins",
    r"MemberMetadata\(memberId=([^,]+),",
    r"Member MemberMetadata\((?:[^)]*?)memberId=([^,]+),",
    r"assigning new member id (\S+?),",
    r"(?:begin|end) (?:registering|rebalancing) consumer (\S+)",
    r"^(?:Consumer )?(\S+?)(?:-\d+)? (?:successfully owned|attempting to claim|selected partitions)",
    r"^Consumer (\S+) rebalancing the following",
)
_GENERATIONS = (
    r"generation_id=(\d+)",
    r"generationId=(\d+)",
    r"GenerationId (\d+),",
    r"generation[ -]id (\d+)",
    r"\(generation (\d+)\)",
    r"generation (\d+)",
    r"Bumped group epoch to (\d+)",
    r"assignment for epoch (\d+)",
    r": epoch=(\d+), previousEpoch",
    r"(?<!local )(?<!leader )[Ee]poch (\d+)",
    r"memberEpoch=(\d+)",
    r"\[(\d+)\] \S+$",
)
_LEADERS = (
    r"leader_id='?([^,'}\]\s]+)",
    r"LeaderId ([^,]+?)(?: \(me\))?,",
    r"leader='([^']+)'",
    r"leaderId=([^,)\s]+)",
    r"received from leader (\S+) for group",
    r"Member (\S+) was elected as the new leader",
)
_ASSIGNORS = (
    r"group_protocol='?([^,'}\s]+)",
    r"protocolName='([^']+)'",
    r"protocol='([^']+)'",
    r"groupProtocol=([^,)\s]+)",
    r"Protocol ([\w.-]+),",
    r"^Performing ([\w.$-]+) assignment",
    r"using strategy ([\w.$-]+)",
    r"assignments using ([\w.$-]+)",
    r"with '([^']+)' assignor",
    r"running (\S+) assignor",
)
_REASONS = (
    r"\(reason: (.*)\)\.?\s*$",
    r"client reason: (.*?)\.?\s*$",
    r"due to cause: (.*?)\.? ?(?:isDisconnected|Rediscovery)",
    r" due to:? (.*?)\s*$",
    r" since (.*?)\s*$",
    r" because (.*?)\s*$",
    r"with \d+ assigned partition\(s\)(?: \(lost\))?: (.*)$",
    r"partition\(s\) lost: (.*)$",
    r"Rejoining group[^:]*: (.*)$",
    r"rebalance failed (.*)$",
    r"[Ff]ailed[^:]*: (.+?)\s*$",
    r"error(?: response)?[^:]*: (.+?)\s*$",
    r"timed out (.*?)(?:: revoking|$)",
    r"^Topic info for path (\S+ changed)",
)
_COORDINATORS = (
    r"coordinator (?:is )?([\w.-]+:\d+)(?: |$)",
    r"broker ([\w.-]+:\d+)",
    r"node [^ ]+ at ([\w.-]+:\d+)",
)
_COORDINATOR_IDS = (
    r"coordinator=\{node_id=(\d+)",
    r"coordinator \S+ \(id: (\d+)",
    r"coordinator is \S+ id (\d+)",
    r"coordinator (\d+)",
    r"connection to node (\d+)",
)
_OFFSETS = (
    r"FetchPosition\{offset=(\d+)",
    r"committed offset (\d+)",
    r"to (?:offset|position) (\d+)",
    r"[Cc]ommitted offset (\d+)",
    r"at offset (\d+)",
    r"offset (\d+)",
)


def first_of(text: str, patterns: tuple[str, ...]) -> str:
    """The first group of the first pattern that is found and not empty."""
    return f"coalesce({', '.join(sql.extracted(text, pattern) for pattern in patterns)})"


def without_client_prefix(message: str) -> str:
    """The message as its wording begins."""
    return sql.without(message, (CONSUMER_PREFIX, BROKER_PREFIX, OLD_PREFIX))


def source_of(message: Column, logger: Column, layout: Column) -> Column:
    """Which kind of client or server prints so: one of ``wordings``' sources."""
    is_broker = message.rlike(BROKER_PREFIX) | logger.rlike(r"coordinator\.(?:group\.)?Group|k\.c\.g?\.?Group")
    is_new_broker = message.rlike(
        r"^\[(?:Group(?:Id)? |ExpirationReaper-|(?:Transaction|Share)Coordinator |\w+-coordinator-|broker-\d"
        r"|NodeToController|BrokerLifecycleManager |QuorumController )"
    )
    is_old = message.rlike(rf"{OLD_PREFIX}|^Consumer \S+ rebalancing the following") | logger.rlike(
        r"kafka\.consumer\.|k\.c\.Zookeeper|ZookeeperConsumerConnector"
    )
    is_rdkafka = (layout == wordings.LIBRDKAFKA) | message.rlike(r"^\[[^\]]*#consumer-\d+\] |\[thrd:")
    is_python = logger.rlike(
        r"^kafka\.(?:coordinator|consumer\.(?:group|sub|fetch)|cluster|client|net\.|protocol\.|metrics\.)"
    )
    return (
        F.when(is_rdkafka, wordings.LIBRDKAFKA)
        .when(message.startswith("[Consumer "), wordings.JAVA)
        .when(is_broker | is_new_broker, wordings.BROKER)
        .when(is_python, wordings.PYTHON)
        .when(is_old, wordings.OLD_CONSUMER)
        .otherwise(wordings.JAVA)
    )


def kind_of(message: Column, source: Column) -> Column:
    """The kind of event of the first wording that fits; null: the wording isn't known."""
    kinds = [F.when(source == name, _kind(message, known)) for name, known in wordings.BY_SOURCE.items()]
    return F.coalesce(*kinds)


def _kind(message: Column, known: list[wordings.Wording]) -> Column:
    """A constant array that is searched: as so many conditions, Spark's compiler gives up on it."""
    table = [{"head": wording.head, "parts": wording.parts, "kind": wording.kind} for wording in known]
    rows = F.from_json(F.lit(json.dumps(table)), "array<struct<head string, parts array<string>, kind string>>")
    fitting = F.filter(rows, lambda wording: message.startswith(wording["head"]) & _has_parts(message, wording))
    return F.get(fitting, F.lit(0))["kind"]


def _has_parts(message: Column, wording: Column) -> Column:
    """Whether each part is found behind the one before it."""

    def behind(end: Column, part: Column) -> Column:
        start = F.call_function("locate", part, message, end)
        return F.when(start > 0, start + F.length(part)).otherwise(0)

    return F.aggregate(wording["parts"], F.length(wording["head"]) + 1, behind) > 0


def consumer_prefix(message: str) -> dict[str, str]:
    """``instanceId``, ``clientId``, ``groupId`` of a Java client ≥ 1.0; the word null is no group."""
    parts = {"group_instance_id": 1, "client_id": 2, "prefix_group": 3}
    found = {name: sql.extracted(message, CONSUMER_PREFIX, n) for name, n in parts.items()}
    return found | {"prefix_group": f"nullif({found['prefix_group']}, 'null')"}


def client_of(text: str, member_id: str) -> str:
    """The client id where the prefix has none: of librdkafka's line, of a request dump, of the member id."""
    printed = first_of(text, (r"[|\[]([^|\[\]]+)#consumer-\d+[|\]]", r"client_id=([^,}\]]+)"))
    return f"coalesce({printed}, {sql.extracted(member_id, rf'^(.+)-{UUID}$')})"


def old_consumer(message: str) -> str:
    """The old consumer's id, ``<group>_<host>-<ms>-<hex>``, that stands before its lines."""
    return sql.extracted(message, OLD_PREFIX)


def old_group(consumer: str) -> str:
    """Its group: what is before the last ``_`` (hosts hold none)."""
    return sql.extracted(consumer, r"^(.+)_[^_]+-\d{13}-[0-9a-f]{8}")


def group_of(message: str) -> str:
    return first_of(message, _GROUPS)


def member_of(message: str) -> str:
    return first_of(message, _MEMBERS)


def generation_of(message: str) -> str:
    """The generation, or the epoch of the new protocol; −1 is none."""
    return f"try_cast({first_of(message, _GENERATIONS)} AS bigint)"


def leader_of(message: str) -> str:
    return first_of(message, _LEADERS)


def assignor_of(message: str) -> str:
    return f"nullif({first_of(message, _ASSIGNORS)}, 'null')"


def offset_of(message: str) -> str:
    return f"try_cast({first_of(message, _OFFSETS)} AS bigint)"


def reason_of(message: str) -> str:
    """Why, in the log's own words."""
    return first_of(message, _REASONS)


def coordinator_of(message: str) -> str:
    """``host:port`` of the coordinator."""
    pattern = r"host='?([^,'}]+)'?,\s*port=(\d+)"
    host, port = (sql.extracted(message, pattern, n) for n in (1, 2))
    return f"coalesce({host} || ':' || {port}, {first_of(message, _COORDINATORS)})"


def coordinator_id_of(message: str) -> str:
    """The coordinator's broker id, given as such or as the connection's."""
    printed = f"try_cast({first_of(message, _COORDINATOR_IDS)} AS bigint)"
    return f"cast(if({printed} > {_FIRST_COORDINATOR_NODE}, {_COORDINATOR_NODE} - {printed}, {printed}) AS int)"


def partitions_of(message: Column, kind: Column) -> Column:
    """``topic-partition`` as printed, of the kinds of events that list them; empty if the list is."""
    listing = ["assigned", "revoked", "lost", "offsets_fetching", "assignment_acked", "target_received"]
    single = ["offset_found", "offset_missing", "offset_reset", "commit_ok", "commit_failed", "owned", "claiming"]
    text = F.regexp_replace(message, r"TopicPartition\(topic='([^']+)', partition=(\d+)\)", "$1-$2")
    text = F.regexp_replace(text, r"\bpartition (\d+) for topic ([\w.-]+)", "partition $2-$1")
    text = F.regexp_replace(text, r"([\w.-]+)(?:\([\w-]+\))? ?\[(\d+)\]", "$1-$2")
    listed = F.regexp_extract(text, r"(?:partitions?:?|revoking|assignment) *[\[({\" ]*((?:[\w.-]+-\d+(?:, *)?)*)", 1)
    one = F.regexp_extract(
        text, r"(?:^(?=\S+: offset reset)|(?:partitions?|failed for|Response:|owned|claim) )([\w.-]+-\d+)(?![\w-])", 1
    )
    found = F.regexp_extract_all(F.when(kind.isin(single), one).otherwise(listed), F.lit(_TOPIC_PARTITION), 1)
    # librdkafka counts here and lists in lines of their own.
    counted = message.rlike(r"of \d+ partition\(s\)|for \d+ pending")
    return F.when(kind.isin(single) & (F.size(found) > 0), found).when(kind.isin(listing) & ~counted, found)
