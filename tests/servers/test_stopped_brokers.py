"""The topics and groups that only a stopped broker has are unknown, not absent: hidden topics, and groups of its
offsets partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from kit import connect, observe, of_group, verify_read
from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster
from kit.errors import ConnectError, NotFound, PartialRead, ReadError, UnsafePlan
from kit.groups.read.coordinator import await_coordinator
from kit.groups.read.topics import TopicSight, fetch_sight
from kit.moves.group.group_state import read_group_state
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, plan_delete_groups
from kit.moves.offsets.fetch import fetch_kafka
from kit.moves.protocol.state import read_protocol_state
from kit.profile import load_profile
from kit.text.java_hash import OFFSETS_TOPIC, offsets_partition
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import OffsetOperations
from tests.servers.tuned_lab import TunedLab

SEEN, HIDDEN, GROUP = "seen", "secret", "both"
NAMES = [f"g{number}" for number in range(20)]
ACLS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
STANDARD = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""A quorum of several nodes without authentication does not start unless they are super users, who see everything."""


@contextmanager
def site_of(lab: TunedLab, folder: Path, coordinators: Sequence[int] = (0,)) -> Iterator[OffsetOperations]:
    """Only the last broker has the hidden topic. The first one has all else, but the partitions of the offsets topic
    are on ``coordinators``."""
    homes = {OFFSETS_TOPIC: coordinators, SEEN: (0,), HIDDEN: (-1,)}
    last, compact = lab.servers.brokers[-1], {OFFSETS_TOPIC: {"cleanup.policy": "compact"}}
    topics = [
        NewTopic(
            name,
            num_partitions=len(places),
            replica_assignment=[[lab.servers.brokers[each].broker_id] for each in places],
            config=compact.get(name, {}),
        )
        for name, places in homes.items()
    ]
    for future in lab.admin.create_topics(topics).values():
        future.result(SECONDS)
    path = folder / "offramp.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        site = OffsetOperations(cluster, folder / "runs")
        site.last = last
        for topic in (SEEN, HIDDEN):
            site.commit(GROUP, topic, {0: 0})
        yield site


def alive(cluster: Cluster) -> set[int]:
    return {each.broker_id for each in fetch_metadata(cluster.broker_client).brokers if each.host is not None}


def stop(site: OffsetOperations) -> None:
    site.last.process.stop()
    awaited(lambda: alive(site.cluster), lambda found: site.last.broker_id not in found, "the broker gone")


def sight_of(cluster: Cluster) -> TopicSight:
    return fetch_sight(cluster.broker_client, cluster.zookeeper)


def refuse(site: OffsetOperations, reason: str) -> None:
    with pytest.raises(UnsafePlan, match=f"visible_topics.*{reason}"):
        plan_delete_groups(site.cluster, DeleteGroupsRequest((GROUP,)), "ann", datetime.now(UTC))


def test_zookeeper_names_a_hidden_topic_of_a_stopped_broker(tmp_path):
    with TunedLab(ACLS, brokers=2) as lab, site_of(lab, tmp_path) as site:
        how = (ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.DESCRIBE, AclPermissionType.DENY)
        for future in lab.admin.create_acls([AclBinding(ResourceType.TOPIC, HIDDEN, *how)]).values():
            future.result(SECONDS)
        awaited(lambda: sight_of(site.cluster), lambda sight: sight == TopicSight((HIDDEN,)), "the topic hidden")
        stop(site)
        assert sight_of(site.cluster) == TopicSight((HIDDEN,))
        assert fetch_sight(site.cluster.broker_client).unproven is not None
        refuse(site, HIDDEN)


def test_without_zookeeper_kafka_names_the_stopped_broker(tmp_path):
    with TunedLab(STANDARD, brokers=3, kraft=True) as lab, site_of(lab, tmp_path) as site:
        for future in lab.admin.delete_topics([HIDDEN]).values():  # No visible topic has a replica there.
            future.result(SECONDS)
        assert sight_of(site.cluster) == TopicSight()
        stop(site)
        awaited(lambda: sight_of(site.cluster).is_whole, lambda is_whole: is_whole is None, "the broker fenced")
        refuse(site, f"broker {site.last.broker_id} does not run")


def test_groups_in_a_partition_without_a_leader_are_unknown_and_not_absent(tmp_path):
    """Each broker coordinates a group. While a broker is stopped, no broker lists its group."""
    running, absent, *_ = (name for name in NAMES if offsets_partition(name, 3) == 0)
    stopped = next(name for name in NAMES if offsets_partition(name, 3) == 2)
    with TunedLab({}, brokers=2) as lab, site_of(lab, tmp_path, (0, 0, -1)) as site:
        for group in (running, stopped):
            site.commit(group, SEEN, {0: 0})
        verify_read(observe(site.cluster))
        stop(site)
        found = observe(site.cluster, "g.*")
        assert found.groups["group_id"].to_list() == [running]
        with pytest.raises(PartialRead, match=f"partition {OFFSETS_TOPIC}-2 has no leader"):
            verify_read(found)
        with pytest.raises(PartialRead, match=f"group '{stopped}' is not among the groups that could be read"):
            of_group(found, stopped)
        with pytest.raises(
            ConnectError, match=f"group {stopped} can't be read: partition {OFFSETS_TOPIC}-2 has no leader"
        ):
            read_group_state(site.cluster, stopped)
        site.cluster.zookeeper.ensure_path(f"/consumers/{stopped}/offsets/{SEEN}/0")
        site.cluster.zookeeper.set(f"/consumers/{stopped}/offsets/{SEEN}/0", b"0")
        with pytest.raises(ConnectError, match=f"group {stopped} can't be read: .* {OFFSETS_TOPIC}-2 has no leader"):
            read_group_state(site.cluster, stopped)
        with pytest.raises(ConnectError, match=f"coordinator of group '{stopped}' does not answer for it"):
            await_coordinator(site.cluster.broker_client, stopped, deadline_s=1.0)
        with pytest.raises(NotFound):
            read_protocol_state(site.cluster, absent)
        for read in (read_group_state, read_protocol_state):
            assert read(site.cluster, running).kafka_state == "Empty"
        with pytest.raises(ReadError, match=f"{OFFSETS_TOPIC}-2"):
            fetch_kafka(site.cluster, stopped.__eq__)
