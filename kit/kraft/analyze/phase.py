"""Find the phase of a cluster on its way to KRaft: one state from many facts, and what contradicts it (KIP-866).

No fact is believed alone: state 1 (MIGRATION) is both "dual write with brokers in ZooKeeper mode" and "dual write with
brokers in KRaft mode", and a claim in ZooKeeper may be left over. Rules: KIP-866, and what 3.9.1 showed.

========== ================= ============== =============== ====================================================
phase      ZkMigrationState  ``/controller``  ``/migration``  brokers
========== ================= ============== =============== ====================================================
zookeeper  none, or no log   ephemeral      none            all in ``/brokers/ids``
controllers PRE_MIGRATION    ephemeral      offset -1       all in ``/brokers/ids``, some in migration mode
dual write MIGRATION         persistent     moves           at least one in ``/brokers/ids``
kraft      MIGRATION         persistent     moves           none in ``/brokers/ids``
finalised  POST_MIGRATION    stays          is stalled    none in ``/brokers/ids``
========== ================= ============== =============== ====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kit.tables.kraft import KraftFact, KraftState, MetadataControl, NodeFact
from kit.tables.metadata import MetadataNode

ZOOKEEPER, CONTROLLERS, DUAL_WRITE, KRAFT, FINALISED = PHASES = (
    "zookeeper",
    "controllers",
    "dual write",
    "kraft",
    "finalised",
)
UNKNOWN = "unknown"
NO_ZOOKEEPER = "no ZooKeeper"
"""KRaft from the first day, or moved so long ago that the log no longer reports it: there is nothing to move."""
NEXT_STEPS = {
    ZOOKEEPER: "Run the preflight. Then make a plan to the phase controllers: it starts the controllers, and nothing "
    "is copied yet.",
    CONTROLLERS: "Make a plan to the phase dual write: it restarts the brokers in migration mode. The copy begins "
    "with the last broker.",
    DUAL_WRITE: (
        "Check whether both stores hold the same values. Then make a plan to the phase kraft: it restarts the "
        "brokers in KRaft mode."
    ),
    KRAFT: "Watch the cluster for days, make one fail-over, and read the soak report. Then make a plan to the phase "
    "finalised, which a second person approves.",
    FINALISED: "The move has ended and can't be undone. Remove zookeeper_connect from offramp.toml.",
    NO_ZOOKEEPER: "There is nothing to move: brokers and controllers run in KRaft mode without ZooKeeper.",
    UNKNOWN: "The phase is unknown, so no plan can be made. Repair what does not answer in the list below.",
}
"""Phase → what to do next."""
_DECIDING = {"/migration", "/controller", "/brokers/ids"}
"""The znodes that decide a phase."""
_NOTHING_COPIED = "nothing copied yet"
KAFKA_4 = 22
"""``metadata.version`` of 4.0-IV0, which 3.9 does not have."""
_IDS = "/brokers/ids"
NONE, PRE_MIGRATION, MIGRATION, POST_MIGRATION = "NONE", "PRE_MIGRATION", "MIGRATION", "POST_MIGRATION"


@dataclass(frozen=True)
class Facts:
    """Everything that was read. ``control`` is None without ZooKeeper; ``log_error`` gives the reason there is no log.

    ``zk_state`` is the last ZkMigrationState of the metadata log (None: it has none); ``registrations`` are its nodes;
    ``behind``: how long before the log's last record the oldest one was written that ``/migration`` has not passed, by
    the controller's clock; ``has_moved_on``: whether ``/migration`` has to move for one of those (None: not known);
    ``stood_still_s``: how long the offset in ``/migration`` was seen unchanged, by this
    process's monotonic clock (None: not watched). ``n_aborted``: aborted transactions in the log.
    """

    at: datetime
    control: MetadataControl | None
    nodes: Sequence[NodeFact]
    registrations: Sequence[MetadataNode] = ()
    zk_state: str | None = None
    log_read_at: datetime | None = None
    log_source: str = "the metadata log"
    log_error: str | None = None
    behind: timedelta | None = None
    has_moved_on: bool | None = None
    stood_still_s: float | None = None
    control_error: str | None = None
    cluster: str = ""
    cluster_id: str | None = None
    n_aborted: int = 0

    @property
    def is_copying(self) -> bool:
        """Return whether a KRaft controller holds ``/controller``, and no copy is completed.

        A controller writes the first offset into ``/migration`` when the copy is committed, and only then controls the
        brokers (KIP-866; ``KRaftMigrationDriver`` of 3.9.1). Until then ZooKeeper lacks nothing.
        """
        control = self.control
        if control is None or not control.is_controller_persistent or control.undecodable("/migration") is not None:
            return False
        return control.has_migration is True and control.checkpoint is None and self.zk_state != MIGRATION

    @property
    def is_copy_aborted(self) -> bool:
        """Return whether a copy ended without a commit. The next leader begins the copy again."""
        return self.is_copying and self.n_aborted > 0

    @property
    def has_log(self) -> bool:
        return self.log_read_at is not None

    @property
    def leader(self) -> NodeFact | None:
        """The controller that leads the quorum."""
        return next((each for each in self.nodes if each.is_leader), None)

    @property
    def brokers(self) -> list[NodeFact]:
        return [each for each in self.nodes if each.role == "broker"]

    @property
    def controllers(self) -> list[NodeFact]:
        return [each for each in self.nodes if each.role == "controller"]

    @property
    def registered_brokers(self) -> list[MetadataNode]:
        return [each for each in self.registrations if each.role == "broker"]


def state(facts: Facts) -> KraftState:
    """The one state; what could not be read is None, and the phase ``unknown`` when nothing else decides it."""
    control, leader = facts.control, facts.leader
    high_watermark = leader.high_watermark if leader else None
    checkpoint = control.checkpoint if control else None
    is_known = high_watermark is not None and checkpoint is not None and phase(facts) in (DUAL_WRITE, KRAFT)
    return KraftState(
        cluster=facts.cluster,
        cluster_id=facts.cluster_id,
        at=facts.at,
        phase=phase(facts),
        zk_state=facts.zk_state,
        controller_id=control.controller_id if control else leader.node_id if leader else None,
        kraft_epoch=leader.leader_epoch if leader else None,
        controller_epoch=control.controller_epoch if control else None,
        max_state_epoch=_max_state_epoch(control) if control else None,
        checkpoint=checkpoint,
        high_watermark=high_watermark,
        lag=max((high_watermark or 0) - 1 - (checkpoint or 0), 0) if is_known else None,
        checkpoint_at=control.checkpoint_at if control else None,
        n_zookeeper=len(control.brokers) if control and control.refused(_IDS) is None else None,
        n_migrating=_count(facts, lambda each: each.is_migrating is True),
        n_kraft=_count(facts, lambda each: each.is_migrating is False),
        n_fenced=_count(facts, lambda each: each.is_fenced is True),
    )


def _count(facts: Facts, holds: Callable[[MetadataNode], bool]) -> int | None:
    return sum(map(holds, facts.registered_brokers)) if facts.has_log else None


def phase(facts: Facts) -> str:
    """One of ``PHASES``, or ``no ZooKeeper``, or ``unknown``."""
    if facts.zk_state == POST_MIGRATION:
        return FINALISED
    if facts.zk_state == MIGRATION:
        return _dual_write(facts)
    if _never_moved(facts):
        return NO_ZOOKEEPER
    control = facts.control
    if control is None:
        return UNKNOWN
    if facts.zk_state == PRE_MIGRATION:
        return CONTROLLERS
    if facts.zk_state is not None:
        return UNKNOWN
    return _by_zookeeper(control, facts.has_log)


def _never_moved(facts: Facts) -> bool:
    """No migration in the log, every broker that was asked in KRaft mode, and no ZooKeeper in the profile.

    Controllers that were begun without the flag beside a cluster in ZooKeeper mode have the same log.
    """
    modes = {each.mode for each in facts.brokers}
    is_in_use = facts.control is not None or facts.control_error is not None
    return facts.has_log and facts.zk_state in (None, NONE) and modes == {KRAFT} and not is_in_use


def why_no_zookeeper(facts: Facts) -> str | None:
    """Return why a profile need not name a ZooKeeper, where the brokers' modes or the log show it; None: they don't."""
    modes, here = {each.mode for each in facts.brokers}, phase(facts)
    levels = [each.metadata_version for each in facts.nodes if each.metadata_version is not None]
    if here == FINALISED:
        return "its move to KRaft is finalised, so it no longer uses ZooKeeper"
    if here == NO_ZOOKEEPER:
        return "it runs in KRaft mode, so it no longer uses ZooKeeper; its metadata log records no move"
    if modes == {KRAFT} and max(levels, default=0) >= KAFKA_4:
        return f"its metadata.version is {max(levels)}: a version of Kafka 4 or later, which has no ZooKeeper mode"
    return None


def _dual_write(facts: Facts) -> str:
    """State 1 is two phases: brokers in ``/brokers/ids``, or registered as migrating, are the first."""
    in_zookeeper = facts.control is not None and bool(facts.control.brokers)
    return DUAL_WRITE if in_zookeeper or any(each.is_migrating for each in facts.registered_brokers) else KRAFT


def _by_zookeeper(control: MetadataControl, has_log: bool) -> str:
    """Without a state in a log. ZooKeeper alone shows neither KRaft from finalised, nor a left-over claim."""
    if not _DECIDING.isdisjoint(control.problem_paths):
        return UNKNOWN
    if control.checkpoint is None and not control.is_controller_persistent:
        return CONTROLLERS if control.has_migration else ZOOKEEPER
    return UNKNOWN if has_log or not control.brokers or control.checkpoint is None else DUAL_WRITE


def fact_rows(facts: Facts) -> list[KraftFact]:
    """Each fact with its source and when it was read."""
    rows = list(_control_facts(facts))
    for node in facts.nodes:
        rows += [KraftFact(name, text, node.source, node.read_at, node.error) for name, text in _said(node)]
    read_at = facts.log_read_at or facts.at
    rows.append(KraftFact("migration state", facts.zk_state, facts.log_source, read_at, facts.log_error))
    rows += [
        KraftFact(f"registration of {each.role} {each.node_id}", registered(each), facts.log_source, read_at, None)
        for each in facts.registrations
    ]
    return rows


def _control_facts(facts: Facts) -> Iterable[KraftFact]:
    control = facts.control
    if control is None:
        if facts.control_error:
            yield KraftFact("control znodes", None, "ZooKeeper", facts.at, facts.control_error)
        return
    holder = None if control.controller_id is None else f"{control.controller_id}, {_kind(control)}"
    checkpoint = (
        None if control.checkpoint is None else f"offset {control.checkpoint}, epoch {control.checkpoint_epoch}"
    )
    is_decoded = control.undecodable("/migration") is None
    values = {
        "/controller": holder,
        "/controller_epoch": _text(control.controller_epoch),
        "/migration": checkpoint or (_NOTHING_COPIED if is_decoded and control.has_migration else None),
        "/migration written": f"{control.checkpoint_at:%F %T} UTC" if control.checkpoint_at else None,
        "/brokers/ids": None if control.refused(_IDS) else ", ".join(map(str, control.brokers)) or "none",
        "highest epoch of a partition": _text(_max_state_epoch(control)),
    }
    for name, value in values.items():
        yield KraftFact(name, value, "ZooKeeper", control.read_at, None)
    for problem in control.problems:
        yield KraftFact("control znodes", None, "ZooKeeper", control.read_at, problem)


def _max_state_epoch(control: MetadataControl) -> int | None:
    """None where a partition that could not be read may have a higher one."""
    return control.max_state_epoch if control.refused("/brokers/topics") is None else None


def _kind(control: MetadataControl) -> str:
    return "a KRaft controller (persistent)" if control.is_controller_persistent else "a broker (ephemeral)"


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _said(node: NodeFact) -> Iterable[tuple[str, str | None]]:
    who = f"{node.role} {node.address}"
    if node.error and node.mode is None:
        yield who, None
        return
    flag = "with" if node.has_flag else "without"
    yield who, f"{node.mode} mode" if node.role == "broker" else f"{flag} the migration flag"
    if node.is_leader:
        yield (
            "quorum",
            f"controller {node.node_id} leads, epoch {node.leader_epoch}, high watermark {node.high_watermark}",
        )


def registered(node: MetadataNode) -> str:
    """Return the state of a node on its way, by its registration in the metadata log."""
    if node.role == "controller":
        return "ready to migrate" if node.is_migration_ready else "not ready to migrate"
    return f"{'ZooKeeper' if node.is_migrating else 'KRaft'} mode{', fenced' if node.is_fenced else ''}"
