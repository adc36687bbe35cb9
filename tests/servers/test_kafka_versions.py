"""One scene on each Kafka version that the lab has without ZooKeeper: groups, members, assignment and lag are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit import connect, observe
from kit.clients.cluster import Cluster
from kit.errors import TargetBusy
from kit.groups import views
from kit.groups.snapshot import verify_read
from kit.lab import NewMember
from kit.lab.java.jars import KAFKA_SETS
from kit.lab.process import wait_until
from kit.moves.locks.run_lock import RunLock
from kit.profile import load_profile
from tests.servers.tuned_lab import TunedLab

TOPIC, PARTITIONS, N_RECORDS = "versions", 4, 40
SECONDS = 90.0
GROUPS = {"classic": ("range", {}), "consumer": ("", {"group.protocol": "consumer"})}
"""By protocol: assignor and settings of its member."""


@pytest.fixture(scope="module", params=[*KAFKA_SETS])
def scene(request) -> Iterator[tuple[Cluster, list[str]]]:
    """A cluster, and the groups whose member has read and committed all records."""
    known = {name: how for name, how in GROUPS.items() if name == "classic" or request.param >= "4"}
    with TunedLab({}, kraft=True, kafka_version=request.param) as lab:
        lab.create_topic(TOPIC, PARTITIONS)
        lab.produce(TOPIC, N_RECORDS)
        wanted = [NewMember(name, [TOPIC], name, assignor, settings=more) for name, (assignor, more) in known.items()]
        lab.start_new_consumers(wanted)
        path = lab.folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as cluster:
            wait_until(lambda: set(lags(cluster)) == {(name, 0) for name in known}, "all records committed", SECONDS)
            yield cluster, list(known)


def lags(cluster: Cluster) -> list[tuple[str, int | None]]:
    return views.lag(observe(cluster)).select("group_id", "lag").rows()


def test_groups_members_assignment_and_lag_are_read(scene):
    cluster, names = scene
    snapshot = observe(cluster)
    verify_read(snapshot)
    assert sorted(snapshot.groups.select("group_id", "group_type", "state", "protocol_type").rows()) == [
        (name, name, "Stable", "consumer") for name in names
    ]
    assert sorted(snapshot.members["client_id"]) == names
    owned = sorted(snapshot.ownership.select("group_id", "partition").rows())
    assert owned == [(name, partition) for name in names for partition in range(PARTITIONS)]
    assert sorted(lags(cluster)) == [(name, 0) for name in names for _ in range(PARTITIONS)]


def test_a_run_locks_its_group_in_kafka(scene):
    cluster, _ = scene
    first, second = RunLock(cluster), RunLock(cluster)
    first.acquire(["locked"], "run-1")
    with pytest.raises(TargetBusy, match="run run-1"):
        second.acquire(["locked"], "run-2")
    first.assert_held()
    first.mark(["locked"], "run-1")
    first.release()
    second.acquire(["locked"], "run-2")
    assert second.followed_by(["locked"], "run-0") == {"locked": "run-1"}
    second.release()
