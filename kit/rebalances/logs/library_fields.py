"""Ids and partitions in what other libraries print: as JSON's keys, as ``key: value``, or in a sentence."""

from __future__ import annotations

import re
from itertools import chain

import polars as pl

from kit.rebalances.logs.texts import extracted, first_of

WITH_KEYS = r"^\[(?:ConsumerGroup|Runner|Connection|Cluster|Consumer)\] "
"""The beginning of kafkajs' messages."""
_PATTERNS = {
    "said_group": (
        r"\bgroup `([^`]+)`",
        r"\"groupId\":\"([^\"]+)",
        r"; group: ([^,\s]+)",
        r"consumergr?oup ([^\s]+) ",
        r"^consumergroup/([^\s:]+):? ",
        r"^\[([^\]\s/]+)/[^\]\s/]+\] ",
        r"^client/coordinator (?:requesting )?coordinator for (\S+) (?:is|from) ",
        r"for consumer group '([^']+)'$",
        r"^(?:committed offsets|unable to commit offsets) for group,? (\S+?):",
        r"^(?:unable to )?(?:find )?coordinator (?:for|to any connect for) group, ([^,:]+)[,:]",
        r"^rebalanc(?:e failed for|ing) consumer group, (.+?)(?::|$)",
        r"^leave group failed for group, ([^,]+), and member, ",
        r"^(?:[jJ]oined group|Leaving group) ([^,\s]+)",
        r"(?:selected as leader|sync group finished) for group, (\S+)",
        r"^(?:Unable to establish connection to consumer group coordinator|Failed to fetch offsets) for group (\S+?):",
        r"^Failed to sync group (\S+?):",
        r"^Partition changes found, reb?[^:]*: (\S+?)\.?$",
        r"^Group member \((.+),coor=",
        r"^[Gg]roup coordinator \(groupId=(.+),memberId=",
        r"^(?:Getting group coordinator|Connected to coordinator: .*) for `([^`]+)`",
    ),
    "said_member": (
        r"^Joined group .* with member id `?([^`\s]+)",
        r"\"member(?:Id|_id)\":\"([^\"]+)",
        r"member_id: ([^,\s]+)",
        r" as member (.+?)(?: in generation \d+)?$",
        r" consumer(?: id)? ['\"]([^'\"]+)['\"]",
        r"^Rebalancing consumer ([^\s'\"]+) for topic",
        r"Consumer instance registered \(([^)]+)\)",
        r"^kafka-node:HighLevelConsumer HighLevelConsumer (\S+) ",
        r"^leave group failed for group, [^,]+, and member, ([^:]+):",
        r"^Leaving group [^,]+, member (.+)$",
        r"^[Gg]roup coordinator \(groupId=.+,memberId=(.+),generation=",
    ),
    "leader_id": (r"\"leaderId\":\"([^\"]+)", r"member_id: ([^,\s]+),.* leader: true"),
    "assignor": (r"\"groupProtocol\":\"([^\"]+)", r"balance_protocol: ([^,\s]+)", r"\"balance_protocol\":\"([^\"]+)"),
    "coordinator": (
        r"is #\d+ \(([\w.-]+:\d+)\)",
        r"connected to group coordinator ([\w.-]+:\d+)",
        r"^Connected to coordinator: ([\w.-]+:\d+)",
    ),
    "reason": (
        r"^KafkaErrorException: \[\d+\] (.+?)\.?(?: in \S+:\d+)?$",
        r",generation=.*\): .*?reason: ?\{?:?(.+?),?$",
        r"^re-joining group, reason: ?\{?:?(.+?),?$",
        r"^\[Consumer\] Crash: (.+?)(?: \{|$)",
        r"^\[Consumer\] Restarting the consumer (in \d+ms)",
        r"^kafka: error while consuming \S+: kafka server: (.+?)\.?(?:\s+\w+=.*)?$",
        r"^consumergroup/\S+ lost ownership of .* due to (.+)$",
        r"^(Error code \d+) ",
        r" :: FAILED to (.+)$",
        r"^rebalance failed for consumer group, [^:]+: (.+)$",
        r"^(?:joinGroup|syncGroup|heartbeat) failed: (.+)$",
        r"^unable to (?:find|commit|connect|coordinator) [^:]+: (.+)$",
        r"^leave group failed for group, [^:]+: (.+)$",
        r"\"err(?:or)?\":\"([^\"]+)",
        r", err(?:or)?: (.+)$",
        r"^Error (?:sending heartbeat|committing offsets): (.+)$",
        r"^Problem getting partitions (?:during startup|while checking for changes), (.+)$",
        r"^(?:Unable to establish connection to|Failed to fetch offsets|Failed to sync) .*?group \S+?: (.+)$",
    ),
}
FACTS_BEHIND = r"(?:; group:| \{\").*$"
"""The end of the text itself, where facts beside it begin."""
_NUMBERS = {
    "generation": (
        r"\"generation(?:Id)?\":(\d+)",
        r"generation: (\d+)",
        r" in generation (\d+)",
        r",generation=([1-9]\d*)[,)]",
        r"for generation (\d+) as member",
    ),
    "coordinator_id": (
        r"is #(\d+) \(",
        r"^Found coordinator broker with id (\d+)",
        r"\"nodeId\":(\d+)",
        r"\(node_id=(\d+)\)",
    ),
}
_OF_KAFKAJS = re.compile(r'"memberAssignment":\{([^}]*)\}')
_OF_FRANZ_GO = re.compile(r"(?:assigned|revoking)(?:(?:: |\":\")(.*)|\":\{([^}]*)\})")
_OF_KAFKA_GO = re.compile(r"{topic:(\S+) partition:(\d+)}")
_OF_RUBY_KAFKA = re.compile(r"Partitions assigned for `([^`]+)`: ([\d, ]+)")
_OF_ONE = re.compile(
    r"^kafka: error while consuming ([^\s/]+)/(\d+):"
    r'|\bunable to commit .*?\btopic"?: ?"?([^\s,"]+).*?\bpartition"?: ?(\d+)'
    r"|^\[[^\]\s/]+/[^\]\s/]+\] ([^\s/]+)/(\d+) :: "
)
_OF_SARAMA_CLUSTER = re.compile(r"^&\{Type:rebalance OK .*Current:map\[(.*)\]\}")
_OF_KAFKA_NODE = re.compile(r"owns topics: +\{(.*)\}")
_OF_BROD = re.compile(r"assignments received:(.*)$")
_BROD_TOPIC = re.compile(r"(\S+):((?: partition=\d+ begin_offset=\S+)*)")
_LIST = re.compile(r"""["']?([\w.-]+)["']?:? ?\[([\d, ]*)\]""")


def columns_of(text: pl.Expr) -> dict[str, pl.Expr]:
    """Return the columns that ``parsing`` has for other clients, of texts of these; null for null."""
    texts = {name: first_of(text, patterns) for name, patterns in _PATTERNS.items()}
    numbers = {
        name: pl.coalesce([extracted(text, each).cast(pl.Int64, strict=False) for each in patterns])
        for name, patterns in _NUMBERS.items()
    }
    partitions = text.map_elements(_partitions, return_dtype=pl.List(pl.String), skip_nulls=True)
    return {**texts, **numbers, "said_partitions": partitions}


def _partitions(text: str) -> list[str] | None:
    """
    >>> _partitions('joined {"memberAssignment":{"a-b":[0,12],"c":[]}}')
    ['a-b-0', 'a-b-12']
    >>> _partitions("synced; group: g, assigned: a-b[0 1]")
    ['a-b-0', 'a-b-1']
    >>> _partitions('synced; group: g, {"assigned":{"a-b":[0,1]}}')
    ['a-b-0', 'a-b-1']
    >>> _partitions("subscribed to topics and partitions: map[{topic:a-b partition:1}:591 {topic:a-b partition:0}:-2]")
    ['a-b-0', 'a-b-1']
    >>> _partitions("&{Type:rebalance OK Claimed:map[c:[1]] Released:map[] Current:map[a-b:[0] c:[1 2]]}")
    ['a-b-0', 'c-1', 'c-2']
    >>> _partitions("kafka: error while consuming a-b/3: kafka server: Out of range")
    ['a-b-3']
    >>> _partitions("in default commit: unable to commit offsets; group: g, topic: a-b, partition: 3, error: X")
    ['a-b-3']
    >>> _partitions("Group member (g,coor=c): assignments received: a-b: partition=3 begin_offset=7")
    ['a-b-3']
    >>> _partitions("kafka-node:ConsumerGroup c owns topics:  { 'a-b': [ 0, 3 ] }")
    ['a-b-0', 'a-b-3']
    >>> _partitions("[g/0123456789ab] a-b/3 :: Partition consumer starting at offset 2.")
    ['a-b-3']
    >>> _partitions("Partitions assigned for `a-b`: 3, 0")
    ['a-b-0', 'a-b-3']
    """
    of_one = _OF_ONE.search(text)
    if of_one:
        topic, partition = filter(None, of_one.groups())
        return [f"{topic}-{partition}"]
    by_brod = _OF_BROD.search(text)
    if by_brod:
        topics = _BROD_TOPIC.findall(by_brod[1])
        if not topics and "[]" not in by_brod[1]:  # The lines with the topics are missing.
            return None
        return sorted(f"{topic}-{each}" for topic, rest in topics for each in re.findall(r"partition=(\d+)", rest))
    by_ruby = _OF_RUBY_KAFKA.search(text)
    if by_ruby:
        return sorted(f"{by_ruby[1]}-{number}" for number in re.findall(r"\d+", by_ruby[2]))
    named = _OF_KAFKA_GO.findall(text)
    if named:
        return sorted(f"{topic}-{number}" for topic, number in named)
    listing = (
        _OF_KAFKAJS.search(text)
        or _OF_FRANZ_GO.search(text)
        or _OF_SARAMA_CLUSTER.search(text)
        or _OF_KAFKA_NODE.search(text)
    )
    if listing is None:
        return None
    lists = (
        [f"{topic}-{each}" for each in re.findall(r"\d+", numbers)]
        for topic, numbers in _LIST.findall(listing[listing.lastindex or 1])
    )
    return sorted(chain.from_iterable(lists))
