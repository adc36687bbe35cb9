"""Repair what another operator or tool left of a move to KRaft: found from facts, and repaired, each damage by a plan
of its own.

- ``repair /controller``: KRaft's claim, and no migration in any log. No broker can be elected.
- ``repair /migration``: one with an offset, or unreadable, or of controllers that are gone. The next controllers would
  delete every topic that they don't know, or hang.
- ``repair /controller_epoch``: it is no number, below the epoch of a partition, or below what brokers remember.
  Elections of that partition are refused; brokers ignore the controller.
- ``repair brokers``: brokers in migration mode, and no controller answers. A broker that was ordered to stop too early
waits
  for KRaft for minutes.

Facts by release 3.9.1. In this order, because each needs those above it repaired: a broker may be restarted only once
it knows a controller that may elect leaders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from kit.clients.cluster import Cluster
from kit.clients.nodes import MIGRATION_MODE
from kit.engine.model.performer import Checked, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import NothingToDo, PlanError
from kit.kraft.analyze.phase import MIGRATION as STATE_MIGRATION, POST_MIGRATION
from kit.kraft.move.cluster_state import UNREAD, ClusterState, MoveReads, contradictions, zookeeper_of
from kit.kraft.move.hand_back import HandBackActor, Saved, control_problem, handed_back_problem
from kit.kraft.move.orders import checked, first_problem, verified
from kit.kraft.move.parameters import HandBackParameters
from kit.kraft.move.problems import names_controller, running_problem
from kit.kraft.move.steps import (
    HANDED_BACK_S,
    MIGRATION_ZNODE,
    REPAIR_BROKERS,
    REPAIR_CLAIM,
    REPAIR_EPOCH,
    REPAIR_MIGRATION,
)
from kit.kraft.move.sync import led_problem
from kit.kraft.read.control_znodes import CONTROLLER, EPOCH
from kit.kraft.read.metadata_znodes import with_max_state_epoch
from kit.text.addresses import address_of
from kit.text.naming import named

LOOKS = 3
"""The number of times running that a broker must name another controller than ZooKeeper: an election takes less."""
REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing to repair: the plan that does, and what was found."""

    plan: str
    sentence: str


def damages(now: ClusterState) -> list[Damage]:
    """Return what is left over where no log shows that a migration is in progress; ``for_repair`` made the
    observation.
    """
    if now.facts.zk_state in (STATE_MIGRATION, POST_MIGRATION):
        return []
    return [each for find in (_claim, _left_migration, _low_epoch, _left_brokers) for each in find(now)]


def known_brokers(cluster: Cluster, reads: MoveReads) -> dict[int, str]:
    """Id → ``host:port``, as all bootstrap servers know them: one that began while no controller leads the cluster
    knows none.

    A node that can't be asked is left to the gate that holds them against ``/brokers/ids``.
    """
    addresses: dict[int, str] = {}
    for address in cluster.profile.bootstrap_servers.split(","):
        with suppress(*UNREAD):
            metadata = reads.metadata(cluster, address.strip())
            addresses |= {
                each.broker_id: address_of(each.host, each.port) for each in metadata.brokers if each.host is not None
            }
    return addresses


def for_repair(now: ClusterState, cluster: Cluster, reads: MoveReads, sleep: Callable[[float], None]) -> ClusterState:
    """The same observation, with the highest epoch of any partition, and whether every broker follows ZooKeeper's
    controller.

    Raises:
        ConnectError: ZooKeeper does not answer.
    """
    control, holder = with_max_state_epoch(zookeeper_of(cluster), now.control), now.control.controller_id
    state = replace(now, facts=replace(now.facts, control=control))
    if now.control.is_controller_persistent or holder is None or holder not in now.brokers:
        return state
    for _ in range(LOOKS):
        problem = names_controller(cluster, now.brokers, holder, reads)
        if problem is None:
            return state
        sleep(HANDED_BACK_S)
    return replace(state, ignored=problem)


def _claim(now: ClusterState) -> Iterator[Damage]:
    """While a controller leads, and nothing is copied yet, the copy is under way or begins again: no damage."""
    control = now.control
    is_led = now.facts.leader is not None or any(each.error is not None for each in now.live_controllers)
    if control.is_controller_persistent and (control.checkpoint is not None or not is_led):
        log = "the controllers' log holds no migration" if now.facts.has_log else "no controller leads"
        who = f"KRaft controller {control.controller_id} holds /controller"
        yield Damage(REPAIR_CLAIM, f"{who}, but {log}. No broker can become the controller")


def _left_migration(now: ClusterState) -> Iterator[Damage]:
    control = now.control
    if (stale := stale_migration(now)) is not None:
        yield Damage(REPAIR_MIGRATION, stale)
    elif control.has_migration and not control.is_controller_persistent and not now.live_controllers:
        yield Damage(
            REPAIR_MIGRATION,
            "/migration belongs to controllers that do not answer. New controllers can't be started while it exists",
        )


def stale_migration(now: ClusterState) -> str | None:
    """The ``/migration`` that the next controllers would believe, or hang on, while a broker holds ``/controller``.

    One that may not be read is none: what it holds is not known.
    """
    control = now.control
    if control.is_controller_persistent or now.facts.zk_state in (STATE_MIGRATION, POST_MIGRATION):
        return None
    if control.refused(MIGRATION_ZNODE) is not None:
        return None
    if control.undecodable(MIGRATION_ZNODE) is not None:
        return "no controller can read the value of /migration. New controllers would hang"
    if control.checkpoint is None:
        return None
    return (
        f"/migration records a migration up to offset {control.checkpoint}, epoch {control.checkpoint_epoch}, but no "
        "log holds it. New controllers would delete from ZooKeeper each topic that their log lacks"
    )


def _low_epoch(now: ClusterState) -> Iterator[Damage]:
    control = now.control
    if control.is_controller_persistent or control.controller_id is None or control.refused(EPOCH) is not None:
        return
    epoch, highest = control.controller_epoch, control.max_state_epoch
    if epoch is None:
        yield Damage(
            REPAIR_EPOCH, "/controller_epoch is missing or not a number. The next election starts at epoch 0, or fails"
        )
    elif highest is not None and highest > epoch:
        yield Damage(
            REPAIR_EPOCH,
            f"/controller_epoch is {epoch}, but the state of a partition has epoch {highest}. ZooKeeper's controller "
            "refuses to elect a leader for this partition",
        )
    elif now.ignored is not None and all(mode is not None for mode in now.modes.values()):
        yield Damage(
            REPAIR_EPOCH,
            f"{now.ignored}, repeatedly: /controller_epoch is {epoch}, below the epoch that this broker remembers, "
            "so the broker ignores the controller",
        )


def _left_brokers(now: ClusterState) -> Iterator[Damage]:
    left = migrating_brokers(now)
    if left and not now.live_controllers:
        yield Damage(
            REPAIR_BROKERS,
            f"{named(left, 'broker {} runs', 'brokers {} run')} in migration mode, but no controller answers. If a "
            "broker was stopped before it knew ZooKeeper's controller, it waits for KRaft for minutes. Offramp "
            "can't see which broker waits",
        )


def migrating_brokers(now: ClusterState) -> tuple[int, ...]:
    return tuple(sorted(number for number, mode in now.modes.items() if mode == MIGRATION_MODE))


def first_damage(cluster: Cluster, now: ClusterState, reads: MoveReads) -> tuple[Damage, list[Damage]]:
    """Return the damage that is repaired now, and the damages that are left for other plans.

    Raises:
        NothingToDo: nothing is damaged.
        PlanError: what is wrong can't be repaired by a plan; what to do instead.
        ConnectError, ReadError: which brokers hold replicas can't be read.
    """
    bad = contradictions(cluster, now)
    repairable = damages(now)
    if (hidden := now.control.refused(CONTROLLER)) is not None:
        raise PlanError(f"cluster {cluster.name!r}: {hidden}. Whether a controller controls the brokers is unknown")
    if (odd := now.control.undecodable(CONTROLLER)) is not None:
        raise PlanError(
            f"cluster {cluster.name!r}: {odd}. No broker can decode this value, so no broker can become the "
            "controller, and whether a KRaft controller runs is unknown. Find out which client wrote the znode. If "
            "no KRaft controller runs, delete the znode: a broker then becomes the controller. Then: offramp kraft "
            "status"
        )
    if now.control.controller_id is None and now.control.brokers:
        idle = named(now.control.brokers, "broker {} does not claim", "brokers {} do not claim")
        raise PlanError(
            f"cluster {cluster.name!r}: no broker holds /controller, and {idle} it. Restart one of them, then"
            " run: offramp kraft status"
        )
    if not repairable and now.unreachable_controllers and now.live_controllers:
        raise PlanError(
            f"cluster {cluster.name!r}: {running_problem(now)}. No plan repairs ZooKeeper while a controller may "
            "write to it. Make the controller's address reachable. If a person has seen that the controller is "
            "stopped: --override"
            f" stopped:{now.unreachable_controllers[0].address}"
        )
    if not repairable and bad:
        sentences = " ".join(f"{each.check_id} {each.sentence} {each.remedy}" for each in bad)
        raise PlanError(f"cluster {cluster.name!r}: no plan repairs this. {sentences}")
    is_znode_damaged = bool(repairable) and repairable[0].plan != REPAIR_BROKERS
    if not is_znode_damaged and (missing := _missing_brokers(cluster, now, reads)):
        unregistered = named(missing, "broker {} holds replicas and is", "brokers {} hold replicas and are")
        raise PlanError(
            f"cluster {cluster.name!r}: {unregistered} not registered. Start each missing broker in the mode of the "
            "other brokers (offramp kraft status). If a broker ended with NodeExistsException, it was started "
            "before its znode in /brokers/ids had disappeared: start it again"
        )
    if not repairable:
        raise NothingToDo(
            f"cluster {cluster.name!r} has nothing to repair: no claim, no /migration and no epoch is left over, and "
            "no broker waits for stopped controllers"
        )
    return repairable[0], repairable[1:]


def _missing_brokers(cluster: Cluster, now: ClusterState, reads: MoveReads) -> list[int]:
    placed = reads.replicas(cluster, now.facts).values()
    return sorted({number for replicas in placed for number in replicas} - set(now.brokers))


class RepairActor(HandBackActor):
    """The one transaction that repairs a znode, as a hand-back is made: payloads saved, on conditions, read back."""

    mended = (MIGRATION_ZNODE, EPOCH)

    def check(self, step: Step) -> Checked:
        parameters = HandBackParameters.of(step)
        return checked(
            first_problem(lambda: self._closed(parameters), lambda: self._not_damaged(parameters)),
            "the damage is there, no controller answers, no broker is in KRaft mode",
        )

    def _left_low(self) -> str | None:
        """A damage of its own, if it is one."""
        return None

    def _look(self, parameters: HandBackParameters) -> ClusterState:
        return for_repair(self.hands.read_state(parameters), self.cluster, self.hands.reads, self.hands.clock.sleep)

    def _next_epoch(self, before: Mapping[str, Saved]) -> int:
        """Return an epoch far above every epoch that can be read: what brokers remember can't be read."""
        return super()._next_epoch(before) + REMEMBERED

    def _not_damaged(self, parameters: HandBackParameters) -> str | None:
        repairable = damages(self._look(parameters))
        if parameters.to_phase in [each.plan for each in repairable]:
            return None
        others = "; ".join(each.sentence for each in repairable)
        return (
            f"the damage that {parameters.to_phase!r} would repair no longer "
            f"exists{f', but: {others}' if others else ''}"
        )

    def state(self, step: Step, acted: object = None) -> StepState:
        problem = self._not_damaged(HandBackParameters.of(step))
        return StepState.NOT_DONE if problem is None else StepState.DONE

    def verify(self, step: Step) -> Verified:
        parameters = HandBackParameters.of(step)
        state = self._look(parameters)
        left = [each.sentence for each in damages(state) if each.plan == parameters.to_phase]
        problem = first_problem(
            lambda: left[0] if left else control_problem(state), lambda: self._unled(parameters, state)
        )
        return verified(
            problem, f"{parameters.to_phase.removeprefix('repair ')} is repaired, and a broker holds /controller"
        )

    def _unled(self, parameters: HandBackParameters, state: ClusterState) -> str | None:
        """Return why brokers do not follow the broker that elects leaders, or why partitions have no leader; None:
        neither is so. A stale ``/migration`` may have damaged partitions, so they are not examined after its repair.
        """
        if parameters.to_phase == REPAIR_MIGRATION:
            return None
        return handed_back_problem(self, parameters, state) or led_problem(
            self.cluster, state.facts, parameters.broker_addresses, self.hands.reads
        )

    def _closed(self, parameters: HandBackParameters) -> str | None:
        state = self.hands.read_state(parameters)
        if state.control.is_controller_persistent and parameters.to_phase != REPAIR_CLAIM:
            return f"KRaft controller {state.control.controller_id} has claimed /controller since the plan was made"
        return super()._closed(replace(parameters, has_claim=True))

    def _odd(self, parameters: HandBackParameters, before: Mapping[str, Saved]) -> str | None:
        if CONTROLLER not in before:
            return "no broker holds /controller. Check whether the brokers are connected to ZooKeeper"
        is_kraft = before[CONTROLLER].ephemeral_owner == 0
        if is_kraft is not (parameters.to_phase == REPAIR_CLAIM):
            return f"/controller holds {before[CONTROLLER].text!r}, {'KRaft' if is_kraft else 'a broker'}'s"
        return None

    def _deleted(self, parameters: HandBackParameters, before: Mapping[str, Saved]) -> Sequence[str]:
        wanted = {
            REPAIR_CLAIM: (CONTROLLER, MIGRATION_ZNODE),
            REPAIR_MIGRATION: (MIGRATION_ZNODE,),
            REPAIR_EPOCH: (CONTROLLER,),
        }
        return [path for path in wanted[parameters.to_phase] if path in before]
