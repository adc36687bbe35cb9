"""The circuit breaker counts what the cluster needs, not what this process needs."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import polars as pl
import pytest

from kit.errors import RunError
from kit.migrate.fleet import wave
from kit.migrate.fleet.wave import CircuitBreakerActor, CircuitBreakerParameters, circuit_breaker_step
from tests.unit.migrate.fleet.test_fleet_rows import snapshot_of

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
