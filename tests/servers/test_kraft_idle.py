"""Dual write of a quorum that writes nothing at rest (metadata.max.idle.interval.ms=0): ``make soak``."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import NewTopic

from kit.kraft.status import KraftStatus
from kit.lab import Lab, faults
from kit.lab.entities import done
from tests.servers.kraft_kinds import new_admin
from tests.servers.kraft_walk import KraftWalk
from tests.soak import soak_only

pytestmark = [
    soak_only,
    pytest.mark.timeout(600),
]


def leads(status: KraftStatus) -> bool:
    return status.read.leader is not None


def test_only_a_change_that_zookeeper_lacks_makes_dual_write_stall():
    """After the election 3.9.1 writes nothing to ZooKeeper before the next change."""
    with Lab(brokers=1, controllers=1) as lab:
        seen, servers = KraftWalk(lab), lab.migration
        servers.reach("dual-write")
        (controller,) = servers.controllers
        controller.added["metadata.max.idle.interval.ms"] = "0"
        servers.restart_controller(controller, has_flag=True)
        seen.await_status("elected", leads, "a controller that leads")
        lab.create_topic("orders", 1)
        seen.await_status("written", lambda status: status.read.has_moved_on is False, "the topic in ZooKeeper")
        faults.cut_controllers_from_zookeeper(lab)
        admin = new_admin(lab)
        done(admin.create_topics([NewTopic("behind", 1, 1)]), "topic")
        seen.status("cut")
        faults.mend_controllers_to_zookeeper(lab)
    assert seen.statuses["elected"].read.has_moved_on is False
    assert seen.statuses["elected"].state.lag > 0
    assert [seen.serious(moment) for moment in ("elected", "written")] == [[], []]
    assert ("P02", "/migration") in seen.serious("cut")
