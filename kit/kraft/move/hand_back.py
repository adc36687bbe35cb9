"""The one transaction that gives the control of a cluster back to ZooKeeper, and how long to wait after it.

Facts by release 3.9.1: a broker in migration mode takes ``/controller`` within 20 ms; one that is stopped before its
controller's first UpdateMetadata reached it waits for KRaft for minutes. A ``/migration`` that is left over makes the
next controllers delete every topic. A ``/controller_epoch`` below an epoch used leaves partitions without a leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError, RolledBackError, RuntimeInconsistency

from kit.clients.access import lacking
from kit.clients.nodes import KRAFT_MODE
from kit.clients.values import json_in
from kit.engine.lock import ANSWER_S
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import ConnectError, ReadError, RunError
from kit.kraft.metadata_log.secrets import is_secret_config
from kit.kraft.move.cluster_state import ClusterState, zookeeper_of
from kit.kraft.move.orders import NodeActor, checked, first_problem, verified
from kit.kraft.move.parameters import HandBackParameters, KraftParameters
from kit.kraft.move.problems import copied_problem, describe_modes, names_controller, running_problem
from kit.kraft.move.steps import CONTROL, HANDED_BACK_S, MIGRATION_ZNODE, STILL_S
from kit.kraft.read.control_znodes import CONTROLLER, EPOCH, fetch_control
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes, with_max_state_epoch

ANSWERS = 5
"""The number of times running that each broker must name ``/controller``'s holder: while KRaft controls, it names
any broker.
"""
_BROKER = 4
_ROLLED_BACK = (RolledBackError, RuntimeInconsistency)
"""The answers of ZooKeeper for the other parts of a transaction that failed."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One znode as it was just before the transaction."""

    text: str
    version: int
    ephemeral_owner: int

    def to_json(self) -> dict[str, Json]:
        return {"text": self.text, "version": self.version}


class HandBackActor(NodeActor):
    mended: tuple[str, ...] = ()
    """Znodes that may be unreadable: they are what is repaired."""

    def check(self, step: Step) -> Checked:
        parameters = HandBackParameters.of(step)
        return checked(
            first_problem(lambda: self._closed(parameters)), "no controller answers, no broker is in KRaft mode"
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        control = self.hands.read_state(HandBackParameters.of(step)).control
        if control.has_migration is None:
            raise ReadError(f"cluster {self.cluster.name!r}: whether {MIGRATION_ZNODE} exists could not be read")
        return StepState.NOT_DONE if control.has_migration or control.is_controller_persistent else StepState.DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the znodes are not as they have to be; nothing was written.
        """
        parameters, client = HandBackParameters.of(step), zookeeper_of(self.cluster)
        if self.state(step) == StepState.DONE:
            if parameters.has_claim and (problem := self._left_low()) is not None:
                raise RunError(problem)
            return [ItemOutcome(CONTROL, Outcome.UNCHANGED)]
        before = self._still(parameters, client, report)
        deleted = self._deleted(parameters, before)
        epoch = self._next_epoch(before) if CONTROLLER in deleted else None
        saved: dict[str, Json] = {path: znode.to_json() for path, znode in before.items()}
        report.attempt([CONTROL], {"saved": saved, "new_epoch": epoch})
        outcome = _transaction(client, before, epoch, deleted)
        report([outcome])
        return [outcome]

    def _left_low(self) -> str | None:
        """Another operator or tool deleted the claim: did it raise the epoch too? This run's own transaction did."""
        control = with_max_state_epoch(zookeeper_of(self.cluster), fetch_control(zookeeper_of(self.cluster)))
        epoch, highest = control.controller_epoch, control.max_state_epoch
        if epoch is not None and (highest is None or highest <= epoch):
            return None
        return (
            f"another client deleted /controller and /migration, and /controller_epoch is {epoch}, below the epoch "
            f"{highest} of a partition, for which no leader would be elected. The run stopped. To repair the epoch: "
            "offramp plan kraft --repair"
        )

    def _deleted(self, parameters: HandBackParameters, before: Mapping[str, Saved]) -> Sequence[str]:
        return (CONTROLLER, MIGRATION_ZNODE) if parameters.has_claim else (MIGRATION_ZNODE,)

    def _odd(self, parameters: HandBackParameters, before: Mapping[str, Saved]) -> str | None:
        return _odd(before, parameters.has_claim)

    def verify(self, step: Step) -> Verified:
        parameters = HandBackParameters.of(step)
        problem = first_problem(lambda: handed_back_problem(self, parameters, self.hands.read_state(parameters)))
        return verified(problem, "a broker holds /controller, and every broker names it")

    def _closed(self, parameters: HandBackParameters) -> str | None:
        state = self.hands.read_state(parameters)
        if (problem := running_problem(state)) is not None:
            return problem
        wrong = {number: mode for number, mode in state.modes.items() if mode in (KRAFT_MODE, None)}
        if wrong:
            return f"{describe_modes(wrong)}. Every broker must answer, and none may be in KRaft mode"
        if not parameters.has_claim or parameters.is_aborted:
            return copied_problem(state)
        return None

    def _still(self, parameters: HandBackParameters, client: KazooClient, report: Report) -> Mapping[str, Saved]:
        """The znodes, after ``/migration`` has not changed for a while.

        Raises:
            RunError: it is written still: a controller is alive.
        """
        before = _read(client)
        began = self.hands.clock.monotonic()
        while self.hands.clock.monotonic() - began < STILL_S:
            report([])
            self.hands.clock.sleep(0.5)
            if _read(client) != before:
                raise RunError(
                    "a client wrote ZooKeeper's control znodes, although no controller should run. Find and stop the "
                    "controller that still runs, then resume the run"
                )
        if (problem := self._closed(parameters) or self._odd(parameters, before)) is not None:
            raise RunError(f"{problem}; nothing was written")
        return before

    def _next_epoch(self, before: Mapping[str, Saved]) -> int:
        """Above every epoch that any of the two sides has used.

        Raises:
            RunError: one can't be read: what is not known is not exceeded.
        """
        read = fetch_metadata_znodes(zookeeper_of(self.cluster), lambda key: is_secret_config(_BROKER, key))
        partitions = read.partitions.column("controller_epoch").to_pylist()
        errors = [each for each in read.partitions.column("error").to_pylist() if each]
        errors += [row["error"] for row in read.items.to_pylist() if row["error"] and row["kind"] == "partition"]
        errors += [each.sentence for each in read.control.problem_rows if each.path not in self.mended]
        if errors:
            raise RunError(f"an epoch in ZooKeeper can't be read: {errors[0]}")
        migration, holder = _held(before, MIGRATION_ZNODE), _held(before, CONTROLLER)
        known = [migration.get("kraft_controller_epoch"), migration.get("kraft_metadata_epoch")]
        known += [holder.get("kraftControllerEpoch"), read.control.max_state_epoch, *partitions]
        return max(_epoch_of(before), *(int(each) for each in known if each is not None)) + 1


def forget_migration(client: KazooClient) -> ItemOutcome:
    """Delete a ``/migration`` that reports that nothing was copied, on the condition of its version."""
    before = _read(client)
    if MIGRATION_ZNODE not in before:
        return ItemOutcome(MIGRATION_ZNODE, Outcome.UNCHANGED)
    offset = _held(before, MIGRATION_ZNODE).get("kraft_metadata_offset")
    if offset != -1 or before.get(CONTROLLER, Saved("", 0, 0)).ephemeral_owner == 0:
        why = f"/migration has the offset {offset}: metadata was copied, or no broker holds /controller"
        return ItemOutcome(MIGRATION_ZNODE, Outcome.REFUSED, error=why)
    done = _transaction(client, before, None, (MIGRATION_ZNODE,))
    return ItemOutcome(MIGRATION_ZNODE, done.outcome, done.before, done.after, done.error)


def handed_back_problem(actor: NodeActor, parameters: KraftParameters, state: ClusterState) -> str | None:
    """Return why no broker may be stopped yet after the transaction; None: each knows who controls it."""
    control, problem = state.control, control_problem(state)
    if problem is not None or control.controller_id is None:
        return problem
    if actor.hands.still_for("/controller", control.controller_id) < HANDED_BACK_S:
        return f"broker {control.controller_id} has held /controller for less than {HANDED_BACK_S:g} s"
    serving = {number: at for number, at in state.brokers.items() if state.modes.get(number) is not None}
    answers = (
        names_controller(actor.cluster, serving, control.controller_id, actor.hands.reads) for _ in range(ANSWERS)
    )
    return next((problem for problem in answers if problem is not None), None)


def control_problem(state: ClusterState) -> str | None:
    """Return whether a broker of ours holds ``/controller`` as ZooKeeper's controllers do."""
    control = state.control
    if control.has_migration is not False or control.is_controller_persistent is not False:
        return f"no broker holds /controller (its holder is {control.controller_id}), or /migration exists"
    if control.controller_id not in state.brokers:
        return f"/controller is held by {control.controller_id}, which is not a broker of the plan"
    return None


def _read(client: KazooClient) -> dict[str, Saved]:
    """The three znodes, those that are there. Raises ConnectError."""
    znodes = {}
    try:
        client.sync_async("/").get(timeout=ANSWER_S)
        for path in (CONTROLLER, EPOCH, MIGRATION_ZNODE):
            try:
                data, stat = client.get_async(path).get(timeout=ANSWER_S)
            except NoNodeError:
                continue
            znodes[path] = Saved((data or b"").decode(errors="replace"), stat.version, stat.ephemeralOwner)
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(f"ZooKeeper's control znodes can't be read: {error!r}") from error
    return znodes


def _held(znodes: Mapping[str, Saved], path: str) -> Mapping[str, Any]:
    content = json_in(znodes[path].text.encode()) if path in znodes else None
    return content if isinstance(content, dict) else {}


def _epoch_of(before: Mapping[str, Saved]) -> int:
    """0 where there is none, or no number: what else is known decides."""
    text = before[EPOCH].text if EPOCH in before else ""
    return int(text) if text.isdigit() else 0


def _odd(before: Mapping[str, Saved], has_claim: bool) -> str | None:
    """Return what is not as a migration leaves it, in a sentence; None: nothing."""
    missing = [path for path in (CONTROLLER, EPOCH, MIGRATION_ZNODE) if path not in before]
    if missing:
        return f"ZooKeeper has no {', '.join(missing)}"
    if (before[CONTROLLER].ephemeral_owner == 0) is not has_claim:
        return (
            f"/controller holds {before[CONTROLLER].text!r}: no "
            f"{'KRaft controller' if has_claim else 'broker'} wrote that"
        )
    if not before[EPOCH].text.isdigit():
        return f"/controller_epoch holds {before[EPOCH].text!r}, which is no number"
    return None


def _transaction(
    client: KazooClient, before: Mapping[str, Saved], epoch: int | None, deleted: Sequence[str]
) -> ItemOutcome:
    """All or nothing, each part on the condition of its znode's version; ``epoch``: the new one, if there is one."""
    change, rights = client.transaction(), list[tuple[str, str]]()
    previous: dict[str, Json] = {path: znode.to_json() for path, znode in before.items()}
    try:
        if epoch is not None and EPOCH in before:
            change.set_data(EPOCH, str(epoch).encode(), before[EPOCH].version)
            rights.append(("WRITE", EPOCH))
        elif epoch is not None:
            acl, _ = client.get_acls_async(CONTROLLER).get(timeout=ANSWER_S)
            change.create(EPOCH, str(epoch).encode(), acl=acl)
            rights.append(("CREATE", "/"))
        if CONTROLLER in before and CONTROLLER not in deleted:
            change.check(CONTROLLER, before[CONTROLLER].version)
            rights.append(("READ", CONTROLLER))
        for path in deleted:
            change.delete(path, before[path].version)
            rights.append(("DELETE", path.rpartition("/")[0] or "/"))
        results = change.commit_async().get(timeout=ANSWER_S)
    except (KazooException, client.handler.timeout_exception) as error:
        return ItemOutcome(CONTROL, Outcome.UNKNOWN, previous, None, f"ZooKeeper did not answer: {error!r}")
    failed = [(each, right) for each, right in zip(results, rights, strict=True) if isinstance(each, Exception)]
    if failed:
        cause, right = next((it for it in failed if not isinstance(it[0], _ROLLED_BACK)), failed[0])
        changed = f"another client wrote one of the znodes at the same time: {cause!r}"
        why = lacking(*right) if isinstance(cause, NoAuthError) else changed
        return ItemOutcome(CONTROL, Outcome.REFUSED, previous, None, f"{why}; nothing was written")
    left = _read(client)
    if MIGRATION_ZNODE in left and MIGRATION_ZNODE in deleted:
        return ItemOutcome(CONTROL, Outcome.UNKNOWN, previous, None, "/migration exists again")
    after: dict[str, Json] = {path: znode.text for path, znode in left.items()}
    return ItemOutcome(CONTROL, Outcome.CONFIRMED, previous, after, details={"new_epoch": epoch})
