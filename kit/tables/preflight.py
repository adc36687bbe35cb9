"""Frozen rows of the preflight of a migration to KRaft (KIP-866). As ``kit.tables.groups``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kit.tables.column_types import Int32
from kit.tables.kraft import ZnodeProblem


@dataclass(frozen=True, slots=True)
class PreflightZnodes:
    """The part of ZooKeeper that matters only before a migration; one row.

    ``seqid_version``: how many broker ids ZooKeeper gave out. ``n_config_changes``: notifications under
    ``/config/changes``; ``config_changes_s``: by how many seconds the newest of them was made after the oldest (None:
    there is none, or they can't be read). ``nested_acls``: znodes below the znode of an ACL's resource, which the copy
    does not list. ``restricted``: ``path: scheme:id:permissions, …`` of each top-level path that not every client may
    read and write. ``problems``: what could not be read, with its path; ``problem_paths`` and ``problem_kinds``
    (``REFUSED``, ``ACCESS_LIST``) are as in ``MetadataControl``.
    """

    read_at: datetime
    seqid_version: int | None
    n_config_changes: int | None
    config_changes_s: float | None
    nested_acls: tuple[str, ...]
    restricted: tuple[str, ...]
    problems: tuple[str, ...]
    problem_paths: tuple[str, ...] = ()
    problem_kinds: tuple[str, ...] = ()

    @property
    def problem_rows(self) -> list[ZnodeProblem]:
        """The three columns of problems as one."""
        return list(map(ZnodeProblem, self.problem_paths, self.problem_kinds, self.problems))


@dataclass(frozen=True, slots=True)
class NodeSettingChange:
    """One line that changes in a node's settings when it continues to a mode. ``file``: the ready-made one.

    ``action``: set, remove, or manually: then ``value`` reports in words what can't be known from outside.
    """

    file: str
    role: str
    node_id: Int32 | None
    mode: str
    action: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class BrokerLogDir:
    """One log dir of a broker, and what is wrong with it (``error``). ``path`` None: the broker reported none."""

    node_id: Int32
    path: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class NodeMeta:
    """One ``meta.properties`` of a node's data folder. ``version`` 0 has ``broker.id``, 1 ``node.id``."""

    file: str
    node_id: Int32 | None
    version: Int32 | None
    cluster_id: str | None


@dataclass(frozen=True, slots=True)
class RehearsalFinding:
    """One thing that a rehearsal of the move showed.

    ``kind``: aborts, waits, vanishes, diverges, unknown. ``check_id``: the check of the preflight that reports it;
    None where none does. ``znode``: its path, if known. ``sentence``: what happened, with the controllers' words.
    """

    kind: str
    check_id: str | None
    znode: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class RehearsalStep:
    """One step of a rehearsal, and how long it took on this machine, in seconds."""

    step: str
    seconds: float
    sentence: str
