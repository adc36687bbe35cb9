"""Frozen rows: what one read of a cluster found, one class per table.

A class is the single declaration of its table: ``kit.tables.schema`` derives the Arrow and the Spark schema from the
annotations. ``| None`` means nullable: unknown is ``None``, never 0 or -1. ``source`` and ``store`` name its origin:
``"zookeeper"`` or ``"kafka"``. A row that could not be read has its key columns and an ``error`` saying why.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kit.tables.column_types import Int32

ZOOKEEPER = "zookeeper"
KAFKA = "kafka"
GROUP_PARTITION = ["group_id", "topic", "partition"]
"""The columns that name one partition of one group."""
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""``Group.group_type``, as ListGroups names them."""
STORE_NAMES = {KAFKA: "Kafka", ZOOKEEPER: "ZooKeeper"}
"""The names of the stores in sentences."""


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

    ``state`` and ``protocol`` (the assignor) are Kafka's; a ZooKeeper group has neither. ``group_epoch`` and
    ``assignment_epoch`` are those of consumer, share and streams groups: they differ while an assignment is computed.
    """

    group_id: str
    source: str
    state: str | None
    group_type: str | None
    protocol_type: str | None
    protocol: str | None
    coordinator: Int32 | None
    error: str | None = None
    group_epoch: Int32 | None = None
    assignment_epoch: Int32 | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """One member: of ``/consumers/<group>/ids`` (member_id = consumer id) or of the Kafka group.

    ``in_migration_ids`` reports that a ZooKeeper member is migration-enabled (KIP-125). ``session_id`` is the
    ZooKeeper session that holds the registration; ``registered_at`` the znode's creation time.

    ``is_embedded``: the subscription of a Kafka member has the mark of a MEZKCC's consumer (EKC). It is null
    where the coordinator reported no subscription, as while the group rebalances, and in older histories.

    ``member_type`` is the protocol by which the member of a consumer group joined, ``classic`` or ``consumer``
    (ConsumerGroupDescribe 1, brokers >= 4.0); of a streams group it is ``classic`` or ``streams``. ``member_epoch`` is
    that of groups with epochs. ``standby_tasks`` and ``warmup_tasks`` are a streams member's, named as Kafka Streams
    names tasks: ``<subtopology>_<partition>``. Its active tasks are in ``Ownership``.
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
    is_embedded: bool | None = None
    member_type: str | None = None
    member_epoch: Int32 | None = None
    standby_tasks: tuple[str, ...] | None = None
    warmup_tasks: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscribed topic of one member, wildcards resolved against the topics of the same snapshot.

    ``n_threads`` is the number of streams for that topic (1 for a Kafka member). ``subtopology`` is the part of a
    streams group's topology that reads the topic.
    """

    group_id: str
    source: str
    member_id: str
    topic: str
    n_threads: Int32
    subtopology: str | None = None


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a partition: by owner znode (``source`` zookeeper) or by assignment (kafka).

    ``thread_id`` is the owner znode's text, ``member_id`` that text without its last ``-<n>``;
    a Kafka member is one thread and has no ``thread_id``. ``is_shared``: the group is a share group, where several
    members read one partition, each other records of it. ``task`` is the active task of a streams group that reads
    the partition, ``<subtopology>_<partition>``.
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
    is_shared: bool | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, by store. ``version`` and ``mzxid`` are the znode's: conditional writes need them.

    Of a share group it is the share-partition start offset (SPSO): members have accepted, rejected or given up all
    records before it, and some of those behind it. ``unfinished`` is the broker's count of the records from there to
    the end of the log that are not (KIP-1226: DescribeShareGroupOffsets 1, Kafka >= 4.2); null: not known.
    """

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
    unfinished: int | None = None


@dataclass(frozen=True, slots=True)
class LogOffset:
    """The start and end of a partition's log (high watermark), read after the committed offsets."""

    topic: str
    partition: Int32
    log_start_offset: int | None
    log_end_offset: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GroupHour:
    """One group's hour (UTC), from its observations; ``hour_ms`` is its begin (epoch).

    ``lag_…``: in records, of the observations at which it was known (``n_unknown``: at which not); ``lag_last``: at
    the last observation. ``time_lag_…``: bounds of the age of the oldest unread record at the last observation.
    ``n_read``,
    ``n_written``: records since the last observation before. Of its partitions, ``n_stop`` committed nothing though
    records wait,
    ``n_rewind`` went back, ``n_warn`` ended with more lag; at some observation ``n_silent`` had something to read and
    had committed nothing for a quarter of an hour or more; ``n_missed`` were not seen at each observation. ``n_moves``:
    further owners that partitions had.
    """

    group_id: str
    store: str
    hour_ms: int
    n_looks: int
    n_unknown: int
    lag_min: int | None
    lag_p50: int | None
    lag_p95: int | None
    lag_max: int | None
    lag_last: int | None
    time_lag_lower_ms: int | None
    time_lag_upper_ms: int | None
    n_read: int | None
    n_written: int | None
    n_partitions: int | None
    n_stop: int | None
    n_rewind: int | None
    n_warn: int | None
    n_moves: int
    n_silent: int | None = None
    n_missed: int | None = None


@dataclass(frozen=True, slots=True)
class RecordTime:
    """The time at which the record at an offset was appended (epoch ms): the best guess, and the earliest and latest it
    can be.

    All three are the record's own timestamp where that is known. Producers set it unless the topic reports otherwise.
    All null without an error: nothing is there to read, only what transactions left. ``is_quiet``: nothing was appended
    to the log shortly before the observation; null: not known.
    """

    topic: str
    partition: Int32
    offset: int
    appended_ms: int | None
    from_ms: int | None
    until_ms: int | None
    error: str | None = None
    is_quiet: bool | None = None


@dataclass(frozen=True, slots=True)
class LogAnchor:
    """A log's first record and the one with the newest timestamp (KIP-734): offsets and times (epoch ms)."""

    topic: str
    partition: Int32
    first_offset: int | None
    first_ms: int | None
    newest_offset: int | None
    newest_ms: int | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class LogRetention:
    """The settings in force that decide when a log's records are deleted, and the log's size at its leader.

    A limit of -1 is Kafka's word for none. ``check_ms``: how often the leader searches for segments to delete.
    """

    topic: str
    partition: Int32
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    segment_ms: int | None
    segment_bytes: int | None
    is_tiered: bool | None
    check_ms: int | None
    size_bytes: int | None
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

    ``group_id`` and ``topic`` are None where it is not about one. A ``topic`` with a slash is a stray znode's: it
    is where one of another kind is expected, and nothing else is unknown by it.

    ``is_unsupported``: the brokers or offramp have no request for groups of this type, so it never succeeds. It is
    a note, not a failure. Null in older histories.
    """

    source: str
    group_id: str | None
    topic: str | None
    subject: str
    error: str
    is_unsupported: bool | None = False


@dataclass(frozen=True, slots=True)
class ReadTiming:
    """One step of a snapshot: how long it took and how many rows it gave."""

    step: str
    started_at: datetime
    duration_ms: float
    n_rows: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """One snapshot: of which cluster, from when to when, by which version; written last, so that it is whole.

    ``unseen_groups``: why groups may be missing, and which trees below ``/consumers`` are of other systems, as
    sentences; None: the login could see every group, or an older version did not ask.
    """

    cluster: str
    cluster_id: str
    started_at: datetime
    ended_at: datetime
    group_pattern: str
    offramp_version: str
    unseen_groups: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """One record that one member delivered, by that member's own file; ``at_ms`` is epoch time by its clock."""

    group_id: str
    topic: str
    partition: Int32
    consumer: str
    at_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class Produced:
    """One acknowledged record; ``at_ms`` is epoch time at which its producer learned of it."""

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
    is unknown. ``until_ms`` is an upper bound: when the watcher was notified, or the creation time of what is there
    instead; None: still there. ``ended_by``: ``deleted``, ``replaced``, ``changed`` (its value), ``missed``
    (found gone, without a notification), ``stopped`` (watch).
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
