"""Frozen rows: what one read of a cluster found, one class per table.

A class is the single declaration of its table: ``kit.tables`` derives the Arrow and the Spark schema from the
annotations. ``| None`` means nullable: unknown is ``None``, never 0 or -1. ``source`` and ``store`` say who said so:
``"zookeeper"`` or ``"kafka"``. A row that could not be read has its key columns and an ``error`` saying why.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

Int32 = Annotated[int, "int32"]
"""Ids, partitions and znode versions: 32 bits in both protocols. A plain ``int`` is 64 bits wide."""

ZOOKEEPER = "zookeeper"
KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker, by Metadata; ``endpoints`` is its ZooKeeper registration (None without ZooKeeper)."""

    broker_id: Int32
    host: str | None
    port: Int32 | None
    rack: str | None
    is_controller: bool | None
    endpoints: tuple[str, ...] | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """One partition, by Metadata. ``leader`` is None when it has none; ``replicas[0]`` is the preferred leader."""

    topic: str
    partition: Int32
    is_internal: bool
    leader: Int32 | None
    leader_epoch: Int32 | None
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """One group as one source knows it; a group that both know has two rows.

    ``state`` and ``protocol`` (the assignor) are Kafka's; a ZooKeeper group has neither.
    """

    group_id: str
    source: str
    state: str | None
    group_type: str | None
    protocol_type: str | None
    protocol: str | None
    coordinator: Int32 | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """One member: of ``/consumers/<group>/ids`` (member_id = consumer id) or of the Kafka group.

    ``in_migration_ids`` says that a ZooKeeper member is migration-enabled (KIP-125). ``session_id`` is the
    ZooKeeper session that holds the registration; ``registered_at`` the znode's creation time.
    """

    group_id: str
    source: str
    member_id: str
    client_id: str | None
    client_host: str | None
    group_instance_id: str | None
    pattern: str | None
    in_migration_ids: bool | None
    registered_at: datetime | None
    session_id: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscribed topic of one member, wildcards resolved against the topics of the same snapshot.

    ``n_threads`` is the number of streams for that topic (1 for a Kafka member).
    """

    group_id: str
    source: str
    member_id: str
    topic: str
    n_threads: Int32


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns a partition: by owner znode (``source`` zookeeper) or by assignment (kafka).

    ``thread_id`` is the owner znode's text, ``member_id`` that text without its last ``-<n>``;
    a Kafka member is one thread and has no ``thread_id``.
    """

    group_id: str
    source: str
    topic: str
    partition: Int32
    member_id: str | None
    thread_id: str | None
    session_id: int | None
    czxid: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, by store. ``version`` and ``mzxid`` are the znode's: conditional writes need them."""

    group_id: str
    store: str
    topic: str
    partition: Int32
    committed_offset: int | None
    leader_epoch: Int32 | None
    metadata: str | None
    committed_at: datetime | None
    version: Int32 | None
    mzxid: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogOffset:
    """Where a partition's log starts and ends (high watermark), read after the committed offsets."""

    topic: str
    partition: Int32
    log_start_offset: int | None
    log_end_offset: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The KIP-125 toggle of one group: what ``migration/mode`` holds (None: no such znode) and its version."""

    group_id: str
    mode: str | None
    mode_version: Int32 | None
    mode_mzxid: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReadError:
    """One thing that could not be read: what it was (``cluster/group/topic-partition``) and why.

    ``group_id`` and ``topic`` are None where it is not about one.
    """

    source: str
    group_id: str | None
    topic: str | None
    subject: str
    error: str


@dataclass(frozen=True, slots=True)
class ReadTiming:
    """One step of a snapshot: how long it took and how many rows it gave."""

    step: str
    started_at: datetime
    duration_ms: float
    n_rows: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One snapshot: of which cluster, from when to when, by which version; written last, so that it is whole."""

    cluster: str
    cluster_id: str
    started_at: datetime
    ended_at: datetime
    group_pattern: str
    offramp_version: str


@dataclass(frozen=True, slots=True)
class HandOut:
    """One record that one member handed out, by that member's own file; ``at_ms`` is epoch time by its clock."""

    group_id: str
    topic: str
    partition: Int32
    consumer: str
    at_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class Produced:
    """One acknowledged record; ``at_ms`` is epoch time at which its producer was told of it."""

    topic: str
    partition: Int32
    producer: str
    at_ms: int
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """One line of a consumption or production file that holds no record; a long text is cut."""

    file: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ZnodeLife:
    """One znode of a group from its creation to its end, as a watcher saw it; times are epoch ms.

    ``kind``: ``owner`` (``value`` is the thread id, ``member_id`` that text without its last ``-<n>``), ``member`` and
    ``migration_member`` (of ``ids`` and ``migration/ids``), ``mode`` (a life is one value of the toggle), ``watch``: no
    znode, but the time in which nothing escaped the watcher. ``from_ms`` is the server's creation time unless
    ``is_seen_late``: then the znode was gone before it could be read, it is the time of the event, and ``member_id``
    is unknown. ``until_ms`` is an upper bound: when the watcher was told, or the creation time of what stands there
    instead; None: still there. ``ended_by``: ``deleted``, ``replaced``, ``changed`` (its value), ``missed``
    (found gone, not told so), ``stopped`` (watch).
    """

    group_id: str
    kind: str
    topic: str | None
    partition: Int32 | None
    member_id: str | None
    value: str | None
    from_ms: int
    is_seen_late: bool
    until_ms: int | None
    ended_by: str | None
    czxid: int | None
    session_id: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event about coordination, as a log line tells it; what the line doesn't say is None.

    ``line`` counts from 1 (``record`` within it: pasted logs hold several); ``origin`` is the container, host or file
    that stands before the line. ``observed_at`` is None where the zone of ``time_text`` is unknown; ``local_at`` is
    that time in epoch microseconds as if it were UTC, for durations. ``source``: java, zookeeper (the old consumer),
    librdkafka, kafka-python, broker. ``kind``: see ``kit.logs.wordings``. ``generation`` is the member epoch in the
    new protocol. Partitions are ``topic-partition``; ``partitions`` is the list the line is about, ``owned_before``,
    ``owned_after`` the whole assignment where the entry has both. ``coordinator`` is ``host:port``.
    """

    file: str
    line: int
    record: Int32
    origin: str | None
    layout: str | None
    observed_at: datetime | None
    local_at: int | None
    time_text: str | None
    level: str | None
    logger: str | None
    source: str
    kind: str
    client_id: str | None
    group_instance_id: str | None
    group_id: str | None
    member_id: str | None
    generation: int | None
    leader_id: str | None
    assignor: str | None
    coordinator: str | None
    coordinator_id: Int32 | None
    partitions: tuple[str, ...] | None
    owned_before: tuple[str, ...] | None
    owned_after: tuple[str, ...] | None
    offset: int | None
    reason: str | None
    text: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that looks like coordination and whose wording isn't known; a long text is cut."""

    file: str
    line: int
    record: Int32
    layout: str | None
    logger: str | None
    wording: str
    text: str


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a read: its lines, and what became of them.

    ``n_events``: records that tell an event; ``n_context``: known ones that tell none; ``n_unknown``: see ``LogLine``;
    the rest is of no interest. ``problem``: ``empty``, ``binary``, ``truncated`` (what is before the damage was read),
    ``layout`` (no line has the one given), ``no coordination``, ``times go back``, ``zone unknown``.
    """

    file: str
    n_lines: int
    n_events: int
    n_context: int
    n_unknown: int
    layouts: tuple[str, ...]
    n_times_back: int
    first_at: datetime | None
    last_at: datetime | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class MemberRebalance:
    """One consumer's way through one rebalance, from the logs; what they don't say is None.

    ``consumer`` tells consumers apart that print the same client id. Times are as the log has them; ``is_utc`` says
    whether they are UTC or of an unknown zone. ``discover_ms``: coordinator asked for → found; ``join_ms``: joining →
    joined; ``sync_ms``: joined → synced; ``assign_ms``: synced → assigned; ``offsets_ms``: assigned → last position
    known; ``paused_ms``: partitions revoked → assigned. ``owned`` is all it has afterwards; ``fetched``: whose
    committed offsets it asked for; ``positions`` are ``topic-partition@offset``, ``without_offset`` those that had no
    committed one. ``outcome``: ``assigned``, ``failed``, ``open`` (the log ends before). ``line``,
    ``last_line``: where its story stands in ``file``.
    """

    group_id: str | None
    generation: int | None
    consumer: str
    member_id: str | None
    client_id: str | None
    source: str
    is_leader: bool | None
    leader_id: str | None
    assignor: str | None
    coordinator: str | None
    coordinator_id: Int32 | None
    reason: str | None
    is_utc: bool
    started_at: datetime | None
    joined_at: datetime | None
    ended_at: datetime | None
    discover_ms: int | None
    join_ms: int | None
    sync_ms: int | None
    assign_ms: int | None
    offsets_ms: int | None
    paused_ms: int | None
    revoked: tuple[str, ...] | None
    added: tuple[str, ...] | None
    owned: tuple[str, ...] | None
    fetched: tuple[str, ...] | None
    positions: tuple[str, ...]
    without_offset: tuple[str, ...]
    outcome: str
    failure: str | None
    file: str
    line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One generation of one group, of all logs together. ``members`` are those seen, by member id, else by consumer.

    ``joined`` and ``left``: beside the generation before (None: that isn't in the logs); ``slowest``: who joined last,
    ``late_ms`` after the first. ``unlogged``: the leader, and members it named, of whom there is no log. ``moved``,
    ``kept``: partitions whose owner changed, or didn't, of those seen in both; ``unseen``: seen before, and with nobody
    now, which may be a missing log. ``reasons``: in the logs' words.
    """

    group_id: str
    generation: int
    is_utc: bool
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    leader_id: str | None
    assignor: str | None
    coordinator: str | None
    members: tuple[str, ...]
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    unlogged: tuple[str, ...]
    slowest: str | None
    late_ms: int | None
    moved: tuple[str, ...] | None
    kept: tuple[str, ...] | None
    unseen: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Something in a group's logs that asks for attention, as a sentence to paste."""

    group_id: str | None
    finding: str
    consumer: str | None
    at: datetime | None
    sentence: str


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """One record of ``__consumer_offsets`` about an offset; ``partition`` and ``offset`` are where it stands there.

    The newest record of a group and ``topic``-``topic_partition`` is where the group resumes. ``is_tombstone``: the
    offset was deleted or has expired. ``value_version`` is None for a tombstone, ``metadata`` where it is empty.
    ``expires_at`` is in version 1 only. With an ``error`` the value, or its metadata, can't be decoded.
    """

    partition: Int32
    offset: int
    written_at: datetime | None
    group_id: str
    topic: str
    topic_partition: Int32
    committed_offset: int | None
    leader_epoch: Int32 | None
    metadata: str | None
    commit_at: datetime | None
    expires_at: datetime | None
    value_version: Int32 | None
    is_tombstone: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class GroupGeneration:
    """One member in one record of ``__consumer_offsets`` about a group of the classic protocol.

    A record without members, a tombstone (the group was deleted) and one with an ``error`` have one row, ``member_id``
    None. ``partition`` and ``offset`` are where the record stands, ``n_members`` counts all its members. ``state_at``:
    when the group came to the state it was in. ``subscribed`` (topics) and ``assigned`` (``topic-partition``) are None
    where the protocol type isn't ``consumer``.
    """

    partition: Int32
    offset: int
    written_at: datetime | None
    group_id: str
    generation: int | None
    protocol_type: str | None
    protocol: str | None
    leader_id: str | None
    state_at: datetime | None
    is_tombstone: bool
    n_members: Int32 | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    rebalance_timeout_ms: Int32 | None
    session_timeout_ms: Int32 | None
    subscribed: tuple[str, ...] | None
    assigned: tuple[str, ...] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class OffsetsPartition:
    """One partition of ``__consumer_offsets``: what was read of it and what became of every record.

    Read from ``start_offset`` until before ``read_until``: ``end_offset`` (high watermark when the read began), or less
    where a transaction was open. ``n_records`` = ``n_commits`` + ``n_generations`` (records, not members) + ``n_other``
    + ``n_outside`` (of groups or times not asked for) + ``n_unreadable`` (their key can't be decoded: no row).
    ``n_tombstones`` and ``n_errors`` are of the first two. ``others``, ``problems``: what they were, and how many.
    Counts are None where there is an ``error``: nothing of that partition is in the other tables.
    """

    partition: Int32
    start_offset: int | None
    end_offset: int | None
    read_until: int | None
    n_records: int | None
    n_commits: int | None
    n_generations: int | None
    n_tombstones: int | None
    n_errors: int | None
    n_other: int | None
    n_outside: int | None
    n_unreadable: int | None
    others: tuple[str, ...]
    problems: tuple[str, ...]
    error: str | None
