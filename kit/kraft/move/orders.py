"""Orders to nodes, and waiting until what they were to bring about is seen; shared by the actors of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.engine.model.files import write_atomic
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Report, Verified, Waiting, WriteAttempt
from kit.engine.model.step import Step
from kit.engine.model.values import Json, digest_of
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, RunError
from kit.kraft.both_stores import MetadataDiff
from kit.kraft.move.cluster_state import READS, ClusterState, MoveReads, read_cluster_state
from kit.kraft.move.nodes import BROKER, NodeDeployer, NodeOrder
from kit.kraft.move.parameters import KraftParameters, OrderParameters
from kit.kraft.move.problems import describe_diff
from kit.kraft.settings_files import read_settings_folder
from kit.tables.kraft import NodeFact
from kit.tables.schema import METADATA_DIFFERENCES
from kit.text.naming import listed

_POLL_S = 1.0


class NodeOperator:
    """One cluster and who restarts its nodes. ``say`` shows a person what to do now; ``folder``: of the run, if any."""

    def __init__(
        self,
        cluster: Cluster,
        deployer: NodeDeployer,
        say: Callable[[str], None] = lambda sentence: None,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        folder: Path | None = None,
        reads: MoveReads = READS,
    ) -> None:
        self.cluster, self.say, self.clock, self.folder, self.reads = cluster, say, clock, folder, reads
        self._deployer = deployer
        self._values: dict[str, tuple[object, float]] = {}
        self._said: dict[str, str] = {}
        """Node → what the deployer reported of orders of which nothing was seen yet."""

    def read_state(self, parameters: KraftParameters) -> ClusterState:
        """Raises ConnectError: ZooKeeper does not answer."""
        return read_cluster_state(self.cluster, parameters.broker_addresses, self.reads, parameters.reported_stopped)

    def still_for(self, key: str, value: object) -> float:
        """Seconds since which this process has seen the same value under a key, at each of its observations."""
        now = self.clock.monotonic()
        seen = self._values.get(key)
        if seen is None or seen[0] != value:
            self._values[key] = (value, now)
            return 0.0
        return now - seen[1]

    def instruction_problem(self, parameters: OrderParameters, action: str, role: str) -> str | None:
        """Return whether the profile's deployer is still the one that was approved, and the profile names the same
        nodes.
        """
        instruction = self._deployer.instruction(action, role, parameters.to_mode)
        if instruction != parameters.instruction:
            return f"the plan has the instruction {parameters.instruction!r}, but the profile now has {instruction!r}"
        if self.cluster.profile.kraft.ids != parameters.controller_addresses:
            named_now = listed(f"{number} at {address}" for number, address in self.cluster.profile.kraft.ids.items())
            return f"the profile names other controllers than the plan: {named_now}. Make a new plan"
        return None

    def edited_problem(self, parameters: OrderParameters, role: str, numbers: Iterable[int], mode: str) -> str | None:
        """Return whether a file with which a node would be started now is another one than was approved. Raises
        InputError.
        """
        if not mode:
            return None
        now = settings_digests(self.cluster)
        for number in numbers:
            name = settings_file(Path(), role, number, mode).name
            if now.get(name) != parameters.settings.get(name):
                changed = "is gone or empty" if name not in now else "was edited after the plan was made"
                return (
                    f"{name}, with which {role} {number} would be started, {changed}. Restore the file and resume "
                    "the run, or make a new plan. If a node does not run because its file was wrong, start that "
                    "node manually first"
                )
        return None

    def order(
        self, parameters: KraftParameters, role: str, number: int, action: str, modes: tuple[str, str]
    ) -> tuple[NodeOrder, str]:
        """Give an order. Return the order and the deployer's answer. Raises RunError: it failed."""
        ordered = self._order(parameters, role, number, action, modes)
        answer = self._deployer.order(ordered, self.say)
        if not self._deployer.needs_person:
            self._said[f"{role} {number}"] = answer
        return ordered, answer

    def _order(
        self, parameters: KraftParameters, role: str, number: int, action: str, modes: tuple[str, str]
    ) -> NodeOrder:
        folder = self.cluster.profile.kraft.settings_dir
        settings = "" if folder is None or not modes[1] else str(settings_file(folder, role, number, modes[1]))
        return NodeOrder(number, role, action, *modes, settings, parameters.cluster_id)

    def wait_until(
        self, parameters: KraftParameters, problem: Callable[[ClusterState], str | None], report: Report
    ) -> ClusterState:
        """Until an observation shows no problem.

        Raises:
            RunError: that did not come in time, or ``problem`` raised it; what was missing, what the deployer reported.
            Stopped, LockLost: before that.
        """
        deadline, announced = self.clock.monotonic() + parameters.node_timeout_s, ""
        while True:
            state, lacks = self._seen(parameters, problem)
            if lacks is None and state is not None:
                self._said.clear()
                return state
            left = deadline - self.clock.monotonic()
            if left <= 0:
                raise RunError(
                    f"in {parameters.node_timeout_s:g} s: {lacks}. Examine that node. The order stays open until you "
                    f"resume or undo the run{self._describe_said()}"
                )
            if lacks != announced:
                announced = lacks or ""
                self.say(Waiting(f"waiting for up to {left:.0f} s: {announced}"))
            report([])
            self.clock.sleep(_POLL_S)

    def _describe_said(self) -> str:
        said = (f"The deployer said of {node}: {answer or 'nothing'}" for node, answer in self._said.items())
        return "".join(f". {each}" for each in said)

    def _seen(
        self, parameters: KraftParameters, problem: Callable[[ClusterState], str | None]
    ) -> tuple[ClusterState | None, str | None]:
        """A cluster that can't be asked now is waited for."""
        try:
            state = self.read_state(parameters)
            return state, problem(state)
        except AuthenticationFailed:
            raise
        except ConnectError as error:
            return None, str(error)
        except RunError as error:  # Nothing to wait for.
            raise RunError(f"{error}{self._describe_said()}") from error

    def cancel_open_orders(
        self, parameters: KraftParameters, report: Report, is_so: Callable[[WriteAttempt], bool]
    ) -> None:
        """Call off orders with an unknown result, and wait until no node has changed for a while.

        ``is_so``: whether what was ordered has come about, so that nothing is left of it.

        Raises:
            RunError: the nodes don't become quiet: the deployer may still work.
        """
        left = dict.fromkeys(it.item for it in report.acted.attempts if it.is_open and not is_so(it))
        for item in left:
            self.say(
                f"The order for {item} was cancelled. The run checks in which state the node is, because part "
                "of the order may be done."
            )
        if left:
            self.settle(parameters, "an order was cancelled", lambda: report([]))

    def settle(self, parameters: KraftParameters, why: str, go_on: Callable[[], None]) -> None:
        """Wait until no node has changed for a while.

        Raises:
            RunError: the nodes don't become quiet: the deployer may still work.
        """
        self.say(Waiting(f"waiting until no node has changed for {parameters.quiet_s:g} s"))
        began = since = self.clock.monotonic()
        seen, last = self._signature(parameters), ""
        while self.clock.monotonic() - since < parameters.quiet_s:
            if self.clock.monotonic() - began > parameters.quiet_s + parameters.node_timeout_s:
                raise RunError(
                    f"{why}, and the nodes kept changing during the last {parameters.quiet_s:g} s{last}: the "
                    "deployer may still be working. Make sure that it has stopped, then resume or undo the run"
                )
            go_on()
            self.clock.sleep(_POLL_S)
            now = self._signature(parameters)
            if now != seen:
                changed = listed(f"{it}: {seen.get(it)}, now {now[it]}" for it in now if now[it] != seen.get(it))
                self.say(f"These nodes changed meanwhile: {changed}.")
                seen, since, last = now, self.clock.monotonic(), f" (last {changed})"

    def _signature(self, parameters: KraftParameters) -> Mapping[str, str]:
        return {_name(each): _describe_node(each) for each in self.read_state(parameters).facts.nodes}


def _name(node: NodeFact) -> str:
    return f"broker {node.node_id}" if node.role == BROKER else f"controller {node.address}"


def _describe_node(node: NodeFact) -> str:
    if node.error is not None:
        return "no answer"
    return f"{node.mode} mode" if node.role == BROKER else f"{'with' if node.has_flag else 'without'} the flag"


def settings_digests(cluster: Cluster) -> dict[str, str]:
    """A digest of each of the operator's files, secrets left out: who approved a plan approved these.

    Raises:
        InputError: one can't be read.
    """
    folder = cluster.profile.kraft.settings_dir
    if folder is None:
        return {}
    return {
        each.source: digest_of({"given": dict(each.given), "secrets": tuple(sorted(each.secrets))})
        for each in read_settings_folder(folder).settings
    }


def settings_file(folder: Path, role: str, number: int, mode: str) -> Path:
    """Return the file name that ``offramp kraft preflight --write-settings`` gives."""
    return folder / f"{role}-{number}.{mode}.properties"


class NodeActor:
    """The common part of the actors of this folder: without an undo, unless they define one."""

    def __init__(self, hands: NodeOperator) -> None:
        self.hands = hands

    @property
    def cluster(self) -> Cluster:
        return self.hands.cluster

    def compared(self, step: Step, met: str) -> Verified:
        """Return whether both stores hold the same now; what differs or is expected to is a file in the run's folder.

        Raises:
            AuthenticationFailed: ZooKeeper or a node refuses the login.
            EvidenceError: the file can't be written.
        """
        try:
            diff = self.hands.reads.diff(self.cluster)
        except AuthenticationFailed:
            raise
        except OfframpError as error:
            return Verified(False, str(error))
        counts = {str(verdict): number for verdict, number in diff.differences["verdict"].value_counts().iter_rows()}
        evidence: dict[str, Json] = {"checkpoint": diff.checkpoint, "until": diff.until, "counts": counts}
        if self.hands.folder is not None:
            evidence["differences"] = _kept_differences(diff, self.hands.folder / f"differences-{step.step_id}.parquet")
        return Verified(diff.is_clean, met if diff.is_clean else describe_diff(diff), evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        return Checked(False, step.cannot_be_undone or "can't be undone")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Refused, for a step that can't be undone.

        Raises:
            RunError: always, with the step's reason.
        """
        raise RunError(f"step {step.step_id!r} cannot be undone: {step.cannot_be_undone}")


def _kept_differences(diff: MetadataDiff, path: Path) -> dict[str, Json]:
    """The file's name, SHA-256 and number of rows. Raises EvidenceError: it can't be written."""
    rows = diff.of("diverged", "in_flight", "unknown", "expected").sort("kind", "entity", "item")
    data = BytesIO()
    rows.select(METADATA_DIFFERENCES.schema.names).write_parquet(data)
    write_atomic(path, data.getvalue())
    return {"file": path.name, "sha256": sha256(data.getvalue()).hexdigest(), "rows": rows.height}


def checked(problem: str | None, met: str) -> Checked:
    return Checked(problem is None, problem or met)


def verified(problem: str | None, met: str) -> Verified:
    return Verified(problem is None, problem or met)


def first_problem(*looks: Callable[[], str | None]) -> str | None:
    """The first sentence of these; later ones are not asked once there is one. An unreadable value is a problem."""
    try:
        return next((problem for each in looks if (problem := each()) is not None), None)
    except AuthenticationFailed:
        raise
    except OfframpError as error:
        return str(error)
