"""Topics that the login may not describe and that only a stopped broker has: no group is deleted because of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from kit import connect
from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster
from kit.errors import UnsafePlan
from kit.groups.read.topics import TopicSight, fetch_sight
from kit.moves.offsets.delete_groups import DeleteGroupsRequest, plan_delete_groups
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.offset_operations import OffsetOperations
from tests.servers.tuned_lab import TunedLab

SEEN, HIDDEN, GROUP = "seen", "secret", "both"
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
def site_of(lab: TunedLab, folder: Path) -> Iterator[OffsetOperations]:
    """Only the last broker has the hidden topic. All else is on the first one."""
    first, last = (lab.servers.brokers[at] for at in (0, -1))
    homes = {"__consumer_offsets": first, SEEN: first, HIDDEN: last}
    compact = {"__consumer_offsets": {"cleanup.policy": "compact"}}
    topics = [
        NewTopic(name, num_partitions=1, replica_assignment=[[home.broker_id]], config=compact.get(name, {}))
        for name, home in homes.items()
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
