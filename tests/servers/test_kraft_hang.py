"""A broker that was stopped before it knew the controller after the hand-back hangs for a measured time: ``make
soak``.
"""

from __future__ import annotations

import time

import pytest

from kit.lab import Lab, faults
from kit.lab.process import wait_until
from kit.lab.servers.migrating import ZOOKEEPER
from tests.servers.kraft_walk import KraftWalk
from tests.soak import report, soak_only

pytestmark = [
    soak_only,
    pytest.mark.timeout(900),
]
LONG_S, LIMIT_S = 60.0, 600.0


def test_a_broker_that_was_stopped_too_early_hangs_for_minutes_and_comes_back_in_zookeeper_mode(record_property):
    with Lab(brokers=1, controllers=1) as lab:
        seen, (broker,) = KraftWalk(lab), lab.migration.migrating
        lab.create_topic("orders", 1)
        lab.migration.reach("dual-write")
        began = time.monotonic()
        faults.stop_too_early(lab, broker.broker_id)
        hung = faults.running(broker)
        seen.status("stopped too early")
        wait_until(lambda: not hung.running, "the end of the broker", LIMIT_S)
        hung_s = time.monotonic() - began
        report(record_property, f"a broker hung for {hung_s:.0f} s, exit code {hung.exit_code}")
        lab.migration.roll_broker(broker, ZOOKEEPER)
        seen.status("back")
    assert hung_s > LONG_S
    assert [each.mode for each in seen.statuses["stopped too early"].read.brokers] == ["migration"]
    assert seen.statuses["back"].state.phase == "zookeeper"
    assert seen.statuses["back"].findings == []
