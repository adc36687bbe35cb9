"""Facts of a cluster that moves to KRaft, and what an observation of it finds.

``SOUND`` is a dual write in which all is well: a test changes one fact of it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from kit.kraft.analyze.contradictions import findings
from kit.kraft.analyze.phase import Facts, state
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.metadata_log import MetadataLog
from kit.kraft.metadata_log.image import Image
from kit.kraft.status import KraftStatus
from kit.kraft.watch import KraftObservation
from kit.tables import schema as tables
from kit.tables.kraft import (
    REFUSED,
    UNDECODABLE,
    MetadataControl,
    MetadataDifference,
    NodeFact,
    ZnodeProblem,
    problem_columns,
)
from kit.tables.metadata import MetadataNode

AT = datetime(2026, 11, 23, 8, tzinfo=UTC)


def control(**changed) -> MetadataControl:
    """The control znodes of the sound dual write, with changes."""
    row = MetadataControl(
        read_at=AT,
        cluster_id="fVyKgJybSY",
        controller_id=3000,
        is_controller_persistent=True,
        kraft_controller_epoch=1,
        controller_epoch=3,
        has_migration=True,
        migrating_controller_id=3000,
        checkpoint=79,
        checkpoint_epoch=1,
        checkpoint_at=AT,
        brokers=(1,),
        max_state_epoch=1,
        pending_deletions=(),
        n_reassignments=0,
        n_notifications=0,
        problems=(),
    )
    return replace(row, **changed)


def hides(*paths: str) -> dict[str, Any]:
    """Columns of a row: what the login may not read."""
    told = "{}: it can't be read: NoAuthError (the login needs the right READ there)"
    return problem_columns(ZnodeProblem(path, REFUSED, told.format(path)) for path in paths)


def holds(path: str, told: str) -> dict[str, Any]:
    """Columns of a row: a znode that Kafka can't decode."""
    return problem_columns([ZnodeProblem(path, UNDECODABLE, f"{path}: {told}")])


def plain(**changed) -> MetadataControl:
    """The control znodes before any migration, with changes."""
    nothing = dict.fromkeys(("migrating_controller_id", "checkpoint", "checkpoint_epoch", "checkpoint_at"))
    before = {
        "controller_id": 1,
        "is_controller_persistent": False,
        "kraft_controller_epoch": None,
        "has_migration": False,
    }
    return control(**nothing, **(before | changed))


def node(role: str, **changed) -> NodeFact:
    """The answer of the broker or of the controller of the sound dual write, with changes."""
    is_controller = role == "controller"
    row = NodeFact(
        address="host:9093" if is_controller else "host:9092",
        role=role,
        node_id=3000 if is_controller else 1,
        mode="kraft" if is_controller else "migration",
        has_flag=True,
        metadata_version=21,
        is_leader=is_controller,
        leader_id=3000 if is_controller else None,
        leader_epoch=1 if is_controller else None,
        high_watermark=82 if is_controller else None,
        voters=(3000,) if is_controller else (),
        observers=(1,) if is_controller else (),
        source="ApiVersions",
        read_at=AT,
        error=None,
    )
    return replace(row, **changed)


def broker(**changed) -> MetadataNode:
    """The registration of the broker of the sound dual write, with changes."""
    row = MetadataNode(
        node_id=1,
        role="broker",
        epoch=7,
        incarnation_id="a",
        listeners=(),
        features=(),
        rack=None,
        is_fenced=False,
        is_shutting_down=False,
        is_migrating=True,
        is_migration_ready=None,
        log_dirs=(),
        offset=9,
    )
    return replace(row, **changed)


SOUND = Facts(
    at=AT,
    control=control(),
    nodes=(node("broker"), node("controller")),
    registrations=(broker(),),
    zk_state="MIGRATION",
    log_read_at=AT,
)
WAITING = replace(
    SOUND,
    control=plain(has_migration=True),
    zk_state="PRE_MIGRATION",
    registrations=(),
    nodes=(node("broker", mode="zookeeper", has_flag=False), node("controller")),
)
"""Controllers run, and no broker has moved yet."""
BORN = replace(SOUND, control=None, zk_state=None, nodes=(node("broker", mode="kraft"), node("controller")))
"""A cluster that was in KRaft mode from the first day; the profile names no ZooKeeper."""
SILENT = node("controller", mode=None, has_flag=None, is_leader=None, error="no answer")

LOG = MetadataLog((), Image(), pl.DataFrame())


def difference(kind: str, verdict: str, **changed) -> MetadataDifference:
    """A value as both stores hold it, with changes."""
    row = MetadataDifference(kind, "orders", "a", "1", "2", verdict, None, None, 5, 6, None)
    return replace(row, **changed)


def diff(*rows: MetadataDifference) -> MetadataDiff:
    """A comparison of both stores that found these rows."""
    return MetadataDiff(pl.DataFrame(tables.METADATA_DIFFERENCES.from_rows(rows)), 79, 82, 2, log=LOG)


def kraft_look(
    found: MetadataDiff | None = None, error: str | None = None, minutes: int = 0, **changed
) -> KraftObservation:
    """An observation of cluster ``one``, some minutes after the first, with changed facts."""
    facts = replace(SOUND, cluster="one", at=SOUND.at + timedelta(minutes=minutes), **changed)
    return KraftObservation(KraftStatus(facts.cluster, state(facts), findings(facts), facts), found, error)


DIFFERING = diff(
    difference("topic", "equal"),
    difference("config", "equal"),
    difference("config", "diverged", item="b"),
    difference("acl", "in_flight"),
    difference("quota", "expected"),
    difference("scram", "unknown", error="/config/users/a: no JSON"),
)
