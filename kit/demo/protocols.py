"""A group from the classic to the consumer protocol (KIP-848) and back under load, by approved plans, with proof."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.record import REPORT, load_run
from kit.engine.model.states import RunState
from kit.errors import RunError
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.plan import ProtocolPlanRequest
from kit.moves.protocol.prove import KIND as PROOF
from kit.moves.protocol.state import read_protocol_state
from kit.operations.operations import Operations, operator
from kit.proof.consumption import load_consumption, load_production
from kit.proof.verify import Proof, handed_out_of, prove
from kit.protocol.facts import Answers

RECORDS_PER_SECOND, READ_S, SOAK_S = 200.0, 60.0, 2.0


def there_and_back(lab: Lab, operations: Operations, group: str, topic: str, say: Callable[[str], None]) -> Proof:
    """Move ``group``, which the lab started, to the consumer protocol and back while records are written.

    Raises:
        RunError: a run did not end verified, or a record was lost, or consumed by two members at a time.
    """
    producer = lab.start_producer(topic, RECORDS_PER_SECOND)
    for protocol in (CONSUMER, CLASSIC):
        _move(operations, group, protocol, say)
    producer.stop()
    written = load_production(lab.production).records.filter(pl.col("topic") == topic)
    wait_until(lambda: _is_read(lab, group, written), f"group {group} to read all records", READ_S)
    proof = prove(handed_out_of(_consumed(lab, group), written), written)
    row = proof.summary.row(0, named=True)
    if not (row["is_exclusive"] and row["is_complete"]):
        raise RunError(f"group {group}: the consumed records do not prove single ownership:\n{proof.describe()}")
    say(f"consumed records: {len(written)} were written meanwhile; {row['lost']} lost, {row['overlaps']} overlaps")
    return proof


def _move(operations: Operations, group: str, protocol: str, say: Callable[[str], None]) -> None:
    request = ProtocolPlanRequest(group, protocol, soak_s=SOAK_S, observe_s=1.0, answers=Answers(clients_ready=True))
    plan: Plan = operations.make_plan(request)
    say(f"plan {plan.digest[:8]}: {group} to the {protocol} protocol; approved by {operator()} for the demo")
    operations.approve(plan, plan.subject, plan.digest)
    run = operations.begin(plan)
    run.act().raise_unless(RunState.VERIFIED)
    for event in load_run(run.folder).events:
        if event.event == "verified" and event.outcome == "ok":
            say(f"  {event.step_id}: {event.sentence}{_figures(plan, event)}")
    state = read_protocol_state(operations.cluster, group)
    say(f"stage {state.stage}, {state.protocol.assignor} assigns. Evidence: {(run.folder / REPORT).absolute()}")


def _figures(plan: Plan, event: Event) -> str:
    """The details of the proof by the coordinator's log."""
    kinds = {step.step_id: step.kind for step in plan.steps}
    return f" {event.details}" if kinds.get(event.step_id or "") == PROOF else ""


def _consumed(lab: Lab, group: str) -> pl.DataFrame:
    members = [each.consumer_id for each in lab.consumers(group)]
    return load_consumption(lab.consumption, group, members).records


def _is_read(lab: Lab, group: str, written: pl.DataFrame) -> bool:
    place = ["topic", "partition", "offset"]
    return written.join(_consumed(lab, group), on=place, how="anti").is_empty()
