"""Frozen rows about a cluster's metadata: records of ``__cluster_metadata``, and what they add up to.

As ``kit.tables.groups``: a class is the single declaration of its table. Ids are Kafka's texts (URL-safe base64).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kit.tables.column_types import Binary, Int32


@dataclass(frozen=True, slots=True)
class MetadataRecord:
    """One record of a metadata log, or one place that can't be read (``error``).

    In a checkpoint ``offset`` counts from 0 and is no offset of the log; ``epoch`` is the leader's that wrote it.
    ``name`` is Kafka's record type without "Record"; ``api_key`` is None for control records (LeaderChange,
    SnapshotHeader, …). ``transaction``: none, open, committed, aborted; a record of an open or aborted one has no
    effect. ``body`` is JSON with Kafka's field names, secrets ``***``. ``raw``: the bytes of a type or version that
    is not known, unless that type holds secrets.
    """

    file: str
    offset: int | None
    epoch: Int32 | None
    written_at: datetime | None
    api_key: Int32 | None
    version: Int32 | None
    name: str | None
    transaction: str
    body: str | None
    raw: Binary | None
    error: str | None


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """One file of a metadata log, and outcomes bytes.

    ``kind``: segment, checkpoint, or fetched (a controller's answers, as one segment). ``base_offset`` is the name's:
    of a checkpoint the offset that it ends before. ``first_offset``, ``last_offset`` are those of the log that were
    read. ``n_records`` are all rows: ``n_control`` of them control records, ``n_unknown`` of a type or version that
    isn't known (``unknown`` names them), ``n_errors`` places that can't be read (``problems``), the remaining rows
    metadata records, counted in ``types``. ``gaps``: offsets that no batch of the file has, ``from..to``.
    ``is_whole``: nothing is damaged or missing; a checkpoint also begins with its header and ends with its footer.
    """

    file: str
    kind: str
    base_offset: int | None
    epoch: Int32 | None
    n_bytes: int | None
    n_records: int
    n_control: int
    n_unknown: int
    n_errors: int
    first_offset: int | None
    last_offset: int | None
    types: tuple[str, ...]
    unknown: tuple[str, ...]
    gaps: tuple[str, ...]
    problems: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class MetadataPartition:
    """One partition, as one of the two stores has it (``side``: zookeeper, kraft).

    ``leader`` is None where there is none. ``assignment_key`` and ``isr_key`` are the replicas (in order, with those
    added and removed) and the ISR (sorted) as text, to compare by. ``recovery``: 1 while the leader recovers from an
    unclean election. ``offset``: of the record that changed it last; what came from a checkpoint has the last offset
    that the checkpoint contains, which is no earlier. ``mzxid``, ``controller_epoch``: ZooKeeper's alone;
    ``partition_epoch``: KRaft's alone. ``is_refused``: ZooKeeper refused to read the state, which is the ``error``.
    """

    side: str
    topic: str
    topic_id: str | None
    partition: Int32
    replicas: tuple[Int32, ...]
    adding: tuple[Int32, ...]
    removing: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    assignment_key: str
    isr_key: str
    leader: Int32 | None
    leader_epoch: int | None
    recovery: Int32 | None
    partition_epoch: int | None
    controller_epoch: int | None
    mzxid: int | None
    offset: int | None
    error: str | None
    is_refused: bool | None = None


@dataclass(frozen=True, slots=True)
class MetadataItem:
    """One value that isn't a partition's: one row per key of a config or quota, per ACL, credential, token.

    ============== ============================ ================================== =================================
    ``kind``       ``entity``                   ``item``                           ``value``
    ============== ============================ ================================== =================================
    topic          its name                     ``id``                             its id
    config         ``topics/orders``,           key                                value
                   ``brokers/<default>``
    quota          ``users/a``,                 key                                number, shortest form
                   ``users/a/clients/b``
    scram          user                         mechanism                          ``iterations=…``
    acl            ``Topic:LITERAL:orders``     ``User:a|*|READ|ALLOW``            null
    token          its id                       ``token``                          JSON of owner, renewers and times
    producer_ids   (empty)                      ``next``                           number
    feature        its name                     ``level``                          number
    migration      (empty)                      ``state``                          NONE, MIGRATION, PRE_MIGRATION, …
    ============== ============================ ================================== =================================

    ``is_secret``: there is a value, and it is redacted (a password's ``value`` is null; of a credential the keys).
    Fingerprints are there instead where they were asked for (``kit.text.fingerprints``).
    ``offset``, ``is_refused``: see ``MetadataPartition``.
    """

    side: str
    kind: str
    entity: str
    item: str
    value: str | None
    is_secret: bool
    mzxid: int | None
    offset: int | None
    error: str | None
    is_refused: bool | None = None


@dataclass(frozen=True, slots=True)
class MetadataNode:
    """One registration: ``role`` broker or controller; a broker's ``is_fenced`` and so on are None of a controller.

    ``is_migrating``: a broker in ZooKeeper mode that takes part in a migration; ``is_migration_ready``: a controller
    that is configured for one. ``listeners``: ``NAME://host:port``; ``features``: ``name=min..max``.
    """

    node_id: Int32
    role: str
    epoch: int | None
    incarnation_id: str
    listeners: tuple[str, ...]
    features: tuple[str, ...]
    rack: str | None
    is_fenced: bool | None
    is_shutting_down: bool | None
    is_migrating: bool | None
    is_migration_ready: bool | None
    log_dirs: tuple[str, ...] | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class MetadataRemoval:
    """A value that KRaft removed; ``item`` is None where the whole entity went. ``offset``: of the record."""

    kind: str
    entity: str
    item: str | None
    offset: int
