"""Read the login's rights on groups, topics and the cluster, as the brokers report them (KIP-430; Kafka ≥ 2.3).

Brokers answer for a group that does not exist as for any other (DescribeGroups ≤ 5: it is ``Dead``, without an error).
Without an authorizer they answer with every operation. A resource that the login may not DESCRIBE grants it nothing:
READ and DELETE include DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeAclsRequest, DescribeGroupsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.clients.broker_client import RETRIABLE_FAILURES, BrokerClient, Deadline, describe_code
from kit.groups.read.sweep import GROUPS_PER_REQUEST, sweep

READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11
"""Operations by their code (``AclOperation``)."""
Rights: TypeAlias = frozenset[int] | str
"""The operations that are allowed, or why they are not known."""
NONE: frozenset[int] = frozenset()
EVERYTHING = frozenset(range(READ, 16))
_SECURITY_DISABLED = 54
_ANY, _CLUSTER, _LITERAL = 1, 4, 3
_GRANT = "To see every group: kafka-acls --add --allow-principal User:LOGIN --operation Describe --cluster"
IF_HIDDEN = ". Kafka hides each group that the login may not DESCRIBE"
"""The end of a sentence on a group that is not there."""
_GROUP_AUTHORIZATION_FAILED, _TOPIC_AUTHORIZATION_FAILED = 30, 29
_UNKNOWN_TOPIC, _LEADER_NOT_AVAILABLE = 3, 5
_NOT_TOLD = "brokers before Kafka 2.3 do not report rights"
_TOPICS_PER_REQUEST = 1_000
_LAST_WITH_CLUSTER = 10
"""The last version of Metadata that shows the rights on the cluster."""


def fetch_group_rights(client: BrokerClient, group_ids: Collection[str]) -> dict[str, Rights]:
    """The rights on each group, whether it exists or not.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    if not client.supports(DescribeGroupsRequest, 3):
        return dict.fromkeys(group_ids, client.run(_untold, client, Deadline()))
    return client.run(_of_groups, client, sorted(group_ids), Deadline())


def fetch_topic_rights(client: BrokerClient, topics: Collection[str]) -> dict[str, Rights]:
    """The rights on each topic that exists, and none for each that the login may not describe.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    if not client.supports(MetadataRequest, 8):
        return dict.fromkeys(topics, client.run(_untold, client, Deadline()))
    return client.run(_of_topics, client, sorted(topics), Deadline())


def fetch_cluster_rights(client: BrokerClient) -> Rights:
    """The rights on the cluster; none without DESCRIBE on it.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    if not client.supports(MetadataRequest, 8):
        return client.run(_untold, client, Deadline())
    return client.run(_of_cluster, client, Deadline())


def fetch_unseen_groups(client: BrokerClient) -> str | None:
    """Return why a listing of all groups may lack some, as a sentence; None: it has all groups.

    ListGroups leaves out each group that the login may not DESCRIBE, without an error, unless the login may DESCRIBE
    the cluster (``KafkaApis.handleListGroupsRequest``).

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    rights = fetch_cluster_rights(client)
    if isinstance(rights, str):
        return f"Groups may be missing here: the rights of the login are not known ({rights}). {_GRANT}"
    if DESCRIBE in rights:
        return None
    return f"Groups may be missing here: without DESCRIBE on the cluster, Kafka hides groups from the login. {_GRANT}"


async def is_open(client: BrokerClient, deadline: Deadline) -> bool:
    """Return whether no broker has an authorizer, so that every login may do everything; not known counts as no."""
    return all(
        await client.gather([partial(_has_no_authorizer, client, each, deadline) for each in client.broker_ids()])
    )


async def _has_no_authorizer(client: BrokerClient, broker_id: int, deadline: Deadline) -> bool:
    request = DescribeAclsRequest(
        resource_type_filter=_CLUSTER,
        resource_name_filter="kafka-cluster",
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )
    try:
        response = await client.ask(request, broker_id, deadline)
    except (*RETRIABLE_FAILURES, kafka_errors.IncompatibleBrokerVersion):
        return False
    return bool(response.error_code == _SECURITY_DISABLED)


async def _untold(client: BrokerClient, deadline: Deadline) -> Rights:
    return EVERYTHING if await is_open(client, deadline) else _NOT_TOLD


async def _of_groups(client: BrokerClient, group_ids: Sequence[str], deadline: Deadline) -> dict[str, Rights]:
    found: dict[str, Rights] = {}
    coordinators = dict.fromkeys(group_ids, client.broker_ids()[0])  # Any broker refuses a group that is hidden.
    for start in range(0, len(group_ids), GROUPS_PER_REQUEST):
        coordinators |= await client.find_coordinators(list(group_ids[start : start + GROUPS_PER_REQUEST]), deadline)
    return found | await sweep(client, coordinators, _asked, _rights_in, found.__setitem__, deadline)


def _asked(group_ids: Sequence[str]) -> Any:
    return DescribeGroupsRequest(
        groups=list(group_ids), include_authorized_operations=True, min_version=3, max_version=5
    )


def _rights_in(response: Any) -> Iterator[tuple[str, int, Any]]:
    for each in response.groups:
        if each.error_code == _GROUP_AUTHORIZATION_FAILED:
            yield each.group_id, 0, NONE
        else:
            yield each.group_id, each.error_code, _rights(each)


async def _of_topics(client: BrokerClient, topics: Sequence[str], deadline: Deadline) -> dict[str, Rights]:
    found: dict[str, Rights] = {}
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        names = [
            MetadataRequest.MetadataRequestTopic(name=each) for each in topics[start : start + _TOPICS_PER_REQUEST]
        ]
        request = MetadataRequest(
            topics=names, allow_auto_topic_creation=False, include_topic_authorized_operations=True, min_version=8
        )
        for each in (await client.ask(request, None, deadline)).topics:
            if each.error_code in (0, _LEADER_NOT_AVAILABLE):
                found[each.name] = _rights(each)
            elif each.error_code == _TOPIC_AUTHORIZATION_FAILED:
                found[each.name] = NONE
            elif each.error_code != _UNKNOWN_TOPIC:
                found[each.name] = describe_code(each.error_code)
    return found


async def _of_cluster(client: BrokerClient, deadline: Deadline) -> Rights:
    request = MetadataRequest(
        topics=[],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        min_version=8,
        max_version=_LAST_WITH_CLUSTER,
    )
    return _rights(await client.ask(request, None, deadline))


def _rights(answer: Any) -> Rights:
    operations = answer.authorized_operations
    return "the broker did not report the rights" if operations is None else frozenset(operations)
