"""The brake between two waves of groups: while groups were moved, neither their lag nor the load may grow too far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from kit.clients.cluster import Cluster
from kit.engine.model.actor import ReadingActor
from kit.engine.model.clock import Clock
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import Checked, Verified
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import ConnectError, RunError
from kit.groups import views
from kit.groups.snapshot import Snapshot, observe
from kit.moves.group.rules import SETTLE_S
from kit.tables.groups import KAFKA
from kit.text.quantity import quantity

CIRCUIT_BREAKER = "circuit breaker"


@dataclass(frozen=True, slots=True)
class CircuitBreakerParameters(StepParameters):
    """Watch the groups that were moved so far, and the cluster, for ``pause_s`` seconds after wave ``number``.

    Their lag may grow by ``lag_tolerance`` records; a read of the cluster may take ``max_read_ms``.
    """

    number: int
    groups: tuple[str, ...]
    pause_s: float
    lag_tolerance: int
    max_read_ms: float


def circuit_breaker_step(words: CircuitBreakerParameters) -> Step:
    return Step(
        step_id=f"wave-{words.number:02d}-pause",
        kind=CIRCUIT_BREAKER,
        title=f"Watch {quantity(len(words.groups), 'group')} for {words.pause_s:g} s before the next wave",
        precondition="none",
        verification=(
            f"the lag of each group, and of all, does not grow by more than {words.lag_tolerance} records, and a read"
            f" of the cluster takes no longer than {words.max_read_ms:.0f} ms"
        ),
        deadline_s=words.pause_s + SETTLE_S,
        undo="There is nothing to undo.",
        parameters=words.to_json(),
    )


class CircuitBreakerActor(ReadingActor):
    """Changes nothing; fails when the groups or the cluster do badly."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        observe: Callable[[Cluster, Iterable[str]], Snapshot[pl.DataFrame]] | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._observe = observe or observe_groups
        self._began: dict[str, tuple[float, _Lags]] = {}

    def check(self, step: Step) -> Checked:
        self._began.pop(step.step_id, None)  # A run that is resumed watches for the whole pause again.
        n_groups = len(CircuitBreakerParameters.of(step).groups)
        return Checked(True, f"{quantity(n_groups, 'group was', 'groups were')} moved")

    def verify(self, step: Step) -> Verified:
        """Measure the lag of the groups that were moved and the time of a read, until the pause has ended.

        Raises:
            RunError: the circuit breaker: lag or the time of a read are beyond their limits.
        """
        words = CircuitBreakerParameters.of(step)
        snapshot = self._observe(self._cluster, words.groups)
        now, took_ms = self._clock.monotonic(), read_ms(snapshot)
        lags = _lags(snapshot)
        began, first = self._began.setdefault(step.step_id, (now, {}))
        known = {place: lag for place, lag in lags.items() if lag is not None}
        first |= {place: lag for place, lag in known.items() if place not in first}
        growth = dict[str, int]()
        for place in first.keys() & known.keys():
            growth[place[0]] = growth.get(place[0], 0) + known[place] - first[place]
        _raise_beyond(words, growth, took_ms)
        pause_s = words.pause_s
        if now - began < pause_s:
            return Verified(False, f"watching for {pause_s:g} s")
        missing = sorted(set(first) - set(known))
        if missing:
            return Verified(False, f"the lag of {_places(missing)} was known before and is unknown now")
        n_unknown = len(lags) - len(known)
        evidence: dict[str, Json] = {
            "lag_growth": sum(growth.values()) if first else None,
            "n_unknown_lags": n_unknown,
            "read_ms": round(took_ms),
        }
        unknown = f"; the lag of {quantity(n_unknown, 'partition')} is unknown" if n_unknown else ""
        return Verified(
            True, f"after {pause_s:g} s the shares, lag and commits are within their limits{unknown}", evidence
        )


_Lags: TypeAlias = dict[tuple[str, str, int], int]


def _lags(snapshot: Snapshot[pl.DataFrame]) -> dict[tuple[str, str, int], int | None]:
    """By group, topic and partition, where Kafka may hold an offset; None: unknown, which is no 0."""
    rows = views.lag(snapshot).filter(~pl.col("is_stale") & ~pl.col("has_no_commit"), store=KAFKA)
    return {(group, topic, number): lag for group, topic, number, lag in rows.select(*_PLACE, "lag").iter_rows()}


_PLACE = ("group_id", "topic", "partition")


def _places(places: Sequence[tuple[str, str, int]]) -> str:
    """The first of them, and how many there are."""
    group, topic, number = places[0]
    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    return f"{group} on {topic}-{number}{more}"


def _raise_beyond(words: CircuitBreakerParameters, growth: Mapping[str, int], took_ms: float) -> None:
    """``growth``: of the lag, by group. A lag that shrinks in one group does not hide a growing one in another."""
    grown, worst = sum(growth.values()), max(growth, key=lambda group: growth[group], default="")
    if growth and max(grown, growth[worst]) > words.lag_tolerance:
        raise RunError(
            f"the circuit breaker: the lag of group {worst} grew by {quantity(growth[worst], 'record')}, that of all"
            f" groups that were moved by {grown:,}; the tolerance is {words.lag_tolerance:,}"
        )
    if took_ms > words.max_read_ms:
        raise RunError(
            f"the circuit breaker: a read of the cluster took {took_ms:.0f} ms, more than {words.max_read_ms:.0f} ms"
        )


def read_ms(snapshot: Snapshot[pl.DataFrame]) -> float:
    """Return how long ZooKeeper and the brokers were read: without what this process then makes of the answers."""
    return float(snapshot.read_timings["duration_ms"].sum())


def observe_groups(cluster: Cluster, groups: Iterable[str]) -> Snapshot[pl.DataFrame]:
    """One snapshot of these groups.

    Raises:
        ConnectError: something could not be read.
    """
    snapshot = observe_some(cluster, groups)
    errors = snapshot.read_errors.filter(~pl.col("topic").fill_null("").str.contains("/", literal=True))
    if not errors.is_empty():
        raise ConnectError(f"the watched groups could not be read completely: {errors['error'][0]}")
    return snapshot


def observe_some(cluster: Cluster, groups: Iterable[str]) -> Snapshot[pl.DataFrame]:
    """The same where single groups may have rows with errors.

    Raises:
        ConnectError: something could not be read that any group may hang on.
    """
    snapshot = observe(cluster, frozenset(groups))
    errors = snapshot.read_errors.filter(pl.col("group_id").is_null() & pl.col("topic").is_null())
    if not errors.is_empty():
        raise ConnectError(f"the watched groups could not be read completely: {errors['error'][0]}")
    return snapshot
