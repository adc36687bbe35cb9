"""Find problems in the state of a cluster for a step of a move to KRaft.

Every ``…_problem`` is a sentence, or None when all is as it should be. An unread value is a problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.clients.cluster import Cluster
from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.kraft.analyze.phase import MIGRATION as STATE_MIGRATION, PRE_MIGRATION
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.move.cluster_state import READS, SHOWN, UNREAD, ClusterState, MoveReads
from kit.tables.kraft import NodeFact
from kit.text.naming import by_value, listed, named, shortened
from kit.text.quantity import quantity

BEHIND = 10
"""The largest number of records a voter may lack: an idle quorum writes two a second, and a follower asks once in
half of one.
"""


def broker_problem(state: ClusterState, broker_id: int, mode: str) -> str | None:
    """Return why a broker does not yet run well in ``mode``."""
    is_listed = broker_id in state.control.brokers
    now, registration = state.modes.get(broker_id), state.registration(broker_id)
    who = f"broker {broker_id}"
    if now is None:
        return f"{who} does not answer at {state.brokers.get(broker_id)}"
    if now != mode:
        return f"{who} runs in {now} mode, not {mode}"
    if is_listed != (mode != KRAFT_MODE):
        return f"{who} is {'still' if is_listed else 'not'} in /brokers/ids"
    if mode == ZOOKEEPER_MODE:
        return None
    if registration is None:
        return (
            f"{who} is not registered with the controllers. Its inter.broker.protocol.version may differ from "
            "their metadata.version"
        )
    if registration.is_migrating is not (mode == MIGRATION_MODE):
        return f"{who} is registered for another mode than {mode}"
    return f"{who} is fenced: it has not caught up with the metadata log" if registration.is_fenced else None


def describe_modes(modes: Mapping[int, str | None]) -> str:
    """Return which brokers run in which mode, by what they reported; None: nothing."""
    return listed(_describe_mode(numbers, mode) for mode, numbers in by_value(modes).items())


def _describe_mode(numbers: Sequence[int], mode: str | None) -> str:
    if mode is None:
        return named(numbers, "broker {} does not answer", "brokers {} do not answer")
    return f"{named(numbers, 'broker {} is', 'brokers {} are')} in {mode} mode"


def registered_problem(state: ClusterState) -> str | None:
    """Return who does not run in KRaft mode alone: brokers fenced, registered as migrating, or in ``/brokers/ids``."""
    not_ready = [each.node_id for each in state.facts.registered_brokers if each.is_migrating or each.is_fenced]
    places = {"registered in ZooKeeper mode or fenced": not_ready, "in /brokers/ids": state.control.brokers}
    sentences = [f"{named(them, 'broker {} is', 'brokers {} are')} {place}" for place, them in places.items() if them]
    return "; ".join(sentences) or None


def joined_problem(state: ClusterState) -> str | None:
    """Brokers that registered since the plan was made: it moves none of them, and without controllers they hang."""
    known = {*state.control.brokers, *(each.node_id for each in state.facts.registered_brokers)}
    joined = sorted(known - set(state.brokers))
    if not joined:
        return None
    return (
        f"{named(joined, 'broker {} is', 'brokers {} are')} registered, but not in this plan. Make a new plan from "
        "the cluster's present phase (offramp kraft status)"
    )


def controllers_problem(
    state: ClusterState, controllers: Mapping[int, str], has_flag: bool | None = True
) -> str | None:
    """Every controller answers, with or without the flag (None: either); they are all the voters; one leads."""
    for number, address in controllers.items():
        node = state.controller_at(address)
        if node is None:
            row = next((each for each in state.facts.controllers if each.address == address), None)
            error = row.error if row is not None and row.error else ""
            why = error.removeprefix(f"{address}: ").removeprefix(f"{address} does not answer as a controller: ")
            return f"controller {number} at {address} does not answer{why and f': {why}'}"
        if has_flag is not None and node.has_flag is not has_flag:
            return f"controller {number} runs {'with' if node.has_flag else 'without'} the migration flag"
    leader = state.facts.leader
    if leader is None:
        return "no controller leads the quorum"
    if (problem := voters_problem(state, controllers)) is not None:
        return problem
    if leader.node_id is not None and controllers.get(leader.node_id) != leader.address:
        return (
            f"{leader.address} is controller {leader.node_id}, but the profile names the address "
            f"{controllers.get(leader.node_id)} for it. Correct the ids in [clusters.NAME.kraft] controllers"
        )
    if not state.facts.has_log:
        return f"the metadata log can't be read: {state.facts.log_error}"
    return None


def running_problem(state: ClusterState) -> str | None:
    """Return which controllers run, or may run."""
    live = state.live_controllers
    may_run = {each.address: each.error for each in state.unreachable_controllers if each in live}
    running = [each.address for each in live if each.address not in may_run]
    problems = [named(running, "controller {} still runs", "controllers {} still run")] if running else []
    problems += [unreachable(address, error) for address, error in may_run.items()]
    return "; ".join(problems) or None


def unreachable(address: str, error: str | None) -> str:
    return f"controller {address} can't be reached, so it may run ({error})"


def voters_problem(state: ClusterState, controllers: Mapping[int, str], is_reported: bool = False) -> str | None:
    """Return whether the quorum has a controller that the profile does not name: no order would reach it.

    Only the leader shows the voters. Without one no node does (``unknown_voters``), unless a person answers for it
    (``is_reported``): but not while most of the named controllers answer, which wait for an election.
    """
    leader, answering = state.facts.leader, state.answering_controllers
    if leader is None and 2 * len(answering) > len(controllers):
        return (
            f"{_answer(answering)} but no controller leads the quorum, so its voters are unknown. Name every "
            "controller in [clusters.NAME.kraft] controllers. If all are named, wait for the election"
        )
    if leader is None:
        return None if is_reported or not answering else unknown_voters(state, controllers)
    if set(leader.voters) == set(controllers):
        return None
    voters = named(sorted(leader.voters), "voter")
    return f"the quorum has the {voters}, but the profile names {listed(sorted(controllers))}"


def unknown_voters(state: ClusterState, controllers: Mapping[int, str]) -> str | None:
    """Return why most of the voters may be controllers that the profile does not name: too few of the named ones
    answer.
    """
    answering = state.answering_controllers
    if state.facts.leader is not None or 2 * len(answering) > len(controllers):
        return None
    reason = f"{_answer(answering)} and does not lead" if answering else "no controller reports a leader"
    return (
        f"{reason}, so the voters of the quorum are unknown: a controller that the profile does not name may lead it. "
        "Start the controllers that the profile names. If you are sure that the profile names every controller: "
        "--override voters_known"
    )


def _answer(answering: Sequence[NodeFact]) -> str:
    return named((each.address for each in answering), "controller {} answers", "controllers {} answer")


def claim_problem(state: ClusterState, has_claim: bool) -> str | None:
    """Return whether the holder of ``/controller`` is of the kind that the plan found."""
    control = state.control
    if bool(control.is_controller_persistent) is has_claim:
        return None
    if has_claim:
        return f"broker {control.controller_id}, no longer a KRaft controller, holds /controller. Make the plan again"
    return (
        f"KRaft controller {control.controller_id} has claimed /controller since the plan was made: the copy from "
        "ZooKeeper is in progress. Wait for the end of the copy (offramp kraft status), then make the plan again"
    )


def copied_problem(state: ClusterState) -> str | None:
    """Return whether the copy was completed since the plan was made."""
    checkpoint = state.control.checkpoint
    if checkpoint is None:
        return state.control.refused("/migration") or state.control.undecodable("/migration")
    return (
        f"/migration has the offset {checkpoint}: the copy was completed since the plan was made. Make the plan again"
    )


def first_checkpoint_problem(state: ClusterState) -> str | None:
    """Return whether ``/migration`` is as controllers make it when they start."""
    control = state.control
    if control.has_migration is None:
        return control.refused("/migration") or "/migration could not be read"
    if (odd := control.undecodable("/migration")) is not None:
        return odd
    if control.has_migration is False:
        return (
            "ZooKeeper has no /migration, which controllers create when they start. Either the controllers use "
            "another chroot than the brokers (zookeeper.connect in their files), or another client deleted /migration"
        )
    if control.checkpoint is not None:
        return f"/migration has the checkpoint {control.checkpoint}, so it belongs to another attempt"
    return None


def without_flag(state: ClusterState, controllers: Mapping[int, str]) -> tuple[int, ...]:
    """The controllers that report that they run without the migration flag."""
    nodes = {number: state.controller_at(address) for number, address in controllers.items()}
    return tuple(sorted(number for number, node in nodes.items() if node is not None and node.has_flag is False))


def flag_problem(state: ClusterState, controllers: Mapping[int, str]) -> str | None:
    """Return why a controller may not be given the flag back: the migration ended, or the active one lacks the flag
    too.
    """
    problem, leader = controllers_problem(state, controllers, has_flag=None), state.facts.leader
    if problem is not None or leader is None:
        return problem
    if state.facts.zk_state != STATE_MIGRATION:
        return f"the migration state in the metadata log is {state.facts.zk_state}, not {STATE_MIGRATION}"
    return None if leader.has_flag else f"controller {leader.node_id}, which is active, runs without the migration flag"


def waiting_problem(state: ClusterState, controllers: Mapping[int, str]) -> str | None:
    """The controllers wait for brokers, and have copied nothing."""
    problem, zk_state = controllers_problem(state, controllers), state.facts.zk_state
    if problem is not None:
        return problem
    if zk_state != PRE_MIGRATION:
        return f"the migration state in the metadata log is {zk_state}, not {PRE_MIGRATION}"
    return first_checkpoint_problem(state)


def dual_write_problem(state: ClusterState, controllers: Mapping[int, str]) -> str | None:
    """The copy is done, and KRaft holds ``/controller``; that ``/migration`` moves takes two observations."""
    control, leader = state.control, state.facts.leader
    problem = controllers_problem(state, controllers)
    if problem is not None or leader is None:
        return problem
    if state.facts.zk_state != STATE_MIGRATION:
        return f"the migration state in the metadata log is {state.facts.zk_state}, not {STATE_MIGRATION}"
    if not control.is_controller_persistent or control.controller_id not in controllers:
        return f"/controller is held by {control.controller_id}, not by a KRaft controller"
    if control.checkpoint is None or control.checkpoint_epoch != leader.leader_epoch:
        return (
            f"/migration is of epoch {control.checkpoint_epoch}, but the controllers are in epoch "
            f"{leader.leader_epoch}. The active controller updates /migration with its next record "
            "(metadata.max.idle.interval.ms)"
        )
    return None


def behind_problem(cluster: Cluster, state: ClusterState, reads: MoveReads) -> str | None:
    """Return whether every voter of the quorum has fetched nearly all of the active controller's log."""
    leader = state.facts.leader
    if leader is None:
        return "no controller leads the quorum"
    try:
        ends = reads.voter_ends(cluster, leader.address)
    except UNREAD as error:
        return f"controller {leader.node_id} did not report the log positions of the other controllers: {error}"
    late = {number: max(ends.values()) - end for number, end in ends.items() if max(ends.values()) - end > BEHIND}
    behind = (f"controller {number} by {quantity(records, 'record')}" for number, records in late.items())
    return f"controllers are behind the active controller: {listed(behind)}" if late else None


def diff_problem(cluster: Cluster, reads: MoveReads) -> str | None:
    """Both stores hold the same now. Raises ConnectError, ReadError."""
    diff = reads.diff(cluster)
    return None if diff.is_clean else describe_diff(diff)


def describe_diff(diff: MetadataDiff) -> str:
    rows = diff.of("diverged", "in_flight", "unknown")
    named_rows = (" ".join(map(str, row)) for row in rows.select("verdict", "kind", "entity", "item").rows())
    return f"ZooKeeper and KRaft hold different values: {shortened(named_rows, SHOWN)}. To see all: offramp kraft diff"


def names_controller(cluster: Cluster, brokers: Mapping[int, str], holder: int, reads: MoveReads = READS) -> str | None:
    """Return whether each broker names that controller: the first that doesn't. Raises nothing."""
    for number, address in brokers.items():
        try:
            metadata = reads.metadata(cluster, address)
        except UNREAD as error:
            return f"broker {number} at {address} does not answer: {error}"
        answer = [each.broker_id for each in metadata.brokers if each.is_controller]
        if answer != [holder]:
            names = named(answer, "controller") if answer else "no controller"
            return f"broker {number} names {names}, but broker {holder} holds /controller"
    return None
