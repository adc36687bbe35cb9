"""The registration of a broker that is gone for good, ended by the active controller (UnregisterBroker, API 64).

While no broker runs in KRaft mode, no other node passes it on: Kafka's own command refuses to ask controllers (3.9.1,
UnsupportedEndpointTypeException), which serve it all the same, also while they wait for brokers; then they
fence no broker. A broker that is started again registers again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kit.clients.broker_client import Deadline, describe_code
from kit.clients.cluster import Cluster, kafka_settings
from kit.clients.kafka_messages import messages_of
from kit.clients.nodes import NodeClient, ask_node
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import ConnectError, ReadError, RunError
from kit.kraft.analyze.phase import CONTROLLERS, Facts
from kit.kraft.move.cluster_state import ClusterState, MoveReads
from kit.kraft.move.orders import NodeActor, NodeOperator, checked, first_problem, verified
from kit.kraft.move.parameters import UnregisterParameters
from kit.kraft.move.problems import dual_write_problem, waiting_problem
from kit.kraft.move.steps import broker_item
from kit.text.naming import named

REGISTERED, NOT_REGISTERED = "registered with the controllers", "not registered"
_NOT_THERE = 102  # BROKER_ID_NOT_REGISTERED
_SHOWN = 5

UnregisterBrokerRequest, UnregisterBrokerResponse = messages_of("UnregisterBroker", "kit.kraft.move")


def gone_problem(state: ClusterState, broker_id: int) -> str | None:
    """Return whether the broker seems to run; None: nothing reports it, and its registration is all that is left."""
    registration, who = state.registration(broker_id), f"broker {broker_id}"
    if state.modes.get(broker_id) is not None:
        return f"{who} still answers: stop it first"
    if broker_id in state.control.brokers:
        return f"{who} is in /brokers/ids: the broker runs, or its ZooKeeper session has not ended yet"
    if registration is not None and not registration.is_fenced and state.phase != CONTROLLERS:
        return f"{who} is not fenced: the broker runs, or stopped only some seconds ago"
    return None


def replicas_problem(cluster: Cluster, facts: Facts, broker_id: int, reads: MoveReads) -> str | None:
    """Return whether a partition has a replica on it. Raises ReadError, ConnectError."""
    placed = reads.replicas(cluster, facts)
    on_it = [f"{topic}-{number}" for (topic, number), replicas in placed.items() if broker_id in replicas]
    if not on_it:
        return None
    more = f" and {len(on_it) - _SHOWN} more" if len(on_it) > _SHOWN else ""
    return (
        f"{named(on_it[:_SHOWN], 'partition {} has', 'partitions {} have')} a replica on broker {broker_id}{more}. "
        "First move these replicas to other brokers with kafka-reassign-partitions.sh"
    )


def goes_on_problem(state: ClusterState, controllers: Mapping[int, str]) -> str | None:
    """Return whether the move is in the same phase: the controllers wait, or dual write continues."""
    return (waiting_problem if state.phase == CONTROLLERS else dual_write_problem)(state, controllers)


class UnregisterActor(NodeActor):
    """``ask`` sends one request to the active controller."""

    def __init__(self, hands: NodeOperator, ask: Callable[[dict[str, Any], str, Any], Any] = ask_node) -> None:
        super().__init__(hands)
        self._ask = ask

    def check(self, step: Step) -> Checked:
        parameters = UnregisterParameters.of(step)
        problem = first_problem(lambda: self._problem(parameters, self.hands.read_state(parameters)))
        return checked(
            problem, f"{broker_item(parameters.nodes[0])} does not run, and no partition has a replica on it"
        )

    def _problem(self, parameters: UnregisterParameters, state: ClusterState) -> str | None:
        (number,) = parameters.nodes
        return (
            goes_on_problem(state, parameters.controller_addresses)
            or gone_problem(state, number)
            or replicas_problem(self.cluster, state.facts, number, self.hands.reads)
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = UnregisterParameters.of(step)
        return (
            StepState.DONE if self._left(parameters, self.hands.read_state(parameters)) is None else StepState.NOT_DONE
        )

    def _left(self, parameters: UnregisterParameters, now: ClusterState) -> str | None:
        if not now.facts.has_log:
            return f"the metadata log can't be read: {now.facts.log_error}"
        (number,) = parameters.nodes
        return f"broker {number} is still registered" if now.registration(number) is not None else None

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the broker is not gone, or the controller refused; or the registration is there still.
        """
        parameters = UnregisterParameters.of(step)
        (number,) = parameters.nodes
        item, change = broker_item(number), (REGISTERED, NOT_REGISTERED)
        if self.state(step) == StepState.DONE:
            return [ItemOutcome(item, Outcome.UNCHANGED, *change)]
        state = self.hands.read_state(parameters)
        problem, leader = first_problem(lambda: self._problem(parameters, state)), state.facts.leader
        if problem is not None or leader is None:
            raise RunError(f"{item} stays registered: {problem or 'no controller leads the quorum'}")
        report.attempt([item])
        outcome = ItemOutcome(item, *self._asked(leader.address, number))
        if outcome.outcome == Outcome.CONFIRMED:
            self.hands.wait_until(parameters, lambda now: self._left(parameters, now), report)
        return [outcome]

    def _asked(self, address: str, number: int) -> tuple[Outcome, str, str | None, str | None]:
        """Return the outcome of the request, the values before and after, and the error."""
        try:
            answer = self._ask(kafka_settings(self.cluster.profile), address, partial(_unregister, number=number))
        except (ConnectError, ReadError) as error:
            return Outcome.UNKNOWN, REGISTERED, None, f"the controller at {address} did not answer: {error}"
        if answer.error_code in (0, _NOT_THERE):
            return Outcome.CONFIRMED, REGISTERED, NOT_REGISTERED, None
        why = f"the controller at {address} refused: {describe_code(answer.error_code)} {answer.error_message or ''}"
        return Outcome.REFUSED, REGISTERED, None, why.strip()

    def verify(self, step: Step) -> Verified:
        parameters = UnregisterParameters.of(step)
        state = self.hands.read_state(parameters)
        problem = first_problem(
            lambda: self._left(parameters, state), lambda: goes_on_problem(state, parameters.controller_addresses)
        )
        return verified(
            problem,
            f"{broker_item(parameters.nodes[0])} is no longer registered, and the phase of the move is unchanged",
        )


async def _unregister(client: NodeClient, deadline: Deadline, number: int) -> Any:
    request = UnregisterBrokerRequest(broker_id=number, min_version=0, max_version=0)
    return await client.ask(request, client.node, deadline)
