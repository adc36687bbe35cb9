"""Topics that the login can't see: OffsetFetch and Metadata of all topics leave them out, without an error.

Kafka filters both answers by the right to DESCRIBE each topic. DescribeLogDirs is not filtered by it: it needs DESCRIBE
on the cluster and names the topics of every log of a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest
from kafka.protocol.metadata import MetadataRequest
from kazoo.client import KazooClient

from kit.clients.broker_client import RETRIABLE_FAILURES, BrokerClient, Deadline, describe_code
from kit.clients.brokers import ask_metadata, metadata_of
from kit.groups.read.rights import is_open
from kit.groups.read.zookeeper import BrokersTree, fetch_brokers
from kit.text.naming import shortened
from kit.text.quantity import quantity

_UNKNOWN_TOPIC, _TOPIC_AUTHORIZATION_FAILED = 3, 29
_NAMES_PER_REQUEST = 1_000
_NOT_FOR_CONSUMERS = {"__cluster_metadata"}
"""The controllers' log: consumers can't read it, and Metadata does not list it."""
_SHOWN = 3
_WITH_FENCED = 2
_UNPROVEN = (
    "If brokers are stopped: a topic that the login may not describe, and that only these brokers have, would not be"
    " found"
)
_GRANT = "grant the login DESCRIBE on all topics and on the cluster"


@dataclass(frozen=True, slots=True)
class TopicSight:
    """``hidden``: topics that the login may not describe. ``unknown``: why these are not known, None if they are.

    ``unproven``: which hidden topics would not be found, as a sentence; None: each would be.
    """

    hidden: tuple[str, ...] = ()
    unknown: str | None = None
    unproven: str | None = field(default=None, compare=False)

    @property
    def is_whole(self) -> bool | None:
        """Return whether the login can see every topic; None: not known."""
        return None if self.unknown is not None else not self.hidden

    @property
    def sentence(self) -> str:
        """Return what is hidden or unknown, and what to do. Or that the login can see every topic."""
        if self.unknown is not None:
            return f"Whether the login can see every topic is not known: {self.unknown}. To prove it, {_GRANT}"
        if self.hidden:
            named = shortened(map(repr, self.hidden), _SHOWN)
            count = quantity(len(self.hidden), "topic")
            seen = "Offsets of hidden topics can't be read"
            return f"The login may not describe {count}: {named}. {seen}. To read them, {_GRANT}"
        return "The login can see every topic."


def fetch_sight(client: BrokerClient, zookeeper: KazooClient | None = None) -> TopicSight:
    """Return which topics the login can't see.

    Without an authorizer on every broker nothing is hidden. Otherwise the topics of every broker's log directories are
    compared with those of Metadata, and Metadata is asked for the missing ones by name: only an answer
    TOPIC_AUTHORIZATION_FAILED counts as hidden, so a topic that was deleted meanwhile does not. A replica on a broker
    that does not run, a broker without an answer and a log directory that is offline make the sight unknown.

    A topic whose replicas all are on stopped brokers is in no log directory that can be read. ZooKeeper lists it where
    the brokers are registered there. Brokers of Kafka ≥ 4.1 list the stopped brokers (DescribeCluster ≥ 2, KIP-1073),
    and one of those makes the sight unknown. Otherwise such a topic would not be found, and the sight is ``unproven``.

    Raises:
        ConnectError, ReadError: the brokers or ZooKeeper did not answer, or refused.
    """
    registered = None if zookeeper is None else fetch_brokers(zookeeper)
    return client.run(_fetch_sight, client, registered, Deadline())


def fetch_undescribable(client: BrokerClient, topics: Collection[str]) -> set[str]:
    """Return the topics of ``topics`` that the login may not describe, whether they exist or not.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    return client.run(_undescribable, client, sorted(topics), Deadline()) if topics else set()


def fetch_listed(client: BrokerClient, zookeeper: KazooClient | None, topics: Collection[str]) -> set[str]:
    """Return the topics of ``topics`` that at least one broker lists, or ZooKeeper where the brokers are registered

    One broker's answer does not prove that a topic does not exist: with ZooKeeper, a broker that has just started
    knows no topic until the controller has sent it the topics.

    Raises:
        ConnectError, ReadError: a broker or ZooKeeper did not answer, or refused.
    """
    if not topics:
        return set()
    found = client.run(_listed, client, sorted(topics), Deadline())
    registered = None if zookeeper is None else fetch_brokers(zookeeper)
    if registered is not None and registered.endpoints.keys() >= set(client.broker_ids()):
        found |= registered.topics.intersection(topics)
    return found


async def _fetch_sight(client: BrokerClient, registered: BrokersTree | None, deadline: Deadline) -> TopicSight:
    await client.refresh_metadata()
    broker_ids = client.broker_ids()
    if await is_open(client, deadline):
        return TopicSight()
    listed = await client.gather([partial(_logged_topics, client, each, deadline) for each in broker_ids])
    if (problem := next((each for each in listed if isinstance(each, str)), None)) is not None:
        return TopicSight(unknown=problem)
    logged, unproven = set[str]().union(*listed), None
    if registered is not None and registered.endpoints.keys() >= set(broker_ids) and registered.topics:
        logged |= registered.topics
    elif client.supports(DescribeClusterRequest, _WITH_FENCED):
        stopped = await _stopped(client, deadline)
        if stopped:
            return TopicSight(unknown=f"broker {min(stopped)} does not run, so its topics are not known. Start it")
    else:
        unproven = _UNPROVEN
    return replace(await _compared(client, logged, set(broker_ids), deadline), unproven=unproven)


async def _stopped(client: BrokerClient, deadline: Deadline) -> set[int]:
    """The brokers that are registered and don't run (KIP-1073)."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True, min_version=_WITH_FENCED
    )
    response = await client.ask(request, None, deadline)
    return {each.broker_id for each in response.brokers if each.is_fenced}


async def _compared(client: BrokerClient, logged: set[str], asked: set[int], deadline: Deadline) -> TopicSight:
    response = await ask_metadata(client, MetadataRequest(topics=None, allow_auto_topic_creation=False), deadline)
    metadata = metadata_of(response)
    others = {each.broker_id for each in metadata.brokers} - asked
    if others:
        return TopicSight(unknown=f"broker {min(others)} has replicas and was not asked for its topics")
    visible = {each.topic for each in metadata.topic_partitions}
    missing = logged - visible - _NOT_FOR_CONSUMERS
    return TopicSight(tuple(sorted(await _undescribable(client, sorted(missing), deadline))))


async def _logged_topics(client: BrokerClient, broker_id: int, deadline: Deadline) -> set[str] | str:
    """Every topic of which the broker has a log; or why that is not known."""
    try:
        response = await client.ask(DescribeLogDirsRequest(topics=None), broker_id, deadline)
    except (*RETRIABLE_FAILURES, kafka_errors.IncompatibleBrokerVersion) as error:
        return f"broker {broker_id} did not list its log directories: {error}"
    codes = [code for code in (response.error_code, *(each.error_code for each in response.results)) if code]
    if codes:
        return f"broker {broker_id} did not list its log directories: {describe_code(codes[0])}"
    if not response.results:  # Before version 3 of the answer, a refusal is an empty list.
        return f"broker {broker_id} listed no log directory"
    return {topic.name for each in response.results for topic in each.topics}


async def _undescribable(client: BrokerClient, topics: list[str], deadline: Deadline) -> set[str]:
    found = set[str]()
    for chunk in _chunks(topics):
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in chunk]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False, min_version=4)
        response = await ask_metadata(client, request, deadline)
        found |= {each.name for each in response.topics if each.error_code == _TOPIC_AUTHORIZATION_FAILED}
    return found


async def _listed(client: BrokerClient, topics: list[str], deadline: Deadline) -> set[str]:
    await client.refresh_metadata()
    found = set[str]()
    for names in _chunks(topics):
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False, min_version=4)
        answers = await client.gather([partial(client.ask, request, each, deadline) for each in client.broker_ids()])
        found |= {it.name for each in answers for it in each.topics if it.error_code != _UNKNOWN_TOPIC}
    return found


def _chunks(topics: list[str]) -> Iterable[list[str]]:
    return (topics[start : start + _NAMES_PER_REQUEST] for start in range(0, len(topics), _NAMES_PER_REQUEST))
