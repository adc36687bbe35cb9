"""The circuit breaker counts what the cluster needs, not what this process needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, repeat
from types import SimpleNamespace

import polars as pl
import pytest

from kit.errors import RunError
from kit.groups.snapshot import Snapshot
from kit.moves.group.circuit_breaker import CircuitBreakerActor, CircuitBreakerParameters, circuit_breaker_step
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, CommittedOffset, LogOffset
from kit.tables.polars import stamped_frame
from tests.unit.moves.fleet.one_mezkcc import NOW, one_mezkcc

STEP = circuit_breaker_step(CircuitBreakerParameters(1, ("g",), 60.0, 10, 500.0))


def breaker(every_s: int, observed: Iterator[Snapshot[pl.DataFrame]]) -> CircuitBreakerActor:
    """Its clock is ``every_s`` later at each observation."""
    times = count(0, every_s)
    clock = SimpleNamespace(monotonic=lambda: float(next(times)))
    return CircuitBreakerActor(SimpleNamespace(), clock, lambda cluster, groups: next(observed))


def busy(read_ms: float) -> CircuitBreakerActor:
    return breaker(30, repeat(one_mezkcc(700, read_ms, kafka=10)))


def test_a_busy_machine_does_not_break_it():
    actor = busy(read_ms=499.0)
    assert [actor.verify(STEP).ok for _ in range(3)] == [False, False, True]


def test_a_slow_read_breaks_it():
    with pytest.raises(RunError, match="a read of the cluster took 501 ms, more than 500 ms"):
        busy(read_ms=501.0).verify(STEP)


def lags(*looks: dict[int, int | None]) -> Iterator[Snapshot[pl.DataFrame]]:
    """Snapshots of a group whose lag at each partition is this; None: the log's end is not known."""
    for look in looks:
        read = one_mezkcc(700)
        known = {number: lag for number, lag in look.items() if lag is not None}
        rows = {
            "committed_offsets": [CommittedOffset("g", KAFKA, "t", number, 0, *[None] * 5) for number in look],
            "log_offsets": [LogOffset("t", number, 0, lag) for number, lag in known.items()],
        }
        frames = {
            name: stamped_frame(getattr(tables, name.upper()).columns_of(mine), "s", NOW) for name, mine in rows.items()
        }
        yield replace(read, **frames)


def watching(*looks: dict[int, int | None]) -> CircuitBreakerActor:
    return breaker(60, lags(*looks))


def test_a_lag_that_is_unknown_now_hides_no_growth_and_is_no_pass():
    """Counted as 0, the lag made up for what another partition had grown by."""
    actor = watching({0: 50, 1: 0}, {0: None, 1: 5}, {0: None, 1: 20})
    assert not actor.verify(STEP).ok
    told = actor.verify(STEP)
    assert (told.ok, told.sentence) == (False, "the lag of g on t-0 was known before and is unknown now")
    with pytest.raises(
        RunError,
        match="the lag of group g grew by 20 records, that of all groups that were moved by 20; the tolerance is 10",
    ):
        actor.verify(STEP)


def test_a_lag_that_was_never_known_is_no_growth_and_is_reported():
    actor = watching({0: None, 1: 0}, {0: None, 1: 5})
    actor.verify(STEP)
    told = actor.verify(STEP)
    assert (told.ok, told.sentence) == (
        True,
        "after 60 s the shares, lag and commits are within their limits; the lag of 1 partition is unknown",
    )
    assert told.evidence == {"lag_growth": 5, "n_unknown_lags": 1, "read_ms": 1}


def test_a_lag_counts_from_the_first_observation_that_knows_it():
    actor = watching({0: None}, {0: 500}, {0: 511})
    assert [actor.verify(STEP).ok for _ in range(2)] == [False, True]
    with pytest.raises(RunError, match="group g grew by 11 records"):
        actor.verify(STEP)


def test_a_group_that_catches_up_hides_no_other_group_with_growing_lag():
    """Summed up, the lag of both shrank."""

    def look(behind: int, ahead: int) -> Snapshot[pl.DataFrame]:
        rows = [CommittedOffset(group, KAFKA, "t", number, 0, *[None] * 5) for number, group in enumerate("gh")]
        logs = [LogOffset("t", number, 0, lag) for number, lag in enumerate((behind, ahead))]
        columns = {"committed_offsets": tables.COMMITTED_OFFSETS.columns_of(rows)}
        columns["log_offsets"] = tables.LOG_OFFSETS.columns_of(logs)
        return replace(one_mezkcc(700), **{name: stamped_frame(each, "s", NOW) for name, each in columns.items()})

    actor = breaker(30, iter([look(0, 1_000), look(11, 0)]))
    assert not actor.verify(STEP).ok
    with pytest.raises(
        RunError, match="the lag of group g grew by 11 records, that of all groups that were moved by -989"
    ):
        actor.verify(STEP)


def test_a_brake_that_is_checked_again_watches_for_the_whole_pause_again():
    """A run that stopped in the midst of the pause is resumed: what grew meanwhile, without a watch, counts no more."""
    actor = watching({0: 5}, {0: 16}, {0: 16}, {0: 16})
    assert not actor.verify(STEP).ok
    with pytest.raises(RunError, match="grew by 11 records"):
        actor.verify(STEP)
    assert actor.check(STEP).ok
    assert [actor.verify(STEP).ok for _ in range(2)] == [False, True]
