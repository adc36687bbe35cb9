"""Ids, partitions, offsets and reasons in a message; what a message does not say is null.

All are expressions of SQL about expressions. Every pattern stops where the value's own syntax ends, so that text pasted
behind a record doesn't run into a value.
"""

from __future__ import annotations

import json

from kit.logs import sql, wordings

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
_BROKERS_CLASS = r"coordinator\.(?:group\.)?Group|k\.c\.g?\.?Group"
_NEW_BROKER_PREFIX = (
    r"^\[(?:Group(?:Id)? |ExpirationReaper-|(?:Transaction|Share)Coordinator |\w+-coordinator-|broker-\d"
    r"|NodeToController|BrokerLifecycleManager |QuorumController )"
)
_OLD_CLASS = r"kafka\.consumer\.|k\.c\.Zookeeper|ZookeeperConsumerConnector"
_PYTHONS_MODULE = r"^kafka\.(?:coordinator|consumer\.(?:group|sub|fetch)|cluster|client|net\.|protocol\.|metrics\.)"
_LISTING = ("assigned", "revoked", "lost", "offsets_fetching", "assignment_acked", "target_received")
_SINGLE = ("offset_found", "offset_missing", "offset_reset", "commit_ok", "commit_failed", "owned", "claiming")
_SPELLED = (
    (r"TopicPartition\(topic='([^']+)', partition=(\d+)\)", "$1-$2"),
    (r"\bpartition (\d+) for topic ([\w.-]+)", "partition $2-$1"),
    (r"(?<![\w.-])([\w.-]++)(?:\([\w-]+\))? ?\[(\d+)\]", "$1-$2"),
)
_LIST = r"(?:partitions?:?|revoking|assignment) *[\[({\" ]*((?:[\w.-]+-\d+(?:, *)?)*)"
_ONE = r"(?:^(?=\S+: offset reset)|(?:partitions?|failed for|Response:|owned|claim) )([\w.-]+-\d+)(?![\w-])"
_COUNTED = r"of \d+ partition\(s\)|for \d+ pending"
"""librdkafka counts there and lists in lines of their own."""


def first_of(text: str, patterns: tuple[str, ...]) -> str:
    """The first group of the first pattern that is found and not empty."""
    return f"coalesce({', '.join(sql.extracted(text, pattern) for pattern in patterns)})"


def without_client_prefix(message: str) -> str:
    """The message as its wording begins."""
    return sql.without(message, (CONSUMER_PREFIX, BROKER_PREFIX, OLD_PREFIX))


def source_of(message: str, logger: str, layout: str) -> str:
    """Which kind of client or server prints so: one of ``wordings``' sources."""

    def is_like(text: str, pattern: str) -> str:
        return f"{text} RLIKE {sql.regex(pattern)}"

    is_broker = is_like(message, BROKER_PREFIX) + " OR " + is_like(logger, _BROKERS_CLASS)
    is_new_broker = is_like(message, _NEW_BROKER_PREFIX)
    is_old = (
        is_like(message, rf"{OLD_PREFIX}|^Consumer \S+ rebalancing the following")
        + " OR "
        + is_like(logger, _OLD_CLASS)
    )
    is_rdkafka = f"{layout} = '{wordings.LIBRDKAFKA}' OR " + is_like(message, r"^\[[^\]]*#consumer-\d+\] |\[thrd:")
    return f"""CASE
        WHEN {is_rdkafka} THEN '{wordings.LIBRDKAFKA}'
        WHEN startswith({message}, '[Consumer ') THEN '{wordings.JAVA}'
        WHEN {is_broker} OR {is_new_broker} THEN '{wordings.BROKER}'
        WHEN {is_like(logger, _PYTHONS_MODULE)} THEN '{wordings.PYTHON}'
        WHEN {is_old} THEN '{wordings.OLD_CONSUMER}'
        ELSE '{wordings.JAVA}' END"""


def kind_of(message: str, source: str) -> str:
    """The kind of event of the first wording that fits; null: the wording isn't known."""
    kinds = [f"WHEN '{name}' THEN {_kind(message, known)}" for name, known in wordings.BY_SOURCE.items()]
    return f"CASE {source} {' '.join(kinds)} END"


def _kind(message: str, known: list[wordings.Wording]) -> str:
    """A constant array that is searched: as so many conditions, Spark's compiler gives up on it.

    Lambdas of Python's would get new names, hence newly compiled code, at every read.
    """
    table = json.dumps([{"head": each.head, "parts": each.parts, "kind": each.kind} for each in known])
    known_rows = f"from_json({sql.json(table)}, 'array<struct<head string, parts array<string>, kind string>>')"
    start = f"locate(part, {message}, end)"
    # Each part stands behind the one before; 0: it does not.
    behind = f"(end, part) -> if({start} > 0, {start} + length(part), 0)"
    fits = f"startswith({message}, known.head) AND aggregate(known.parts, length(known.head) + 1, {behind}) > 0"
    return f"get(filter({known_rows}, known -> {fits}), 0).kind"


def consumer_prefix(message: str) -> dict[str, str]:
    """``instanceId``, ``clientId``, ``groupId`` of a Java client ≥ 1.0; the word null is no group."""
    parts = {"group_instance_id": 1, "prefix_client": 2, "prefix_group": 3}
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


def partitions_of(message: str, kind: str) -> str:
    """``topic-partition`` as printed, of the kinds of events that list them; empty if the list is."""
    text = message
    for pattern, plain in _SPELLED:
        text = sql.replaced(text, pattern, plain)
    one, listed = (f"regexp_extract({text}, {sql.regex(pattern)}, 1)" for pattern in (_ONE, _LIST))
    found = f"regexp_extract_all(if({kind} IN {_SINGLE}, {one}, {listed}), {sql.regex(_TOPIC_PARTITION)}, 1)"
    is_counted = f"{message} RLIKE {sql.regex(_COUNTED)}"
    return f"""CASE
        WHEN {kind} IN {_SINGLE} AND size({found}) > 0 THEN {found}
        WHEN {kind} IN {_LISTING} AND NOT {is_counted} THEN {found} END"""
