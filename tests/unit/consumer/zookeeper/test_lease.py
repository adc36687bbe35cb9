"""The lease's clock: a machine can't be suspended in a test, so the clock that is read is what is checked."""

from __future__ import annotations

import time

import pytest

from kit.consumer.zookeeper.gate import Gate


def test_the_lease_ends_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """In suspension CLOCK_MONOTONIC is stalled, and CLOCK_BOOTTIME continues."""
    at = {time.CLOCK_BOOTTIME: 100.0, time.CLOCK_MONOTONIC: 50.0}
    monkeypatch.setattr(time, "clock_gettime", at.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: at[time.CLOCK_MONOTONIC])
    gate = Gate()
    gate.session_began(1)
    gate.extend(1, gate.clock() + 4)
    assert gate.lease.seconds_over == 0
    at[time.CLOCK_BOOTTIME] += 3600
    assert gate.lease.seconds_over == 3596
