"""Frozen rows about rebalances: what logs and the coordinators' topic show, and what is made of it.

As ``kit.tables.groups``: a class is the single declaration of its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kit.tables.column_types import Int32


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event about coordination, as a log line shows it; what the line doesn't report is None.

    ``line`` counts from 1 (``record`` within it: pasted logs hold several); ``origin`` is the container, host or file
    that is before the line; ``layout`` is None where the line has none that is known. ``observed_at`` is None where
    the zone of ``time_text`` is unknown; ``local_at`` is that time in epoch microseconds as if it were UTC, for
    durations. ``source``: java, zookeeper (the old consumer), librdkafka, kafka-python, kafkajs, franz-go, sarama,
    ruby-kafka, broker. ``kind``: see ``kit.rebalances.logs.wordings``. ``generation`` is the member epoch in the new
    protocol. Partitions are ``topic-partition``; ``partitions`` is the list the line is about, ``owned_before``,
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
    """One line that resembles coordination and whose wording isn't known; a long text is cut."""

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

    ``n_events``: records of an event; ``n_context``: known records without an event; ``n_unknown``: see ``LogLine``;
    the rest is of no interest. ``n_cut``: lines too long to be read to their end. ``problem``: ``empty``, ``binary``,
    ``truncated`` (what is before the damage was read), ``layout`` (no line has the one given), ``no coordination``,
    ``zones differ`` (some times say theirs, others don't), ``times go back``, ``zone unknown``.
    """

    file: str
    n_lines: int
    n_events: int
    n_context: int
    n_unknown: int
    layouts: tuple[str, ...]
    n_time_regressions: int
    first_at: datetime | None
    last_at: datetime | None
    n_cut: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class MemberRebalance:
    """One consumer's way through one rebalance, from the logs; what they don't say is None.

    ``is_epoch``: it is a member of KIP-848's protocol, and ``generation`` the member's epoch. ``life``: as of
    ``Rebalance``. ``consumer`` distinguishes consumers that print the same client id. Times are as the log has them;
    ``is_utc`` reports whether they are UTC or of an unknown zone. ``discover_ms``: coordinator asked for → found;
    ``join_ms``: joining →
    joined; ``sync_ms``: joined → synced; ``assign_ms``: synced → assigned; ``offsets_ms``: assigned → last position
    known; ``unassigned_ms``: partitions revoked → assigned. ``owned`` is all it has afterwards; ``fetched``: whose
    committed offsets it asked for; ``positions`` are ``topic-partition@offset``, ``without_offset`` those that had no
    committed one. ``session_timeout_ms`` and ``protocols`` (assignors): what it asked to join with. ``brokers``: of the
    cluster, as its metadata named them (``1 host:port``). ``outcome``: ``assigned``, ``failed``, ``open`` (the log ends
    before). ``left_at``: when it left the group after that. ``line``, ``last_line``: where its story is in ``file``.
    """

    group_id: str | None
    life: Int32
    generation: int | None
    is_epoch: bool
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
    left_at: datetime | None
    discover_ms: int | None
    join_ms: int | None
    sync_ms: int | None
    assign_ms: int | None
    offsets_ms: int | None
    unassigned_ms: int | None
    revoked: tuple[str, ...] | None
    added: tuple[str, ...] | None
    owned: tuple[str, ...] | None
    fetched: tuple[str, ...] | None
    positions: tuple[str, ...]
    without_offset: tuple[str, ...]
    session_timeout_ms: int | None
    protocols: tuple[str, ...] | None
    brokers: tuple[str, ...] | None
    outcome: str
    failure: str | None
    file: str
    line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One generation of one group, of all logs together. ``members`` are those seen, by member id, else by consumer;
    None: no member is named. ``n_members``: how many it has, where a leader, a coordinator or the topic reports it.

    ``life``: the group's life that the generation is of, from 1; another begins where the group was deleted, expired or
    lost, and its numbers begin again. ``is_epoch``: the group has KIP-848's protocol, and ``generation`` is its epoch.
    ``joined`` and ``left``: by a broker's word, and compared
    with the generation before (None: the logs don't have it). ``last_joiner`` joined ``join_spread_ms`` after the
    first. ``members_without_log``: the leader, and members that it named, of whom there is no log. ``moved``,
    ``kept``: partitions seen in both generations whose owner changed, or didn't. ``partitions_without_known_owner``:
    owned before, without an owner now; perhaps a log is missing. ``reasons``: in the logs' words.
    """

    group_id: str
    life: Int32
    generation: int
    is_epoch: bool
    is_utc: bool
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None
    leader_id: str | None
    assignor: str | None
    coordinator: str | None
    members: tuple[str, ...] | None
    n_members: Int32 | None
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    members_without_log: tuple[str, ...]
    last_joiner: str | None
    join_spread_ms: int | None
    moved: tuple[str, ...] | None
    kept: tuple[str, ...] | None
    partitions_without_known_owner: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFinding:
    """Something in a group's logs that asks for attention, as a sentence to paste. ``is_utc``: whether ``at`` is."""

    group_id: str | None
    finding: str
    consumer: str | None
    is_utc: bool
    at: datetime | None
    sentence: str


@dataclass(frozen=True, slots=True)
class LogRemark:
    """Events that no rebalance and no finding describes, as a sentence: of one ``consumer``, or of brokers.

    ``members``: the member ids in these events; ``kinds``: see ``kit.rebalances.logs.wordings``; ``at``: the first
    of their times.
    """

    group_id: str | None
    consumer: str | None
    members: tuple[str, ...]
    kinds: tuple[str, ...]
    n_events: int
    is_utc: bool
    at: datetime | None
    sentence: str


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """One record of ``__consumer_offsets`` about an offset; ``partition`` and ``offset`` are where it is there.

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
    committed_at: datetime | None
    expires_at: datetime | None
    value_version: Int32 | None
    is_tombstone: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class GroupGeneration:
    """One member in one record of ``__consumer_offsets`` about a group of the classic protocol.

    A record without members, a tombstone (the group was deleted) and one with an ``error`` have one row, ``member_id``
    None. ``partition`` and ``offset`` are the position of the record, ``n_members`` counts all its members.
    ``state_at``: when the group came to the state it was in. ``subscribed`` (topics) and ``assigned``
    (``topic-partition``) are None where the protocol type isn't ``consumer``.
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
class GroupEpoch:
    """One record of ``__consumer_offsets`` about a group of the new protocol (KIP-848).

    ``kind``: ``group_epoch`` (the group changed), ``target_epoch`` (what its members shall have was computed),
    ``member`` (who it is), ``target_assignment`` (what it shall have), ``current_assignment`` (what it may have in its
    ``epoch``, ``revoking`` being what it must give up first; ``state`` in Kafka's words). ``partition`` and ``offset``
    are the position of the record. A tombstone, and one with an ``error``, has nothing but its key. Partitions are
    ``topic-partition``, or ``id-partition`` where the cluster has no topic of that id any more. ``assignor`` is the one
    the member asks for.
    """

    partition: Int32
    offset: int
    written_at: datetime | None
    group_id: str
    kind: str
    is_tombstone: bool
    epoch: int | None
    previous_epoch: int | None
    state: str | None
    member_id: str | None
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    assignor: str | None
    assigned: tuple[str, ...] | None
    revoking: tuple[str, ...] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class OffsetsPartition:
    """One partition of ``__consumer_offsets``: what was read of it and what became of every record.

    Read from ``start_offset`` until before ``read_until``: ``end_offset`` (high watermark when the read began), or less
    where a transaction was open. ``n_records`` = ``n_commits`` + ``n_generations`` (records, not members) +
    ``n_epochs`` + ``n_unsupported`` (of other record types) + ``n_filtered`` (of groups or times not asked for) +
    ``n_unreadable`` (their key can't be decoded: no row). ``n_tombstones`` and ``n_errors`` are of the first three.
    ``others``, ``problems``: what they were, and how many. Counts are None where there is an ``error``: no other table
    has a row of that partition.
    """

    partition: Int32
    start_offset: int | None
    end_offset: int | None
    read_until: int | None
    n_records: int | None
    n_commits: int | None
    n_generations: int | None
    n_epochs: int | None
    n_tombstones: int | None
    n_errors: int | None
    n_unsupported: int | None
    n_filtered: int | None
    n_unreadable: int | None
    others: tuple[str, ...]
    problems: tuple[str, ...]
    error: str | None
