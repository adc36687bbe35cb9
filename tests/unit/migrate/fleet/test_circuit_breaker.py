"""The circuit breaker counts what the cluster needs, not what this process needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import polars as pl
import pytest

from kit.errors import RunError
from kit.migrate.fleet import wave
from kit.migrate.fleet.wave import CircuitBreakerActor, CircuitBreakerParameters, circuit_breaker_step
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, CommittedOffset, LogOffset
from kit.tables.polars import stamped_frame
from tests.unit.migrate.fleet.test_fleet_rows import NOW, snapshot_of

STEP = circuit_breaker_step(CircuitBreakerParameters(1, ("g",), 60.0, 10, 500.0))


def breaker(monkeypatch: pytest.MonkeyPatch, read_ms: float) -> CircuitBreakerActor:
    """Its clock is 30 s later at each look at it: the machine is busy."""
    read = snapshot_of(700, kafka=10)
    object.__setattr__(read, "read_timings", read.read_timings.with_columns(duration_ms=pl.lit(read_ms)))
    monkeypatch.setattr(wave, "observe_groups", lambda cluster, groups: read)
    times = count(0, 30)
    return CircuitBreakerActor(SimpleNamespace(), SimpleNamespace(monotonic=lambda: float(next(times))))


def test_a_busy_machine_does_not_break_it(monkeypatch):
    actor = breaker(monkeypatch, read_ms=499.0)
    assert [actor.verify(STEP).ok for _ in range(3)] == [False, False, True]


def test_a_slow_read_does(monkeypatch):
    with pytest.raises(RunError, match="a read of the cluster took 501 ms, more than 500 ms"):
        breaker(monkeypatch, read_ms=501.0).verify(STEP)


def lags(*looks: dict[int, int | None]) -> Iterator[Snapshot[pl.DataFrame]]:
    """Snapshots of a group whose lag at each partition is this; None: the log's end is not known."""
    for look in looks:
        read = snapshot_of(700)
        known = {number: lag for number, lag in look.items() if lag is not None}
        rows = {
            "committed_offsets": [CommittedOffset("g", KAFKA, "t", number, 0, *[None] * 5) for number in look],
            "log_offsets": [LogOffset("t", number, 0, lag) for number, lag in known.items()],
        }
        frames = {
            name: stamped_frame(getattr(tables, name.upper()).columns_of(mine), "s", NOW) for name, mine in rows.items()
        }
        yield replace(read, **frames)


def watching(monkeypatch: pytest.MonkeyPatch, *looks: dict[int, int | None]) -> CircuitBreakerActor:
    read = lags(*looks)
    monkeypatch.setattr(wave, "observe_groups", lambda cluster, groups: next(read))
    times = count(0, 60)
    return CircuitBreakerActor(SimpleNamespace(), SimpleNamespace(monotonic=lambda: float(next(times))))


def test_a_lag_that_is_unknown_now_hides_no_growth_and_is_no_pass(monkeypatch):
    """As 0 it made up for what another partition had grown by."""
    actor = watching(monkeypatch, {0: 50, 1: 0}, {0: None, 1: 5}, {0: None, 1: 20})
    assert not actor.verify(STEP).ok
    told = actor.verify(STEP)
    assert (told.ok, told.sentence) == (False, "the lag of g on t-0 was known before and is unknown now")
    with pytest.raises(RunError, match="grew by 20 records, more than 10"):
        actor.verify(STEP)


def test_a_lag_that_was_never_known_is_no_growth_and_is_told(monkeypatch):
    actor = watching(monkeypatch, {0: None, 1: 0}, {0: None, 1: 5})
    actor.verify(STEP)
    told = actor.verify(STEP)
    assert (told.ok, told.sentence) == (True, "after 60 s all is well; the lag of 1 partition is unknown")
    assert told.evidence == {"lag_growth": 5, "n_unknown_lags": 1, "read_ms": 1}


def test_a_lag_counts_from_the_first_look_that_knows_it(monkeypatch):
    actor = watching(monkeypatch, {0: None}, {0: 500}, {0: 511})
    assert [actor.verify(STEP).ok for _ in range(2)] == [False, True]
    with pytest.raises(RunError, match="grew by 11 records"):
        actor.verify(STEP)
