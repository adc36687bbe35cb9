"""Check the rights of a login, by the brokers' own answer (KIP-430) and by reading znodes; all rights:
``docs/security.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest
from kafka.protocol.metadata import MetadataRequest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.connections.check import OK, WARNING, Check, failed
from kit.clients.multiread import READ_TIMEOUT_S
from kit.errors import ConnectError, PartialRead
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.naming import listed
from kit.text.visible import visible

READ, DELETE, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS = 3, 6, 8, 9, 10
"""Codes of AclOperation."""
LOCK_GROUP = "offramp.lock.connect"
_AT_MOST = 5
_DEADLINE_S = 10.0
READ_ZNODES = ("/cluster/id", "/controller", "/brokers/ids", "/brokers/topics", "/consumers")
"""The set *observe* of docs/security.md."""


def check_kafka_rights(client: BrokerClient) -> Iterator[Check]:
    """Yield a row per right that reading, locks and offset plans need, beyond the login.

    Raises:
        ConnectError, ReadError: the brokers stopped answering, or refused.
    """
    if not client.supports(DescribeClusterRequest, 0):
        yield Check("brokers", "rights", WARNING, "Brokers before 2.8 do not report rights; they are unknown.")
        return
    cluster, topics, group = client.run(_asked, client)
    yield _cluster_right(cluster)
    yield from _topic_rights(topics)
    yield _lock_right(group)


async def _asked(client: BrokerClient) -> tuple[frozenset[int], list[Any], frozenset[int]]:
    deadline = Deadline(_DEADLINE_S)
    described = await client.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), None, deadline)
    request = MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True, min_version=8
    )
    metadata = await client.ask(request, None, deadline)
    coordinators = await client.find_coordinators([LOCK_GROUP], deadline)
    operations = frozenset[int]()
    if coordinators:
        asked = DescribeGroupsRequest(
            groups=[LOCK_GROUP], include_authorized_operations=True, min_version=3, max_version=5
        )
        answer = await client.ask(asked, coordinators[LOCK_GROUP], deadline)
        operations = frozenset() if answer.groups[0].error_code else frozenset(answer.groups[0].authorized_operations)
    return frozenset(described.authorized_operations), list(metadata.topics), operations


def _cluster_right(operations: frozenset[int]) -> Check:
    if DESCRIBE not in operations:
        return failed(
            "brokers",
            "rights: cluster",
            PartialRead(
                "The login lacks DESCRIBE on Cluster: Kafka leaves out groups that the login may not describe. Grant "
                "it: kafka-acls.sh --add --operation Describe --cluster --allow-principal …"
            ),
        )
    names = {DESCRIBE_CONFIGS: "DESCRIBE_CONFIGS (--outlook, preflight)", CLUSTER_ACTION: "CLUSTER_ACTION (kraft)"}
    lacks = [name for operation, name in names.items() if operation not in operations]
    also = f" Not granted: {', '.join(lacks)}." if lacks else ""
    return Check("brokers", "rights: cluster", OK, f"The login has DESCRIBE on Cluster.{also}")


def _topic_rights(topics: list[Any]) -> Iterator[Check]:
    """Topics that the login may not describe are not in the answer."""
    users = [each for each in topics if not each.is_internal]
    if not users:
        sentence = (
            "The login sees no topic. If the cluster has topics, the login lacks DESCRIBE on them. Grant it: "
            "kafka-acls.sh --add --operation Describe --topic … --allow-principal …"
        )
        yield Check("brokers", "rights: topics", WARNING, sentence)
        return
    unread = sorted(visible(each.name) for each in users if READ not in each.authorized_operations)
    if unread:
        yield Check(
            "brokers",
            "rights: topics",
            WARNING,
            f"The login sees {len(users):,} topics, and lacks READ on {len(unread):,}, among them "
            f"{listed(unread[:_AT_MOST])}. Plans for offsets of these topics are refused, and the ages of their "
            "records are unknown.",
        )
    else:
        yield Check("brokers", "rights: topics", OK, f"The login has READ on all {len(users):,} topics that it sees.")
    internal = {each.name: each.authorized_operations for each in topics if each.is_internal}
    if READ not in internal.get(OFFSETS_TOPIC, ()):
        sentence = (
            f"The login lacks READ on the topic {OFFSETS_TOPIC}, or the topic does not exist. `offramp rebalances` "
            "without logs, and `--offsets-topic`, need this right."
        )
        yield Check("brokers", f"rights: {OFFSETS_TOPIC}", WARNING, sentence)


def _lock_right(operations: frozenset[int]) -> Check:
    if READ in operations:
        return Check("brokers", "rights: locks", OK, "The login has READ on groups with the prefix offramp.lock.")
    return Check(
        "brokers",
        "rights: locks",
        WARNING,
        "The login lacks READ on Group with the prefix offramp.lock., so runs on brokers in KRaft mode are refused. "
        "Grant it: kafka-acls.sh --add --operation Read --group offramp.lock. --resource-pattern-type prefixed …",
    )


def check_zookeeper_rights(component: str, client: KazooClient) -> Iterator[Check]:
    """Yield one row: the znodes that the login may not read, of those that every reading command needs."""
    refused, absent = list[str](), list[str]()
    for path in READ_ZNODES:
        try:
            client.get_async(path).get(timeout=READ_TIMEOUT_S)
            client.get_children_async(path).get(timeout=READ_TIMEOUT_S)
        except NoAuthError:
            refused.append(path)
        except NoNodeError:
            absent.append(path)
        except (KazooException, client.handler.timeout_exception) as error:
            yield failed(component, "rights", ConnectError(f"ZooKeeper stopped answering ({error!r})."))
            return
    if refused:
        problem = PartialRead(
            f"The login may not read {listed(refused)}. In security.zookeeper, use a login that the access lists "
            "name, or add READ for this login."
        )
        yield failed(component, "rights", problem)
    else:
        missing = f" These znodes do not exist: {listed(absent)}." if absent else ""
        yield Check(component, "rights", OK, f"The login may read the znodes that reading commands need.{missing}")
