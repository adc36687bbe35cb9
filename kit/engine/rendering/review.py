"""Answer a reviewer's questions about a run from its evidence: who, what, how long, what was stalled, lost, twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kit.engine.model.event import at
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import Plan
from kit.engine.model.progress import evidence
from kit.engine.model.record import RunRecord
from kit.engine.model.values import Json
from kit.engine.rendering.stretches import item_stretches
from kit.text.quantity import quantity

_LOST = (
    "Not measured by the run: it reads no records. The notebook report/migration.ipynb counts both, where consumers "
    "and producers wrote down their records."
)


_WAYS = (("stage", "to_stage"), ("stage", "to_protocol"), ("phase", "to_phase"))
"""The observation that reports where a plan begins, and the parameter that reports where it leads."""


def heading(record: RunRecord) -> str:
    """The subject, the way from one stage or phase to the next (else the kind of plan), and the state of the run."""
    plan = record.plan
    name = plan.subject if plan.consent is None else str(plan.parameters.get("cluster", plan.subject))
    return f"{name}: {_way(plan) or plan.kind} – {record.state}"


def _way(plan: Plan) -> str | None:
    for seen, wanted in _WAYS:
        begin, end = plan.observed.get(seen), plan.parameters.get(wanted)
        if begin is not None and isinstance(begin.value, str) and end is not None:
            return f"{begin.value} → {end}"
    return None


def answers(record: RunRecord) -> list[tuple[str, str]]:
    """Question and answer, in the order in which they are asked."""
    return [
        ("Who", " ".join(_who(record))),
        ("What", _what(record)),
        ("How long", _how_long(record)),
        ("Consumption stopped", " ".join(stood_still(record)) or "Not measured: the run verified no toggle."),
        ("Lost, twice", _LOST),
    ]


def _who(record: RunRecord) -> Iterator[str]:
    plan = record.plan
    yield f"{plan.made_by} planned it at {moment(plan.made_at.isoformat())}."
    for it in record.approvals:
        yield f"{it.approved_by} approved it at {moment(it.approved_at.isoformat())}."
    if not record.approvals:
        yield "The plan was not approved."
    for event in record.events:
        if event.event == "opened":
            found = evidence(event)
            where = f"on {found.get('host', 'an unknown host')} at {moment(event.at)}"
            yield f"offramp {found.get('verb', 'act')} began {where}."


def _what(record: RunRecord) -> str:
    plan = record.plan
    last = {(it.step_id, it.item): it for it in record.events if it.event in ("acted", "undone")}
    outcomes = Counter(it.outcome or Outcome.UNKNOWN for it in last.values() if it.event == "acted")
    n_changes = sum(len(step.changes) for step in plan.steps)
    back = sum(it.event == "undone" and it.outcome == Outcome.CONFIRMED for it in last.values())
    way = _way(plan)
    path = f", {way}" if way is not None else ""
    counted = [f"{count} {outcome}" for outcome, count in outcomes.items()] + [f"{back} undone"] * (back > 0)
    where = f"{plan.name} on cluster {plan.cluster_id}{path}"
    return f"{where}. Of {quantity(n_changes, 'change')}: {', '.join(counted) or 'none was begun'}."


def _how_long(record: RunRecord) -> str:
    first, last = record.events[0], record.events[-1]
    took = f"{(at(last) - at(first)).total_seconds():,.1f} s, from {moment(first.at)} to {moment(last.at)}."
    longest = max(item_stretches(record), key=lambda stretch: stretch.seconds, default=None)
    if longest is None:
        return took
    what = f"{longest.item} of step {longest.step_id}"
    return f"{took} The longest single change took {longest.seconds:,.1f} s until it was seen in the cluster: {what}."


def stood_still(record: RunRecord) -> list[str]:
    """Per toggle that was verified: how long partitions were seen without an owner znode, and how that was seen."""
    sentences = []
    for event in record.events:
        found = evidence(event) if event.event == "verified" else {}
        if "partitions_that_changed_hands" in found:
            sentences.append(f"{event.step_id}: {_without_owner(found)}.")
    return sentences


def _without_owner(found: Mapping[str, Json]) -> str:
    n_changed, longest = found["partitions_that_changed_hands"], found.get("longest_unowned_ms")
    if not isinstance(n_changed, int):
        return "not measured, because this process did not watch the owner znodes"
    how = _how(found.get("owners_watched"))
    if n_changed == 0:
        return f"no owner znode was seen to change ({how})"
    changed = f"{quantity(n_changed, 'partition')} got another owner znode"
    if not isinstance(longest, int):
        return f"{changed}; how long without one is not known"
    if longest <= 0:
        return f"{changed}; no partition was seen without an owner ({how})"
    span = f"{longest:,} ms, from the notice of a deletion to the next creation"
    return f"{changed}; the longest time that a partition was seen without an owner is {span} ({how})"


def _how(watched: Json) -> str:
    """``watched``: as ``kit.moves.group.toggle.handovers_of`` has it; None: evidence of an earlier release."""
    if watched == "each change":
        return "ZooKeeper reported each change"
    if watched == "with interruptions":
        return "the connection to ZooKeeper broke: changes may have been missed"
    return (
        f"read {watched}: shorter changes may have been missed"
        if watched
        else "an earlier release of offramp did not record how the changes were observed"
    )


def moment(iso: str) -> str:
    """A time in UTC as people read it, to the second."""
    return f"{iso[:10]} {iso[11:19]} UTC"
