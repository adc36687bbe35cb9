"""A soak: for a while nothing is changed, and the newcomers are held against the rest."""

from __future__ import annotations

from dataclasses import dataclass

from kit.clients.cluster import Cluster
from kit.engine.model.actor import ReadingActor
from kit.engine.model.clock import Clock
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import Checked, Verified
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import RunError
from kit.moves.group.group_state import (
    MEZKCC,
    OZKCC,
    GroupState,
    Partition,
    ReadGroup,
    counted,
    listed,
    named,
    noun,
    read_group_state,
)
from kit.text.quantity import quantity

KIND = "soak"
AFTER_S = 120.0
MOST_CHANGES = 2
"""Changes of ownership in one soak; more is a group that keeps rebalancing."""


@dataclass(frozen=True, slots=True)
class SoakParameters(StepParameters):
    """Watch the members of ``flavour`` for ``soak_s`` seconds; their lag may grow by ``lag_tolerance`` records."""

    group: str
    flavour: str
    soak_s: float
    lag_tolerance: int


def soak_step(step_id: str, parameters: SoakParameters) -> Step:
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Watch the {noun(parameters.flavour)}s of {parameters.group} for {parameters.soak_s:g} s",
        precondition=f"the group has at least one {noun(parameters.flavour)}",
        verification=(
            f"each {noun(parameters.flavour)} has its fair share; the lag of its partitions did not grow by more than"
            f" {parameters.lag_tolerance} records while the lag of all other partitions did not; its "
            f"committed offsets advanced;"
            f" ownership changed at most"
            f" {MOST_CHANGES} times"
        ),
        deadline_s=parameters.soak_s + AFTER_S,
        undo="There is nothing to undo.",
        parameters=parameters.to_json(),
    )


@dataclass(slots=True)
class _Soak:
    """The observations since the soak began."""

    began: float
    first: GroupState
    last: GroupState
    n_changes: int = 0


class SoakActor(ReadingActor):
    """Reads the group repeatedly; judges when the time has ended."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        read: ReadGroup | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._read = read
        self._soaks: dict[str, _Soak] = {}

    def check(self, step: Step) -> Checked:
        self._soaks.pop(step.step_id, None)  # A run that is resumed watches for the whole time again.
        parameters = SoakParameters.of(step)
        count = self._look(parameters.group).count(parameters.flavour)
        return Checked(count > 0, f"the group has {counted({parameters.flavour: count})}")

    def verify(self, step: Step) -> Verified:
        """Check until the end of the soak whether the newcomers own, commit and keep up.

        Raises:
            RunError: the time has ended, and the newcomers did not do well; why.
        """
        parameters = SoakParameters.of(step)
        state, now = self._look(parameters.group), self._clock.monotonic()
        soak = self._soaks.setdefault(step.step_id, _Soak(now, state, state))
        soak.n_changes += soak.last.owners != state.owners
        soak.last = state
        if now - soak.began < parameters.soak_s:
            return Verified(False, f"watching for {parameters.soak_s:g} s")
        self._soaks.pop(step.step_id)
        problems = verdict(soak.first, state, parameters.flavour, parameters.lag_tolerance, soak.n_changes)
        if problems:
            raise RunError(f"after {parameters.soak_s:g} s: {'; '.join(problems)}")
        evidence = _evidence(soak.first, state, parameters.flavour, soak.n_changes)
        return Verified(
            True, (f"after {parameters.soak_s:g} s the shares, lag and commits are within their limits"), evidence
        )

    def _look(self, group_id: str) -> GroupState:
        return (self._read or read_group_state)(self._cluster, group_id)


def verdict(first: GroupState, last: GroupState, flavour: str, lag_tolerance: int, n_changes: int) -> list[str]:
    """Return what speaks against the members of ``flavour``, in sentences; none: they keep up."""
    newcomers = [member for member in last.members if member.flavour == flavour]
    problems = [] if newcomers else [f"no {noun(flavour)} is a member any more"]
    mine = frozenset(pair for member in newcomers for pair in member.partitions)
    for member in newcomers:
        fair = len(last.partitions) / len(last.members)
        if not _is_fair(last, len(member.partitions), member.member_id):
            has = quantity(len(member.partitions), "partition")
            problems.append(f"{member.member_id} has {has}; a fair share is {fair:.1f}")
    others = last.partitions - mine
    grown, rest = _growth(first, last, mine), _growth(first, last, others)
    if all(_lag(last, pair) is None for pair in mine) and not _was_quiet(first, last, mine):
        problems.append(
            f"the lag of its partitions is not known, so it is not known whether the {noun(flavour)}s keep up"
        )
    if grown is not None and grown > lag_tolerance and (rest is None or grown > rest):
        of_others = (
            ("the lag of the other partitions is not known")
            if rest is None
            else f"the lag of the other partitions by {rest:,}"
        )
        beside = of_others if others else "and there are no other partitions"
        problems.append(f"the lag of its partitions grew by {quantity(grown, 'record')}, {beside}")
    still = frozenset(pair for pair in mine if _stands_still(first, last, pair, flavour))
    if still:
        problems.append(f"no offset was committed for {listed(still)}, though there were records")
    if n_changes > MOST_CHANGES:
        problems.append(f"ownership changed {n_changes} times: the group keeps rebalancing")
    if last.unconsumed:
        problems.append(f"no member owns {listed(last.unconsumed)}")
    return problems


def _is_fair(state: GroupState, n_partitions: int, member_id: str) -> bool:
    """Within one partition per topic of an even share: by streams in ZooKeeper's mode, by members in Kafka's."""
    share = 0.0
    for topic, count in state.subscribed.items():
        weights = {each.member_id: 1 for each in state.members}
        if state.effective_mode == "zookeeper":
            weights = {name: topics.get(topic, 0) for name, topics in state.threads.items()}
        total = sum(weights.values())
        share += count * weights.get(member_id, 0) / total if total else 0
    streams = max(1, sum(state.threads.get(member_id, {}).values()))
    return abs(n_partitions - share) <= max(1, len(state.subscribed), streams)


def _growth(first: GroupState, last: GroupState, pairs: frozenset[Partition]) -> int | None:
    """Return the growth of the lag of partitions whose lag is known at both ends; None: there is no such partition."""
    lags = [(_lag(first, pair), _lag(last, pair)) for pair in pairs]
    growths = [now - before for before, now in lags if before is not None and now is not None]
    return sum(growths) if growths else None


def _lag(state: GroupState, pair: Partition) -> int | None:
    offsets = state.offsets.get(pair)
    return None if offsets is None else offsets.lag


def _was_quiet(first: GroupState, last: GroupState, pairs: frozenset[Partition]) -> bool:
    """No record came, so no lag can have grown, also where nothing was ever committed."""
    ends = [(first.offsets.get(pair), last.offsets.get(pair)) for pair in pairs]
    return all(before and now and now.log_end is not None and now.log_end == before.log_end for before, now in ends)


def _stands_still(first: GroupState, last: GroupState, pair: Partition, flavour: str) -> bool:
    """Records came, and a store that this flavour commits to did not move: a MEZKCC's both, a Kafka member's Kafka."""
    before, now = first.offsets.get(pair), last.offsets.get(pair)
    if before is None or now is None or not (now.log_end or 0) > (before.log_end or 0):
        return False
    stores = [("kafka", before.kafka, now.kafka)] if flavour != OZKCC else []
    if flavour == MEZKCC and before.zookeeper is not None:
        stores.append(("zookeeper", before.zookeeper, now.zookeeper))
    return any((after or 0) <= (old or 0) for _, old, after in stores)


def _evidence(first: GroupState, last: GroupState, flavour: str, n_changes: int) -> dict[str, Json]:
    mine = frozenset(pair for member in last.members if member.flavour == flavour for pair in member.partitions)
    return {
        "shares": {member.member_id: len(member.partitions) for member in last.members},
        "lag_growth": _growth(first, last, mine),
        "lag_growth_of_the_rest": _growth(first, last, last.partitions - mine),
        "ownership_changes": n_changes,
        "partitions": [named(pair) for pair in sorted(mine)],
    }
