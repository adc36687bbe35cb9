"""Ids, offsets and reasons of a log message; null where the message has none. Partitions: ``partition_fields``.

All functions take and return polars expressions. Every pattern stops where the value's own syntax ends, so that text
pasted behind a record does not become part of a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import polars as pl

from kit.rebalances.logs import wordings
from kit.rebalances.logs.texts import (
    Pattern,
    Unless,
    extracted,
    filled,
    first_of,
    has,
    not_before,
    not_behind,
    regex,
    without,
)

_CLIENTS = "Consumer|ShareConsumer|Worker|Schema registry"
CONSUMER_PREFIX = rf"^\[(?:{_CLIENTS}) +(?:instanceId=([^,\]]+), +)?clientId=([^\]]*?)(?:, +groupId=([^\]]*))?\]:? +"
BROKER_PREFIX = r"^\[Group(?:Coordinator|MetadataManager)[^\]]*\]:? "
OLD_PREFIX = r"^\[([^\]\s]+_[^\]\s]+-\d{13}-[0-9a-f]{8})\],? "
RDKAFKA_PREFIXES = (
    r"^.*?\[thrd:.*?\]: ",
    r"^[^\"]*?#(?:consumer|producer)-\d+[\]|:]+ ?(?:[A-Z_]+\| )?",
    r"^(?:\w+://)?[\w.:-]+/(?:bootstrap|internal|\d+|<[^>]*>): ",
)
"""One after the other: as ways of one pattern, Rust's engine would take the shortest."""
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_COORDINATOR_NODE, _FIRST_COORDINATOR_NODE = 2147483647, 2147000000
"""A consumer names its connection to the coordinator by the first number minus the broker's id. A number above the
second one is such a name."""

_OF_BROD = r"[,(](?:coor|pid)=(?:#PID)?(<\d+\.\d+\.\d+>)"
"""brod prints no client id: the process of a member distinguishes it."""
_OF_STREAMS = r"stream-thread \[([^\]]+-consumer)\] Assigned tasks"
_OF_KAFKAJS = r"\[Connection\].*\"clientId\\*\":\\*\"([^\"\\]+)"

_GROUPS: tuple[Pattern, ...] = (
    r"group_id=([^,}\s]+)",
    r"Request_v\d+\(group='([^']+)'",
    r"groupId='?([^,')\]\s]+)",
    r"^\[GroupId ([^\]]+)\]",
    r"^\[Group ([^\]]+)\]",
    r"[Gg]roup \"([^\"]+)\"",
    r"group id \"([^\"]+)\"",
    r"(?:restabilize|rebalance|Stabilized) group (\S+)",
    r"^Heartbeat: (\S+?)\[\d+\] \S+$",
    r"^Joined group '([^']+)'",
    Unless(r"\b(?:joining|joined) group ['`]?([^\s'`:,]+?)['`]?(?: with| <|$| \(|\s)", ("due", "with", "and")),
    Unless(r"for (?:leader \S+ for )?group '?([^\s:'{,]+?)'?(?:[:,]|\.?(?:\s|$))", ("at", "with", "due", "id")),
    Unless(
        r"\b(?:in|of|joins|left|classic) group \(?'?([^\s:'{,)]+?)'?(?:[,):]|\.?(?:\s|$))",
        ("because", "anymore", "at", "with", "management", "status"),
    ),
    Unless(
        r"\bconsumer group \(?'?([^\s:'{,)]+?)'?(?:[,):]|\.?(?:\s|$))",
        ("because", "anymore", "at", "with", "management", "is", "has", "assignor", "initial", "heartbeat", "that"),
    ),
    Unless(
        r"^Group (\S+) (?:fetching|has no|committed|failed|with gen|generation|transitioned|is dead|is rebal"
        r"|could|re|l)",
        ("coordinator", "Coordinator", "metadata", "leader", "is", "has"),
    ),
    r"group metadata for (\S+) with generation",
    r"join group (\S+) (?:rejected|failed)",
    r"^Failed to (?:join|sync) group (\S+):",
    r"^(?:OffsetCommit|SyncGroup) for group (\S+)",
    r"^LeaveGroup request for group (\S+)",
)
_MEMBERS: tuple[Pattern, ...] = (
    r"^\[GroupId [^\]]+\]\[MemberId ([^\]]+)\]",
    r"memberId='([^']+)'",
    r"member_id='([^']+)'",
    r"memberId=([^,'}\s)*]+)",
    not_behind("leader") + r"[{,]member_id=([^,}\]\s]+)",
    r"my MemberId ([^,]+),",
    r"member id \"([^\"]+)\" with",
    r"member of id \"([^\"]+)\"",
    r"of member id \"([^\"]+)\"",
    Unless(r"-> \"([^\"]+)\"$", ("(not-set)",)),
    Unless(
        r"^\[Group(?:Id)? [^\]]+\] (?:Static |Dynamic |Streams )?[Mm]ember (?:\[member id )?(\S+?)(?: |\])"
        + not_before("member"),
        ("with",),
    ),
    r"[Mm]ember (?:id )?(\S+) (?:with epoch|sending|in group|has left|is triggering|sent|attempting|callback)",
    r"member\.id ([^\]\s]+)\]",
    r"^Member id: '([^']+)'",
    r"[Cc]reated a new member(?: id)? (\S+)",
    r"^Heartbeat: \S+?\[\d+\] (\S+)$",
    r"with member_id (\S+)",
    r" and member id \"([^\"]+)\"$",
    r"given member-id: (\S+?)\)?\.?(?:\s|$)",
    Unless(r"memberId (\S+) ", ("is",)),
    r"member with id (\S+) joins",
    r"\(reason: (?:Adding new|Updating metadata for) member (\S+?)[;)]?(?: |$)",
    r"MemberMetadata\(memberId=([^,]+),",
    r"Member MemberMetadata\((?:[^)]*?)memberId=([^,]+),",
    r"assigning new member id (\S+?),",
    r"(?:begin|end) (?:registering|rebalancing) consumer (\S+)",
    r"^(?:Consumer )?(\S+?)(?:-\d+)? (?:successfully owned|attempting to claim|selected partitions)",
    r"^Consumer (\S+) rebalancing the following",
    r"by consumer thread (\S+)-\d+ for topic",
    r"^Partition: .* (?:was assigned to:|was closed on|was lost on) (\S+)",
    r"([^\s:]\S*) can't rebalance after",
)
_GENERATIONS = (
    r"generation_id=(\d+)",
    r"generationId[= ](\d+)",
    r"GenerationId (\d+),",
    r"generation[ -]id (\d+)",
    r"\(generation (\d+)\)",
    r"generation (\d+)",
    r"Bumped (?:streams )?group epoch to (\d+)",
    r"assignment for epoch (\d+)",
    r": epoch=(\d+), previousEpoch",
    not_behind("local ", "leader ") + r"[Ee]poch (\d+)",
    r"memberEpoch=(\d+)",
    r"\[(\d+)\] \S+$",
)
_LEADERS = (
    r"leader_id='?([^,'}\]\s]+)",
    r"LeaderId ([^,]+?)(?: \(me\))?,",
    r"leader='([^']+)'",
    r"leaderId=([^,)\s]+)",
    r"received from leader (\S+) for group",
    r"\(reason: [Ll]eader (\S+) (?:with group instance id \S+ )?re-joining",
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
_REASONS: tuple[Pattern, ...] = (
    r"^(Heartbeat session expired)\b",
    r"remove dynamic members who haven't joined: ?(?:\w*Set|List)?\((.*)\)",
    Unless(r"last error was \**([^)*]+)", ("Success",)),
    r"^(stream-(?:client|thread) ?\[[^\]]+\] ?State transition from \w+ to \w+)",
    r"this thread (missed a rebalance and dropped out of the consumer group)",
    r"^Error sending .* \[(.*)\] -- marking coordinator dead",
    r"(can't rebalance after \d+ retries)",
    r"^(?:WorkerSinkTask\{.*?\} )?Ignoring invalid task provided offset .* -- ([\w ]+)",
    r"^Error (\w+) occurred while committing",
    r"^Heartbeat failed \((.+?)(?:: )?\); retrying",
    r"(Converted the (?:empty )?classic group to a consumer group)",
    r"\(reason: (.*?)(?:; client reason: not provided)?\)\.?\s*$",
    Unless(r"client reason: (.*?)\.?\s*$", ("not provided",)),
    r"due to cause: (.*?)\.? ?(?:isDisconnected|Rediscovery)",
    r"^Marking the coordinator dead .*for group [^:]+: (.*?)\.?\s*$",
    r" due to:? (.*?)\s*$",
    r" since (.*?)\s*$",
    r" because (.*?)\s*$",
    r"with \d+ assigned partition\(s\)(?: \(lost\))?: (.*)$",
    r"partition\(s\) lost: (.*)$",
    r"Rejoining group[^:]*: (.*)$",
    r"rebalance failed (.*)$",
    r"[Ff]ailed[^:]*: (.+?)\s*$",
    r"error(?: response)?[^:]*: (.+?)\s*$",
    Unless(r"(?:members in group|member metadata count \d+): (\S.*?)\s*$", ("(no error)",)),
    r"timed out (.*?)(?:: revoking|$)",
    r"^Topic info for path (\S+ changed)",
    r"^((?:Connector \S+ config|Tasks \[[^\]]*\] configs) (?:updated|removed))",
    r"^(Current config state offset \S+ does not match group assignment \S+?)\. Forcing",
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
PYTHONS_MODULE = r"^kafka\.(?:coordinator|consumer\.(?:group|sub|fetch)|cluster|client|net\.|protocol\.|metrics\.)"


def without_client_prefix(message: pl.Expr) -> pl.Expr:
    """The message from where its wording begins."""
    return without(message, (CONSUMER_PREFIX, BROKER_PREFIX, OLD_PREFIX))


def source_of(message: pl.Expr, logger: pl.Expr, layout: pl.Expr) -> pl.Expr:
    """The kind of client or server that prints the line: one of ``wordings``' sources."""
    is_broker = has(message, BROKER_PREFIX) | has(logger, _BROKERS_CLASS) | has(message, _NEW_BROKER_PREFIX)
    is_old = has(message, rf"{OLD_PREFIX}|^Consumer \S+ rebalancing the following") | has(logger, _OLD_CLASS)
    is_rdkafka = (layout == wordings.LIBRDKAFKA).fill_null(False) | has(message, r"^\[[^\]]*#consumer-\d+\] |\[thrd:")
    return (
        pl.when(is_rdkafka)
        .then(pl.lit(wordings.LIBRDKAFKA))
        .when(has(message, rf"^\[(?:{_CLIENTS}) "))
        .then(pl.lit(wordings.JAVA))
        .when(is_broker)
        .then(pl.lit(wordings.BROKER))
        .when(has(logger, PYTHONS_MODULE))
        .then(pl.lit(wordings.PYTHON))
        .when(has(message, r"^[^\[]*\bgroup `[^`]+`"))
        .then(pl.lit(wordings.RUBY_KAFKA))
        .when(is_old)
        .then(pl.lit(wordings.OLD_CONSUMER))
        .otherwise(pl.lit(wordings.JAVA))
    )


def kind_of(sources: Iterable[str]) -> pl.Expr:
    """The kind of event of the first wording of ``source`` that fits ``phrase``; null: none fits. ``sources``: all of
    them."""
    return pl.coalesce([*map(_kind, sources), pl.lit(None, pl.String)])


@cache
def _kind(source: str) -> pl.Expr:
    message = pl.when(pl.col("source") == source).then("phrase")
    return pl.coalesce([pl.when(_fits(message, each)).then(pl.lit(each.kind)) for each in wordings.BY_SOURCE[source]])


def _fits(message: pl.Expr, wording: wordings.LogTemplate) -> pl.Expr:
    pattern = wording.pattern
    return message.str.starts_with(wording.head) if pattern is None else message.str.contains(pattern)


def consumer_prefix(message: pl.Expr) -> dict[str, pl.Expr]:
    """``instanceId``, ``clientId``, ``groupId`` of a Java client ≥ 1.0; the word null means no group."""
    parts = message.str.extract_groups(regex(CONSUMER_PREFIX)).struct
    instance, client, group = (filled(parts.field(str(number))) for number in (1, 2, 3))
    return {
        "group_instance_id": instance,
        "prefix_client": client,
        "prefix_group": pl.when(group != "null").then(group),
    }


def client_in(member_id: pl.Expr) -> pl.Expr:
    """The client id at the beginning of a Kafka group's member id."""
    return extracted(member_id, rf"^(.+)-{UUID}$")


def printed_client(text: pl.Expr) -> pl.Expr:
    """The client id in librdkafka's or kafkajs' line, or in a request dump."""
    return first_of(
        text, (r"[|\[]([^|\[\]]+)#consumer-\d+[|\]]", r"client_id=([^,}\]]+)", _OF_BROD, _OF_KAFKAJS, _OF_STREAMS)
    )


def old_consumer(message: pl.Expr) -> pl.Expr:
    """The old consumer's id, ``<group>_<host>-<ms>-<hex>``, at the beginning of its lines."""
    return extracted(message, OLD_PREFIX)


def old_group(consumer: pl.Expr) -> pl.Expr:
    """The old consumer's group: the part before the last ``_`` (host names have none)."""
    return extracted(consumer, r"^(.+)_[^_]+-\d{13}-[0-9a-f]{8}")


def group_of(message: pl.Expr) -> pl.Expr:
    return first_of(message, _GROUPS)


def member_of(message: pl.Expr) -> pl.Expr:
    """The member id; null where whoever pasted the line left its end out."""
    member = first_of(message, _MEMBERS)
    return pl.when(~has(member, r"(?:\.\.\.|…)$")).then(member)


def generation_of(message: pl.Expr) -> pl.Expr:
    """The generation, or the epoch of KIP-848; −1 means none. A leader's list of subscriptions names older ones."""
    is_about_others = message.str.contains("Performing assignment using strategy", literal=True)
    return _number(pl.when(~is_about_others).then(first_of(message, _GENERATIONS)))


def leader_of(message: pl.Expr) -> pl.Expr:
    return first_of(message, _LEADERS)


def assignor_of(message: pl.Expr) -> pl.Expr:
    assignor = first_of(message, _ASSIGNORS)
    return pl.when(assignor != "null").then(assignor)


def offset_of(message: pl.Expr) -> pl.Expr:
    return _number(first_of(message, _OFFSETS))


def reason_of(message: pl.Expr) -> pl.Expr:
    """The reason, in the log's own words."""
    return first_of(message, _REASONS)


def coordinator_of(message: pl.Expr) -> pl.Expr:
    """``host:port`` of the coordinator."""
    pattern = r"host='?([^,'}]+)'?,\s*port=(\d+)"
    host, port = (extracted(message, pattern, n) for n in (1, 2))
    return pl.coalesce(host + ":" + port, first_of(message, _COORDINATORS))


def coordinator_id_of(message: pl.Expr) -> pl.Expr:
    """The coordinator's broker id, from the message or from the connection's name."""
    printed = _number(first_of(message, _COORDINATOR_IDS))
    return pl.when(printed > _FIRST_COORDINATOR_NODE).then(_COORDINATOR_NODE - printed).otherwise(printed)


def _number(text: pl.Expr) -> pl.Expr:
    return text.cast(pl.Int64, strict=False)
