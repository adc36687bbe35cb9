"""Ask each node about itself, brokers and controllers: one connection to each, side by side.

ApiVersions shows a broker's mode and the flag of a migration (tag 3, ``ZkMigrationReady``), DescribeQuorum who leads
the controllers. A node that doesn't answer is a row with its error. KIP-866; facts by release 3.9.1.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.admin.cluster import DescribeLogDirsRequest, DescribeQuorumRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kit.clients.broker_client import BrokerClient, Deadline, describe_code, describe_refusal
from kit.clients.broker_login import AUTHENTICATION_FAILURES
from kit.clients.brokers import ClusterMetadata, metadata_of
from kit.clients.mechanisms import remedy
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, ReadError
from kit.tables.kraft import NodeFact, NodeSetting
from kit.tables.preflight import BrokerLogDir
from kit.text.addresses import host_and_port

BROKER, CONTROLLER = "broker", "controller"
ZOOKEEPER_MODE, MIGRATION_MODE, KRAFT_MODE = "zookeeper", "migration", "kraft"
NO_CONTROLLER = "is no controller, because it answers no quorum request. Name the controllers' own listener"
NODE_TIMEOUT_S = 5.0
_SIDE_BY_SIDE = 16
_VOTE, _DESCRIBE_QUORUM = 52, 55
_NOT_LEADER = 6
_METADATA_LOG = "__cluster_metadata"
_METADATA_VERSION = "metadata.version"
_BROKER_RESOURCE = 4
_SOURCES = {1: "topic", 2: "broker", 3: "brokers", 4: "file", 5: "default", 6: "logger"}


class NodeClient(BrokerClient):
    """A connection to one node. Controllers answer no Metadata, so none is asked for."""

    asks_metadata = False

    async def _bootstrap(self, timeout_ms: int) -> None:
        pass

    @property
    def node(self) -> Any:
        return self._manager.cluster.bootstrap_brokers()[0].node_id


def fetch_node_facts(
    settings: dict[str, Any],
    brokers: Iterable[tuple[str, int | None]],
    controllers: Iterable[str],
    timeout_s: float = NODE_TIMEOUT_S,
) -> list[NodeFact]:
    """One row per address. ``settings`` are kafka-python's, with the security of both; brokers are (address, id).

    A node has ``timeout_s`` to connect, and then to answer.
    """
    asked = [(address, BROKER, node_id) for address, node_id in brokers]
    asked += [(address, CONTROLLER, None) for address in controllers]
    with ThreadPoolExecutor(_SIDE_BY_SIDE, "nodes") as pool:
        return list(pool.map(partial(_ask_node, settings, timeout_s), asked))


def fetch_node_settings(settings: dict[str, Any], address: str, node_id: int) -> list[NodeSetting]:
    """Every setting of one node.

    Raises:
        ConnectError, ReadError: it did not answer, or refused.
    """
    node_settings: list[NodeSetting] = ask_node(settings, address, partial(_describe, node_id=node_id))
    return node_settings


def fetch_node_metadata(settings: dict[str, Any], address: str) -> ClusterMetadata:
    """The cluster as one broker knows it: another one may know more, or less.

    Raises:
        ConnectError, ReadError: it did not answer, or refused.
    """
    metadata: ClusterMetadata = ask_node(settings, address, _describe_cluster)
    return metadata


def fetch_voter_ends(settings: dict[str, Any], address: str) -> dict[int, int]:
    """Return how far each controller's log reaches, by the one at ``address``, which has to lead: id → end offset.

    Raises:
        ConnectError, ReadError: it did not answer, refused, or does not lead.
    """
    partition = ask_node(settings, address, _ask_quorum)
    if partition.error_code:
        raise ReadError(f"DescribeQuorum: {describe_refusal(partition.error_code, 'DESCRIBE')}")
    return {each.replica_id: each.log_end_offset for each in partition.current_voters}


def fetch_log_dirs(settings: dict[str, Any], brokers: Iterable[tuple[str, int]]) -> list[BrokerLogDir]:
    """A row per log dir of each broker (address, id); of one that does not report them a row with the error."""
    with ThreadPoolExecutor(_SIDE_BY_SIDE, "log dirs") as pool:
        return [row for rows in pool.map(partial(_log_dirs, settings), brokers) for row in rows]


def _log_dirs(settings: dict[str, Any], broker: tuple[str, int]) -> list[BrokerLogDir]:
    address, node_id = broker
    try:
        answer = ask_node(settings, address, _describe_log_dirs)
    except (OfframpError, kafka_errors.KafkaError, OSError, ValueError) as problem:
        return [BrokerLogDir(node_id, None, f"{address} did not report its log dirs: {problem}")]
    if answer.error_code or not answer.results:  # Before version 3 a refusal is an empty list.
        why = (
            describe_refusal(answer.error_code, "DESCRIBE")
            if answer.error_code
            else "no log dir was reported. Grant the login DESCRIBE on the cluster"
        )
        return [BrokerLogDir(node_id, None, f"{address}: DescribeLogDirs: {why}")]
    errors = [describe_code(each.error_code) if each.error_code else None for each in answer.results]
    return [BrokerLogDir(node_id, each.log_dir, error) for each, error in zip(answer.results, errors)]


async def _describe_log_dirs(client: NodeClient, deadline: Deadline) -> Any:
    """Describe the log directories, of no topic: only the directories."""
    return await client.ask(DescribeLogDirsRequest(topics=[], max_version=4), client.node, deadline)


async def _describe_cluster(client: NodeClient, deadline: Deadline) -> ClusterMetadata:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    return metadata_of(await client.ask(request, client.node, deadline))


def ask_node(settings: dict[str, Any], address: str, ask: Any, timeout_s: float = NODE_TIMEOUT_S) -> Any:
    """Ask one node on a connection of its own.

    Raises:
        ConnectError, AuthenticationFailed, ReadError: it did not answer, or refused.
    """
    given = settings | {"bootstrap_servers": [address]}
    try:
        client = NodeClient(given, timeout_s)
        try:
            return client.run(ask, client, Deadline(timeout_s))
        finally:
            client.close()
    except AUTHENTICATION_FAILURES as error:
        raise AuthenticationFailed(remedy(given, f"{error}: check security.kafka and its rights")) from error
    except (kafka_errors.KafkaError, OSError, ValueError) as error:
        raise ConnectError(f"{error}{_own_hint(given)}") from error


def _own_hint(settings: dict[str, Any]) -> str:
    """A server that asks for a certificate ends the handshake, by an alert that does not name the remedy."""
    if not settings.get("security_protocol", "").endswith("SSL") or "ssl_certfile" in settings:
        return ""
    return ". If the server asks for a client certificate, set certificate_file and key_file in security.kafka"


def _ask_node(settings: dict[str, Any], timeout_s: float, asked: tuple[str, str, int | None]) -> NodeFact:
    address, role, node_id = asked
    is_listening: bool | None = None
    try:
        is_listening = _is_taken(address, timeout_s)
        if is_listening is False:
            raise ConnectError("no server listens there")
        answers: dict[str, Any] = ask_node(settings, address, partial(_describe_node, role=role), timeout_s)
        error = f"{address}: {answers.pop('error')}" if "error" in answers else None
    except (OfframpError, OSError, ValueError) as problem:
        answers, error = {}, f"{address} does not answer as a {role}: {problem}"
    nothing = dict.fromkeys(
        ("mode", "has_flag", "metadata_version", "is_leader", "leader_id", "leader_epoch", "high_watermark")
    )
    return NodeFact(
        **{
            "address": address,
            "role": role,
            "node_id": node_id,
            **nothing,
            "voters": (),
            "observers": (),
            **answers,
            "source": "ApiVersions, DescribeQuorum" if role == CONTROLLER else "ApiVersions",
            "read_at": datetime.now(UTC),
            "error": error,
            "is_listening": is_listening,
        }
    )


def _is_taken(address: str, timeout_s: float) -> bool | None:
    """Return whether a server accepts the connection in time. False: its host refuses it; kafka-python would try on and
    on.
    """
    try:
        socket.create_connection(host_and_port(address), timeout_s).close()
    except ConnectionRefusedError:
        return False
    except TimeoutError:
        return None
    return True


async def _describe_node(client: NodeClient, deadline: Deadline, role: str) -> dict[str, Any]:
    versions = await client.ask(api_versions(), client.node, deadline)
    if versions.error_code:
        return {"error": f"ApiVersions: {describe_code(versions.error_code)}"}
    if role == CONTROLLER and not takes_votes(versions):
        return {"error": f"it {NO_CONTROLLER}"}
    has_quorum = any(each.api_key == _DESCRIBE_QUORUM for each in versions.api_keys)
    has_flag = bool(versions.zk_migration_ready)
    answers: dict[str, Any] = {
        "mode": KRAFT_MODE if has_quorum else MIGRATION_MODE if has_flag else ZOOKEEPER_MODE,
        "has_flag": has_flag,
        "metadata_version": finalized_level(versions),
    }
    return answers | (await _quorum(client, deadline) if role == CONTROLLER else {})


def api_versions() -> ApiVersionsRequest:
    """Return the requests that a node serves; version 3 shows the flag of a migration."""
    return ApiVersionsRequest(client_software_name="offramp", client_software_version="1", min_version=3, max_version=3)


def finalized_level(versions: Any) -> int | None:
    """The finalized ``metadata.version``; None of a node in ZooKeeper mode.

    A controller or broker that has read nothing of the metadata log yet names the least level, at the epoch -1.
    """
    levels = {each.name: each.max_version_level for each in versions.finalized_features or ()}
    is_known = (versions.finalized_features_epoch or 0) >= 0
    return levels.get(_METADATA_VERSION) if is_known else None


def takes_votes(versions: Any) -> bool:
    """Return whether this answer is a controller's: a broker in KRaft mode hands DescribeQuorum on and would pass for
    one.
    """
    return any(each.api_key == _VOTE for each in versions.api_keys)


async def _ask_quorum(client: NodeClient, deadline: Deadline) -> Any:
    """The answer on the one partition, or the answer that has an error itself."""
    topic = DescribeQuorumRequest.TopicData
    wanted = [topic(topic_name=_METADATA_LOG, partitions=[topic.PartitionData(partition_index=0)])]
    response = await client.ask(DescribeQuorumRequest(topics=wanted, max_version=1), client.node, deadline)
    (partition,) = response.topics[0].partitions if response.error_code == 0 else (response,)
    return partition


async def _quorum(client: NodeClient, deadline: Deadline) -> dict[str, Any]:
    partition = await _ask_quorum(client, deadline)
    if partition.error_code == _NOT_LEADER:
        leader = getattr(partition, "leader_id", -1)
        return {"is_leader": False, "leader_id": leader if leader >= 0 else None}
    if partition.error_code:
        return {"error": f"DescribeQuorum: {describe_refusal(partition.error_code, 'DESCRIBE')}"}
    return {
        "is_leader": True,
        "node_id": partition.leader_id,
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "voters": tuple(sorted(each.replica_id for each in partition.current_voters)),
        "observers": tuple(sorted(each.replica_id for each in partition.observers)),
    }


async def _describe(client: NodeClient, deadline: Deadline, node_id: int) -> list[NodeSetting]:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    wanted: Sequence[Any] = [
        resource(resource_type=_BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=None)
    ]
    request = DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)
    response = await client.ask(request, client.node, deadline)
    (result,) = response.results
    if result.error_code:
        raise ReadError(f"node {node_id} did not report its settings: {describe_code(result.error_code)}")
    return [
        NodeSetting(
            node_id,
            each.name,
            None if each.is_sensitive else each.value,
            _SOURCES.get(each.config_source, str(each.config_source)),
            bool(each.is_sensitive),
        )
        for each in result.configs
    ]
