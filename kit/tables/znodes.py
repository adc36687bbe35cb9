"""Frozen rows about znodes: what they hold, what was done to them, and ZooKeeper's own files that report it.

As ``kit.tables.groups``: a class is the single declaration of its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from kit.tables.column_types import Int32

Binary = Annotated[bytes, "binary"]


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode. ``data``: None where there is none, or where it could not be read (``error``); secrets are ``***``.

    ``version`` counts the writes of its data. ``czxid``, ``mzxid``: the transactions that made and last wrote it, the
    latter at ``modified_at``. ``ephemeral_owner``: the session it goes with; None: it stays (containers, and znodes
    with a time to live, too).
    """

    path: str
    data: Binary | None
    version: Int32 | None
    czxid: int | None
    mzxid: int | None
    ephemeral_owner: int | None
    modified_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ZnodeChange:
    """One operation of a transaction, or one place of a log that can't be read (``error``).

    ``operation``: create, create_container, create_ttl, delete, delete_container, set_data, reconfig, set_acl, check,
    create_session, close_session (one row for each znode that went with the session, where the log reports which),
    failed. ``session_id`` asked for it, as its ``cxid``-th request; ``written_at`` is the leader's clock. ``part``
    counts the operations of one multi-transaction, from 0; None: it was none. ``version``: what the data's became;
    of set_acl the ACL's, of check the one expected. ``ephemeral_owner``: of a znode that was made to go with its
    session. ``refusal``: why ZooKeeper did not do it, by its own name; a multi-transaction is refused as a whole
    (RolledBack and RuntimeInconsistency: an operation after or before it was the reason).
    """

    file: str
    zxid: int | None
    written_at: datetime | None
    session_id: int | None
    cxid: Int32 | None
    operation: str | None
    part: Int32 | None
    path: str | None
    version: Int32 | None
    data: Binary | None
    ephemeral_owner: int | None
    refusal: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ZooKeeperFile:
    """One file of a ZooKeeper server, and outcomes bytes.

    ``kind``: snapshot or log. ``zxid`` is the name's: a log's first transaction; of a snapshot the last one it surely
    has (it may have some that came while it was written: up to ``last_zxid``). ``n_rows``: znodes or changes.
    ``compression``: gzip, snappy, none. ``first_at``, ``last_at``: of a log's transactions; a snapshot's last write.
    ``problems``: what is damaged or missing. ``is_whole``: nothing is; a snapshot's checksums are right.
    """

    file: str
    kind: str
    zxid: int | None
    n_bytes: int | None
    compression: str
    n_rows: int
    n_sessions: int
    first_zxid: int | None
    last_zxid: int | None
    first_at: datetime | None
    last_at: datetime | None
    problems: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ZooKeeperSession:
    """A session that a snapshot knows as open."""

    file: str
    session_id: int
    timeout_ms: Int32


@dataclass(frozen=True, slots=True)
class ZnodeAcl:
    """One access list of a snapshot: who may do what with ``n_znodes`` znodes.

    ``entries``: ``scheme:id:permissions`` (``cdrwa``); a digest is ``***``.
    """

    file: str
    acl_id: int
    entries: tuple[str, ...]
    n_znodes: int
