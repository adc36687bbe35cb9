"""One group from the classic to the consumer protocol and back, by approved plans, on Kafka 4.4 and under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cluster import Cluster, connect
from kit.lab import Lab
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember
from kit.migrate.engine.plan import Plan
from kit.migrate.engine.states import RunState
from kit.migrate.execution.run import Run
from kit.migrate.operations import Operations
from kit.migrate.protocol.plan import ProtocolPlanRequest
from kit.profile import load_profile
from tests.servers.protocol_group import ProtocolGroup, assert_each_once

QUICK = {"soak_s": 2.0, "observe_s": 1.0, "quiet_s": 1.0}


@pytest.fixture(scope="module")
def cluster(kraft_lab: Lab) -> Iterator[Cluster]:
    """By the profile in the lab's own folder: its deployer finds the lab there."""
    path = kraft_lab.folder / "protocols.toml"
    path.write_text(kraft_lab.profile_toml())
    with connect(load_profile(file=path)) as connected:
        yield connected


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> Operations:
    return Operations(cluster, tmp_path / "runs")


def begun(desk: Operations, plan: Plan) -> Run:
    desk.approve(plan, plan.subject, plan.digest[:8], "second person")
    return desk.begin(plan)


def planned(desk: Operations, group: ProtocolGroup, to: str, **wishes: object) -> Plan:
    return desk.plan_protocol(ProtocolPlanRequest(group.name, to, **{**QUICK, **wishes}))  # type: ignore[arg-type]


def test_three_classic_members_change_to_the_consumer_protocol_and_back(kraft_lab, cluster, desk):
    """A Java client and two of librdkafka; a plan there, its undo, and a plan there and one back."""
    group = ProtocolGroup(kraft_lab, cluster, "move-there-and-back")
    java = JavaMember(group.name, (group.name,), f"{group.name}-java", version="4.4.0", level="WARN")
    group.start([java, *(NewMember(group.name, [group.name], f"{group.name}-{number}") for number in range(2))])
    assert group.state().stage == "classic"
    there = begun(desk, planned(desk, group, "consumer"))
    there.act().raise_unless(RunState.VERIFIED)
    assert (group.state().stage, group.state().group_type) == ("consumer", "consumer")
    there.undo().raise_unless(RunState.UNDONE)
    assert (group.state().stage, group.state().group_type) == ("classic", "classic")
    begun(desk, planned(desk, group, "consumer")).act().raise_unless(RunState.VERIFIED)
    begun(desk, planned(desk, group, "classic")).act().raise_unless(RunState.VERIFIED)
    assert (group.settled(3).stage, group.state().group_type) == ("classic", "classic")
    assert_each_once(group)
