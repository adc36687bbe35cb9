"""Frozen rows about a cluster's way from ZooKeeper to KRaft: what nodes and ZooKeeper say, what follows, and the diff.

As ``kit.tables.groups``: a class is the single declaration of its table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kit.tables.column_types import Int32

REFUSED, UNDECODABLE, ACCESS_LIST = "refused", "undecodable", "access list"


@dataclass(frozen=True, slots=True)
class ZnodeProblem:
    """``kind``: ZooKeeper ``REFUSED`` to read or list the znode, Kafka can't decode what it holds, or the
    ``ACCESS_LIST`` was refused.
    """

    path: str
    kind: str
    sentence: str


def problem_columns(problems: Iterable[ZnodeProblem]) -> dict[str, Any]:
    """The columns that hold problems in a row of a table."""
    rows = tuple(problems)
    return {
        "problems": tuple(each.sentence for each in rows),
        "problem_paths": tuple(each.path for each in rows),
        "problem_kinds": tuple(each.kind for each in rows),
    }


@dataclass(frozen=True, slots=True)
class MetadataControl:
    """The content of ZooKeeper's control znodes, read in one session; one row.

    ``controller_id``, ``kraft_controller_epoch`` (None: a ZooKeeper controller's) and ``is_controller_persistent``:
    of ``/controller``, which is ephemeral unless KRaft holds it. ``controller_epoch``: of its own znode.
    ``has_migration``: there is a ``/migration``; ``migrating_controller_id``, ``checkpoint`` and ``checkpoint_epoch``
    are its content (None: nothing was copied yet), ``checkpoint_at`` is when it was written last. ``brokers``: ids in
    ``/brokers/ids``, which brokers in KRaft mode leave. ``max_state_epoch``: the highest ``controller_epoch`` of any
    partition's state that could be read. ``pending_deletions``: topics in ``/admin/delete_topics``;
    ``n_reassignments``: znodes of running reassignments and elections; ``n_notifications``: of ISR and log-dir changes
    that no controller took. ``problems``: what could not be read, as a sentence each with its path; the path and the
    kind (``REFUSED``, ``UNDECODABLE``) of each are in ``problem_paths`` and ``problem_kinds``.
    """

    read_at: datetime
    cluster_id: str | None
    controller_id: Int32 | None
    is_controller_persistent: bool | None
    kraft_controller_epoch: int | None
    controller_epoch: int | None
    has_migration: bool | None
    migrating_controller_id: Int32 | None
    checkpoint: int | None
    checkpoint_epoch: int | None
    checkpoint_at: datetime | None
    brokers: tuple[Int32, ...]
    max_state_epoch: int | None
    pending_deletions: tuple[str, ...]
    n_reassignments: int
    n_notifications: int
    problems: tuple[str, ...]
    problem_paths: tuple[str, ...] = ()
    problem_kinds: tuple[str, ...] = ()

    @property
    def problem_rows(self) -> list[ZnodeProblem]:
        """The three columns of problems as one."""
        return list(map(ZnodeProblem, self.problem_paths, self.problem_kinds, self.problems))

    def refused(self, path: str) -> str | None:
        """Return why a znode was not read or listed, without a full stop. None: it was, whatever it holds; or it isn't
        there.

        The content of a refused znode is not known: its fields here are as if it were not there.
        """
        return self._problem(path, REFUSED)

    def undecodable(self, path: str) -> str | None:
        """Return why Kafka can't decode what a znode holds, without a full stop; None: it can, or the znode is not
        known.
        """
        return self._problem(path, UNDECODABLE)

    def _problem(self, path: str, kind: str) -> str | None:
        return next((each.sentence for each in self.problem_rows if (each.path, each.kind) == (path, kind)), None)


@dataclass(frozen=True, slots=True)
class NodeFact:
    """The answer of one node about itself, or why it did not answer (``error``).

    ``role``: broker or controller; ``mode``: zookeeper, migration, kraft (of a broker, by the requests that it serves);
    ``has_flag``: ``zookeeper.metadata.migration.enable`` (of a broker in KRaft mode always False);
    ``metadata_version``: the finalized level, None in ZooKeeper mode. Of the controller that leads the quorum also
    ``is_leader``, ``leader_epoch``, ``high_watermark``, ``voters`` and ``observers``; another one names the leader.
    ``is_listening``: a server accepted the connection, whatever it answered; False: its host refused it, so that no
    node runs there; None: neither, and one may run.
    """

    address: str
    role: str
    node_id: Int32 | None
    mode: str | None
    has_flag: bool | None
    metadata_version: Int32 | None
    is_leader: bool | None
    leader_id: Int32 | None
    leader_epoch: int | None
    high_watermark: int | None
    voters: tuple[Int32, ...]
    observers: tuple[Int32, ...]
    source: str
    read_at: datetime
    error: str | None
    is_listening: bool | None = None

    @property
    def is_stopped(self) -> bool:
        """Return whether the host refused the connection. No other error proves that the node does not run."""
        return self.is_listening is False


@dataclass(frozen=True, slots=True)
class NodeSetting:
    """One setting of one node, as DescribeConfigs shows it; a sensitive one has no ``value``."""

    node_id: Int32
    name: str
    value: str | None
    source: str
    is_sensitive: bool


@dataclass(frozen=True, slots=True)
class KraftState:
    """The phase of a cluster on its way to KRaft (KIP-866); one row.

    ``phase``: zookeeper, controllers, dual write, kraft, finalised, or unknown. ``zk_state``: the last
    ZkMigrationState in the metadata log. ``lag``: records of the quorum that ZooKeeper does not have yet, NoOps among
    them (high watermark - 1 - checkpoint); None unless both were read. ``n_zookeeper``: brokers in ``/brokers/ids``;
    ``n_migrating``: those registered in ZooKeeper mode; ``n_kraft``: in KRaft mode; ``n_fenced``: fenced ones.
    ``n_equal`` to ``n_unknown``: values of a diff by verdict, None where none was made. ``error``: what could not be
    read. ``cluster``: the profile's name. ``cluster_id``: None where neither brokers nor ZooKeeper reported it.
    """

    cluster: str
    cluster_id: str | None
    at: datetime
    phase: str
    zk_state: str | None
    controller_id: Int32 | None
    kraft_epoch: int | None
    controller_epoch: int | None
    max_state_epoch: int | None
    checkpoint: int | None
    high_watermark: int | None
    lag: int | None
    checkpoint_at: datetime | None
    n_zookeeper: int | None
    n_migrating: int | None
    n_kraft: int | None
    n_fenced: int | None
    n_equal: int | None = None
    n_expected: int | None = None
    n_in_flight: int | None = None
    n_diverged: int | None = None
    n_unknown: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class KraftNode:
    """One node on the way, from all that is reported of it.

    ``stands_at``: the phase in which a node runs like this, or unknown (``error``). ``in_zookeeper``: a broker in
    ``/brokers/ids``; ``registered_as``: by the metadata log, as ``ZooKeeper mode, fenced``. ``mode``, ``has_flag``: as
    in ``NodeFact``. None is not known, or has no meaning for this role.
    """

    role: str
    node_id: Int32 | None
    address: str | None
    stands_at: str
    mode: str | None
    has_flag: bool | None
    in_zookeeper: bool | None
    registered_as: str | None
    is_leader: bool | None
    error: str | None


@dataclass(frozen=True, slots=True)
class KraftFact:
    """One fact behind a state: what was reported, by whom, and when it was read."""

    fact: str
    value: str | None
    source: str
    read_at: datetime
    error: str | None


@dataclass(frozen=True, slots=True)
class MetadataDifference:
    """One value in ZooKeeper beside the same one in KRaft.

    ``kind``, ``entity``, ``item``: as in ``MetadataItem``, and kind ``partition`` (topic; partition's number; its
    assignment, ISR, leader and epoch as text). ``verdict``: equal; expected (by ``rule``); in_flight: changed behind
    the checkpoint; diverged: ``cause``, where it is known; unknown: one side could not be read (``error``).
    ``rule`` of an equal row reports that only a part could be compared.
    """

    kind: str
    entity: str
    item: str
    zookeeper_value: str | None
    kraft_value: str | None
    verdict: str
    rule: str | None
    cause: str | None
    mzxid: int | None
    offset: int | None
    error: str | None
