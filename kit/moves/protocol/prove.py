"""A step that proves from ``__consumer_offsets`` that no partition had two owners while the members were replaced."""

from __future__ import annotations

from dataclasses import dataclass

from kit.clients.cluster import Cluster
from kit.engine.model.actor import ReadingActor
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import Checked, Verified
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import RunError
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.group_configs import fetch_effective
from kit.moves.protocol.state import read_protocol_state
from kit.protocol.brokers import HEARTBEAT_OF_GROUP
from kit.protocol.facts import MS_PER_MINUTE
from kit.protocol.proof import OwnershipProof, fetch_ownership
from kit.protocol.rebalance_times import RebalanceTimes
from kit.text.quantity import quantity

KIND = "prove ownership"
DEADLINE_S = 120.0
SHOWN = 3


@dataclass(frozen=True, slots=True)
class ProofParameters(StepParameters):
    """Judge what the coordinator wrote about the group's owners from offset ``since`` of its partition on."""

    group: str
    since: int


def proof_step(step_id: str, parameters: ProofParameters) -> Step:
    """The step that reads the group's partition of ``__consumer_offsets``. It writes nothing."""
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Prove that no partition of {parameters.group} had two owners since the plan was made",
        precondition="none",
        verification=(
            "in the order of __consumer_offsets, no partition was assigned to a member while another member still held"
            " it or had not revoked it"
        ),
        deadline_s=DEADLINE_S,
        undo="There is nothing to undo: the step only reads.",
        parameters=parameters.to_json(),
    )


class ProofActor(ReadingActor):
    """Reads the log once, after all replacements."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def check(self, step: Step) -> Checked:
        return Checked(True, "the step only reads")

    def verify(self, step: Step) -> Verified:
        """Judge the log.

        Raises:
            RunError: a partition had two owners; which, whose, and where the log shows it.
            ConnectError, NotFound, ReadError: see ``kit.protocol.proof.fetch_ownership``.
        """
        parameters = ProofParameters.of(step)
        proof = fetch_ownership(self._cluster.profile, parameters.group, parameters.since)
        if proof.doubles:
            raise RunError(_describe(parameters.group, proof))
        records = quantity(proof.n_records, "record")
        found = {**evidence(proof), "heartbeats_per_minute": self._heartbeats(parameters.group)}
        return Verified(True, f"no partition had two owners in {records} of __consumer_offsets", found)

    def _heartbeats(self, group_id: str) -> float | None:
        """Heartbeats that the members send to the coordinator in a minute, by the interval that the brokers set.

        None: members of a classic group have intervals of their own, which no request reports.
        """
        group = read_protocol_state(self._cluster, group_id).protocol
        if any(each.protocol != CONSUMER for each in group.members):
            return None
        interval_ms = fetch_effective(self._cluster, group_id, HEARTBEAT_OF_GROUP)
        return None if interval_ms is None else round(len(group.members) * MS_PER_MINUTE / int(interval_ms), 1)


def evidence(proof: OwnershipProof) -> dict[str, Json]:
    """The figures of a proof, for the journal."""
    return {
        "records": proof.n_records,
        "offsets_missing": proof.n_missing,
        "epochs": proof.epochs,
        "longest_unowned_ms": proof.longest_unowned_ms,
        "rebalances_before": _figures(proof.rebalances_before),
        "rebalances": _figures(proof.rebalances),
    }


def _figures(times: RebalanceTimes) -> dict[str, Json]:
    """Return the figures of rebalances by protocol. For the classic protocol the log has only the number of
    rebalances.
    """
    of_consumer: dict[str, Json] = {
        "count": len(times.durations_ms),
        "median_ms": times.median_ms,
        "longest_ms": times.longest_ms,
    }
    return {CLASSIC: {"count": times.n_classic}, CONSUMER: of_consumer}


def _describe(group: str, proof: OwnershipProof) -> str:
    shown = "; ".join(
        f"{each.partition} was held by {' and '.join(each.members)} from offset {each.offset} on"
        for each in proof.doubles[:SHOWN]
    )
    missing = (
        f" {quantity(proof.n_missing, 'offset')} of the log hold no record any more, so an earlier owner may have given"
        " a partition up without a trace."
        if proof.n_missing
        else ""
    )
    return (
        f"group {group}: __consumer_offsets shows {quantity(len(proof.doubles), 'double owner')}: {shown}.{missing}"
        " Both members may have consumed the same records. Compare what they consumed before you continue"
    )
