"""The steps of a move to KRaft and back, made from their parameters."""

from __future__ import annotations

from collections.abc import Iterable

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.engine.model.plan import Consent
from kit.engine.model.step import Change, Step
from kit.errors import PlanError
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, ZOOKEEPER
from kit.kraft.move.overrides import takes_second_person
from kit.kraft.move.parameters import (
    HandBackParameters,
    KraftParameters,
    OrderParameters,
    RollParameters,
    StopParameters,
    UnregisterParameters,
)
from kit.text.naming import listed, named

(
    ROLL, START, STOP, HAND_BACK, WIPE, COMPARE, FINALISE, MEND, FAIL_OVER_STEP, FLAG_STEP, ARCHIVE, LIST,
    UNREGISTER_STEP,
) = KINDS = (
    "roll brokers",
    "start controllers",
    "stop controllers",
    "hand back",
    "wipe controllers",
    "compare",
    "finalise",
    "repair ZooKeeper",
    "fail over",
    "return the flag",
    "archive ZooKeeper",
    "list what stays",
    "unregister a broker",
)  # fmt: skip
PHASES = (CONTROLLERS, DUAL_WRITE, KRAFT, FINALISED, ZOOKEEPER)
"""The phases that ``--to`` may name."""
REPAIR, FAIL_OVER = "repair", "fail over"
"""The requests instead of a phase."""
UNREGISTER = "unregister broker"
"""And the broker's id: one that is gone for good, and registered still."""
RETURN_FLAG = "return the flag"
"""The goal of a plan to KRaft mode while a controller lacks the migration flag."""
REPAIR_CLAIM, REPAIR_MIGRATION, REPAIR_EPOCH, REPAIR_BROKERS = REPAIRS = (
    "repair /controller",
    "repair /migration",
    "repair /controller_epoch",
    "repair brokers",
)
"""The goals of plans to repair: one each, in this order."""
_VERBS = {FINALISED: "finalise", ZOOKEEPER: "roll back"}
SECOND_PERSON_HOURS = 1.0
"""The longest validity of an approval that a second person has to give."""
COMPARE_S = 180.0
HANDED_BACK_S = 3.0
"""From the transaction until a broker may be stopped: one that still believes in KRaft hangs (3.9.1)."""
STILL_S = 5.0
"""The time for which ``/migration`` must not change before it is deleted: a controller writes it twice a second."""
MIGRATION_ZNODE = "/migration"
CONTROL = "control of the cluster"
OBSERVED = ("phase", "broker modes", "controllers", "ZooKeeper's controller")


def unregistered(to_phase: str) -> int | None:
    """The broker of a plan to unregister one."""
    number = to_phase.removeprefix(f"{UNREGISTER} ")
    return int(number) if number != to_phase and number.isascii() and number.isdigit() else None


def target_of(cluster_id: str) -> str:
    """The target of the lock."""
    return f"cluster {cluster_id}"


def consent_of(to_phase: str, cluster_name: str, overridden: Iterable[str] = ()) -> Consent:
    """Return what is typed: the phase and the cluster.

    Finalising takes a second person, whose approval holds for an hour, whatever the profile reports. So do some
    overrides.
    """
    is_final = to_phase == FINALISED
    is_phase = to_phase in PHASES
    verb = _VERBS.get(to_phase, f"move to {to_phase}" if is_phase else to_phase)
    second_person = is_final or takes_second_person(overridden)
    return Consent(f"{verb} {cluster_name}", second_person, SECOND_PERSON_HOURS if second_person else None)


def broker_item(number: int) -> str:
    return f"broker {number}"


def controller_item(number: int) -> str:
    return f"controller {number}"


_ON_THE_WAY = {
    ZOOKEEPER_MODE: "the controllers wait (state 2), nothing is copied yet, /migration is of this attempt",
    MIGRATION_MODE: "dual write continues (state 1), every controller has the migration flag",
}


def roll_step(step_id: str, parameters: RollParameters) -> Step:
    """Raises:
    PlanError: brokers don't go from the one mode to the other.
    """
    way = (parameters.from_mode, parameters.to_mode)
    forward = {(ZOOKEEPER_MODE, MIGRATION_MODE), (MIGRATION_MODE, KRAFT_MODE)}
    if way not in forward | {(KRAFT_MODE, MIGRATION_MODE), (MIGRATION_MODE, ZOOKEEPER_MODE)}:
        raise PlanError(f"a broker can't go from {parameters.from_mode!r} to {parameters.to_mode!r} mode")
    stuck = None
    if parameters.begins_copy:
        stuck = "with the last broker the copy begins; to return, make a plan: offramp plan kraft --to zookeeper"
    elif way == (MIGRATION_MODE, ZOOKEEPER_MODE):
        stuck = "the controllers have ended; the way forward is a plan: offramp plan kraft --to controllers"
    brokers = named(parameters.nodes, "broker")
    last = (
        " (the copy begins with it)" if parameters.begins_copy else "" if len(parameters.nodes) == 1 else ", one by one"
    )
    return Step(
        step_id=step_id,
        kind=ROLL,
        title=f"Restart {brokers} in {parameters.to_mode} mode{last}",
        precondition="before each restart: every broker is in sync, and each partition has its full ISR (a broker "
        f"that does not run is restarted first); {_before_roll(parameters)}",
        verification=f"{brokers}: in {parameters.to_mode} mode, caught up, every ISR is full"
        + ("; the copy is done and dual write continues" if parameters.begins_copy else ""),
        deadline_s=parameters.node_timeout_s,
        changes=tuple(
            Change(broker_item(it), f"{parameters.from_mode} mode", f"{parameters.to_mode} mode")
            for it in parameters.nodes
        ),
        undo=None
        if stuck
        else f"The brokers that this step restarted are restarted in {parameters.from_mode} mode, the last one first.",
        cannot_be_undone=stuck,
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )


def _before_roll(parameters: RollParameters) -> str:
    if parameters.to_mode == ZOOKEEPER_MODE:
        return f"a broker holds /controller, every broker names it in five answers, and {HANDED_BACK_S:g} s have passed"
    if parameters.to_mode == KRAFT_MODE:
        but = f" except {listed(parameters.left_behind)}" if parameters.left_behind else ""
        return (
            f"{_ON_THE_WAY[MIGRATION_MODE]}, both stores hold the same values, and no group under /consumers{but} "
            "has a live member"
        )
    return _ON_THE_WAY[ZOOKEEPER_MODE if parameters.from_mode == ZOOKEEPER_MODE else MIGRATION_MODE]


def performed(parameters: OrderParameters) -> dict[str, str | None]:
    return {
        "needs_person": parameters.instruction if parameters.by_person else None,
        "performed_by": parameters.instruction,
    }


_TOGETHER = "controllers {} together, on empty disks"


def start_step(step_id: str, parameters: OrderParameters) -> Step:
    nodes = [Change(controller_item(it), "not running", "running with the migration flag") for it in parameters.nodes]
    return Step(
        step_id=step_id,
        kind=START,
        title=f"Start {named(parameters.nodes, 'controller {} on an empty disk', _TOGETHER)}",
        precondition="no controller answers, and ZooKeeper has no /migration (with one of another attempt, the "
        "controllers would delete topics)",
        verification="every controller answers with the migration flag, all are voters, and one leads; the log has "
        "state 2 and no topic; /migration shows that nothing is copied",
        deadline_s=parameters.node_timeout_s,
        changes=(*nodes, Change(MIGRATION_ZNODE, None, "nothing copied yet")),
        undo="If no broker is in migration mode and nothing is copied, all controllers are stopped, /migration is "
        "deleted if its version is unchanged, and the controllers' disks are wiped.",
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )


def stop_step(step_id: str, parameters: StopParameters) -> Step:
    before, is_repair = "no broker is in KRaft mode (such a broker would hang)", parameters.to_phase in REPAIRS
    if parameters.is_aborted:
        before += ", the copy was aborted, and no copy was completed since"
    elif not is_repair:
        before += ", and both stores hold the same values" if parameters.has_claim else ", and nothing is copied yet"
    return Step(
        step_id=step_id,
        kind=STOP,
        title=f"Stop {named(parameters.nodes, 'controller')}",
        precondition=before,
        verification="no controller answers",
        deadline_s=parameters.node_timeout_s,
        changes=tuple(
            Change(controller_item(it), "running with the migration flag", "stopped") for it in parameters.nodes
        ),
        undo=None
        if is_repair
        else "The controllers are started again with the migration flag and their existing disks.",
        cannot_be_undone="controllers that are started again would damage the repaired znodes" if is_repair else None,
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )


def hand_back_step(step_id: str, parameters: HandBackParameters) -> Step:
    claim = "/controller_epoch is set above every epoch used, /controller and /migration are deleted"
    writes = claim if parameters.has_claim else "/migration, which says that nothing was copied, is deleted"
    after = "a broker holds /controller, and every broker names it in five answers"
    return Step(
        step_id=step_id,
        kind=HAND_BACK,
        title="Return the control of the cluster to ZooKeeper",
        precondition=f"no controller answers, no broker is in KRaft mode, /migration does not change for {STILL_S:g} s",
        verification=f"{after}, {HANDED_BACK_S:g} s after the transaction or later",
        deadline_s=parameters.node_timeout_s,
        changes=(Change(CONTROL, "KRaft's controllers", f"ZooKeeper's; in one conditional transaction {writes}"),),
        cannot_be_undone="from then on ZooKeeper's controller changes metadata that KRaft's log does not learn",
        affects=OBSERVED,
        parameters=parameters.to_json(),
    )


_FOLLOWED = (
    f"a broker holds /controller, every broker names it in five answers, {HANDED_BACK_S:g} s after the transaction or"
    " later; each partition with a broker in its ISR has a leader"
)
_REPAIRED = {
    REPAIR_CLAIM: (
        "/controller_epoch is set above every epoch used, /controller and a /migration beside it are deleted",
        f"/migration is gone; {_FOLLOWED}",
    ),
    REPAIR_MIGRATION: (
        "/migration is deleted, while a broker holds /controller",
        "/migration is gone, and a broker holds /controller",
    ),
    REPAIR_EPOCH: (
        "/controller_epoch is set far above every epoch used, and /controller is deleted, so that a broker claims it "
        "again",
        f"no partition's epoch is above /controller_epoch; {_FOLLOWED}",
    ),
}


def repair_step(step_id: str, parameters: HandBackParameters) -> Step:
    """Raises:
    PlanError: the plan repairs no znode.
    """
    if parameters.to_phase not in _REPAIRED:
        raise PlanError(f"a plan to {parameters.to_phase!r} repairs no znode")
    done, seen = _REPAIRED[parameters.to_phase]
    return Step(
        step_id=step_id,
        kind=MEND,
        title=f"Repair {parameters.to_phase.removeprefix('repair ')} in ZooKeeper",
        precondition="the damage is still there, no controller answers, every broker answers and none is in KRaft mode,"
        f" the control znodes do not change for {STILL_S:g} s",
        verification=seen,
        deadline_s=parameters.node_timeout_s,
        changes=(Change(CONTROL, "damaged", f"ZooKeeper's; in one conditional transaction {done}"),),
        cannot_be_undone="an undo does not restore damage; the journal holds the former values of the znodes",
        affects=OBSERVED,
        parameters=parameters.to_json(),
    )


def wipe_step(step_id: str, parameters: OrderParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=WIPE,
        title=f"Wipe the {named(parameters.nodes, 'disk of controller {}', 'disks of controllers {}')}",
        precondition="no controller answers, and ZooKeeper has no /migration",
        verification="no controller answers; offramp can't see whether the disks are empty, so the next plan to dual "
        "write checks whether the controllers' log was",
        deadline_s=parameters.node_timeout_s,
        changes=tuple(Change(controller_item(it), "a log of this attempt", "an empty disk") for it in parameters.nodes),
        cannot_be_undone="the content of the disks is deleted",
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )


def compare_step(step_id: str, parameters: KraftParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=COMPARE,
        title="Compare the values in ZooKeeper and KRaft",
        precondition=_ON_THE_WAY[MIGRATION_MODE],
        verification="/migration advances in the leader's epoch; no value is diverged, in flight or unknown",
        deadline_s=COMPARE_S,
        undo="There is nothing to undo.",
        parameters=parameters.to_json(),
    )


def unregister_step(step_id: str, parameters: UnregisterParameters) -> Step:
    (number,) = parameters.nodes
    return Step(
        step_id=step_id,
        kind=UNREGISTER_STEP,
        title=f"End the registration of broker {number}, which does not return",
        precondition="the broker does not answer, is not in /brokers/ids and, during dual write, is fenced; no "
        "partition has a replica on it; dual write continues, or the controllers wait for the broker",
        verification=f"the metadata log holds no registration of broker {number}; the phase is unchanged",
        deadline_s=parameters.node_timeout_s,
        changes=(Change(broker_item(number), "registered with the controllers", "not registered"),),
        cannot_be_undone="a broker registers itself when it starts",
        affects=OBSERVED,
        parameters=parameters.to_json(),
    )


def fail_over_step(step_id: str, parameters: OrderParameters) -> Step:
    (number,) = parameters.nodes
    return Step(
        step_id=step_id,
        kind=FAIL_OVER_STEP,
        title=f"Restart the active controller {number}, so that another controller is elected",
        precondition="three or more controllers exist, all answer and have caught up, dual write continues, every "
        "ISR is full, and both stores hold the same values",
        verification=f"another controller than {number} leads in a higher epoch; all answer with the migration flag and"
        " have caught up; dual write continues in that epoch, and every ISR is full",
        deadline_s=parameters.node_timeout_s,
        changes=(Change(controller_item(number), "active", "restarted, another controller is active"),),
        cannot_be_undone="there is nothing to undo: the active controller is not a setting",
        affects=OBSERVED,
        parameters=parameters.to_json(),
        **performed(parameters),
    )
