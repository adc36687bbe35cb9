"""The metadata log of a live cluster, from the controller that leads the quorum: Fetch and FetchSnapshot.

A reader is no replica (replica id -1), so the quorum doesn't learn of it: it adds no observer and no vote. With an
authorizer on, both requests need ClusterAction on the cluster.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.consumer.fetch import FetchRequest

from kit.clients.broker_client import RETRIABLE_CODES, BrokerClient, Deadline, describe_code
from kit.clients.broker_login import AUTHENTICATION_FAILURES
from kit.clients.cluster import CONNECT_TIMEOUT_S, kafka_settings
from kit.clients.kafka_messages import messages_of
from kit.clients.mechanisms import remedy
from kit.clients.nodes import NO_CONTROLLER, api_versions, takes_votes
from kit.errors import AuthenticationFailed, ConnectError, ReadError, WrongCluster
from kit.kraft.metadata_log.batches import whole_batches
from kit.kraft.metadata_log.files import CHECKPOINT, FETCHED, LogFile
from kit.profile import Profile
from kit.profile.security.refusals import kafka_remedy, who
from kit.profile.security.settings import KafkaSecurity, Security
from kit.text.addresses import address_of

TOPIC = "__cluster_metadata"
TOPIC_ID = uuid.UUID(int=1)
"""Kafka's fixed id of the topic (``Uuid.METADATA_TOPIC_ID``)."""
_FETCH_BYTES = 8 * 2**20
_DENIED = (29, 31)
_INCONSISTENT_CLUSTER_ID = 104
_MOST_LEADERS = 5
"""The limit for one read: an election takes a second, and most reads take less."""
_FETCH_VERSION = 13
"""The first that names topics by id; by its name a controller refuses this one (observed, 3.9.1)."""

FetchSnapshotRequest, FetchSnapshotResponse = messages_of("FetchSnapshot", "kit.kraft.metadata_log")


@dataclass(frozen=True)
class Fetched:
    """The records that a controller sent: a checkpoint if it has one, and the log up to ``until``, the high
    watermark.
    """

    files: tuple[LogFile, ...]
    until: int


@dataclass(frozen=True)
class Controllers:
    """``host:port`` of a cluster's controllers, comma between, on their controller listener; and its security.

    ``cluster_id``: whose they have to be; None: whosever they are.
    """

    servers: str
    security: KafkaSecurity = field(default_factory=KafkaSecurity)
    timeout_s: float = CONNECT_TIMEOUT_S
    cluster_id: str | None = None

    def fetch(self) -> Fetched:
        """Everything the leader has.

        Raises:
            ConnectError: no controller answered in time, none leads, or another one leads repeatedly.
            AuthenticationFailed: one refused the login.
            ReadError: the leader refused, for example because a right is missing.
            WrongCluster: they are another cluster's.
        """
        client = self._connect()
        client.cluster_id = self.cluster_id
        try:
            fetched: Fetched = client.run(client.fetch, self.servers, Deadline())
        finally:
            client.close()
        return fetched

    def _connect(self) -> _ControllerClient:
        profile = Profile(
            name="controllers",
            file=Path(),
            bootstrap_servers=self.servers,
            security=Security(kafka=self.security),
        )
        given = kafka_settings(profile)
        try:
            return _ControllerClient(given, self.timeout_s)
        except AUTHENTICATION_FAILURES as error:
            refused = f"controllers {self.servers}: {who(self.security)} was refused"
            otherwise = f"{error}; {kafka_remedy(self.security)}"
            raise AuthenticationFailed(f"{refused}: {remedy(given, otherwise)}") from None
        except (kafka_errors.KafkaError, OSError, ValueError) as error:
            raise ConnectError(
                f"controllers {self.servers}: none answered within {self.timeout_s:g} s ({error}); check the "
                "addresses of the controller listener, and its security"
            ) from None


class _LeaderChanged(Exception):
    """The node that was asked does not lead in that epoch any more."""


class _ControllerClient(BrokerClient):
    """Connections to controllers. They don't answer Metadata, so the servers given are all that it knows."""

    cluster_id: str | None = None

    asks_metadata = False

    async def _bootstrap(self, timeout_ms: int) -> None:
        pass

    async def fetch(self, servers: str, deadline: Deadline) -> Fetched:
        """The leader's checkpoint and log; all of the next leader's if an election comes between."""
        refusal = None
        for attempt in range(_MOST_LEADERS):
            node, leader_epoch = await self._leader(servers, deadline)
            try:
                return await self._fetch_all(node, leader_epoch, servers, deadline)
            except _LeaderChanged as changed:
                refusal = changed
                await self.pause(attempt)
        raise ConnectError(
            f"the quorum of {servers} elected another leader during each of {_MOST_LEADERS} attempts to read {TOPIC} "
            f"({refusal}). Find out why the controllers elect leaders so often, then run the command again"
        )

    async def _fetch_all(self, node: Any, leader_epoch: int, servers: str, deadline: Deadline) -> Fetched:
        first = await self._fetch(node, leader_epoch, 0, 0, deadline)
        checkpoint, start, epoch = None, 0, 0
        if first.snapshot_id is not None and first.snapshot_id.end_offset >= 0:
            checkpoint = await self._snapshot(node, leader_epoch, first.snapshot_id, servers, deadline)
            start, epoch = first.snapshot_id.end_offset, first.snapshot_id.epoch
        data, until = await self._log(node, leader_epoch, start, epoch, deadline)
        log = LogFile(f"{servers} {start:020}.log", FETCHED, start, data=data)
        return Fetched((checkpoint, log) if checkpoint else (log,), until)

    async def _log(self, node: Any, leader_epoch: int, at: int, epoch: int, deadline: Deadline) -> tuple[bytes, int]:
        """The bytes from an offset to the high watermark, and that."""
        data = bytearray()
        while True:
            answer = await self._fetch(node, leader_epoch, at, epoch, deadline)
            records = bytes(answer.records or b"")
            whole = whole_batches(records)
            if at >= answer.high_watermark:
                return bytes(data), answer.high_watermark
            if whole is None:  # The log was cut or replaced since the first observation.
                raise ReadError(f"the controller sent no records of {TOPIC} after offset {at}. Run the command again")
            n_bytes, at, epoch = whole
            data += records[:n_bytes]
            deadline.renew()

    async def _leader(self, servers: str, deadline: Deadline) -> tuple[Any, int]:
        """The node that leads the quorum, and its epoch; asked again while an election is in progress."""
        attempt = 0
        while True:
            refusals = []
            for broker in self._manager.cluster.bootstrap_brokers():
                answer = await self._quorum(broker.node_id)
                if isinstance(answer, str):
                    refusals.append(f"{address_of(broker.host, broker.port)} {answer}")
                else:
                    return broker.node_id, answer
            if not deadline.allows(attempt) or all(each.endswith(NO_CONTROLLER) for each in refusals):
                raise ConnectError(f"none of {servers} leads the quorum: {'; '.join(refusals)}")
            await self.pause(attempt)
            attempt += 1

    async def _quorum(self, node: Any) -> int | str:
        """The epoch if this node leads, else why it doesn't."""
        topic = DescribeQuorumRequest.TopicData
        wanted = [topic(topic_name=TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
        request = DescribeQuorumRequest(topics=wanted, max_version=1)
        try:
            if not takes_votes(await self.send(api_versions(), node)):
                return NO_CONTROLLER
            response = await self.send(request, node)
        except kafka_errors.KafkaError as error:
            return f"did not answer ({error})"
        (partition,) = response.topics[0].partitions if response.error_code == 0 else (response,)
        if partition.error_code == 0:
            return int(partition.leader_epoch)
        if partition.error_code in RETRIABLE_CODES:
            return describe_code(partition.error_code)
        raise ReadError(_refused("DescribeQuorum", partition.error_code))

    async def _fetch(self, node: Any, leader_epoch: int, at: int, last_epoch: int, deadline: Deadline) -> Any:
        """One answer about the partition; ``last_epoch`` is that of the record before ``at``."""
        topic = FetchRequest.FetchTopic
        wanted = topic.FetchPartition(
            partition=0,
            current_leader_epoch=leader_epoch,
            fetch_offset=at,
            last_fetched_epoch=last_epoch,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[topic(topic_id=TOPIC_ID, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id="",
            cluster_id=self.cluster_id,
            min_version=_FETCH_VERSION,
            max_version=_FETCH_VERSION,
        )
        response = await self.ask(request, node, deadline)
        (partition,) = response.responses[0].partitions if response.error_code == 0 else (response,)
        if partition.error_code == _INCONSISTENT_CLUSTER_ID:
            raise WrongCluster(
                f"the controllers in the profile belong to another cluster than {self.cluster_id}. Correct "
                "[clusters.NAME.kraft] controllers"
            )
        _check("Fetch", partition.error_code)
        return partition

    async def _snapshot(self, node: Any, leader_epoch: int, wanted: Any, servers: str, deadline: Deadline) -> LogFile:
        data, size = bytearray(), 1
        topic = FetchSnapshotRequest.TopicSnapshot
        partition = topic.PartitionSnapshot
        while len(data) < size:
            snapshot = partition.SnapshotId(end_offset=wanted.end_offset, epoch=wanted.epoch)
            part = partition(partition=0, current_leader_epoch=leader_epoch, snapshot_id=snapshot, position=len(data))
            request = FetchSnapshotRequest(
                replica_id=-1, max_bytes=_FETCH_BYTES, topics=[topic(name=TOPIC, partitions=[part])], max_version=0
            )
            response = await self.ask(request, node, deadline)
            (piece,) = response.topics[0].partitions if response.error_code == 0 else (response,)
            _check("FetchSnapshot", piece.error_code)
            if not piece.unaligned_records:
                break
            size = piece.size
            data += piece.unaligned_records
            deadline.renew()
        name = f"{servers} {wanted.end_offset:020}-{wanted.epoch:010}.checkpoint"
        return LogFile(name, CHECKPOINT, wanted.end_offset, wanted.epoch, bytes(data))


def _check(request: str, code: int) -> None:
    if code in RETRIABLE_CODES:
        raise _LeaderChanged(f"{request}: {describe_code(code)}")
    if code:
        raise ReadError(_refused(request, code))


def _refused(request: str, code: int) -> str:
    hint = "; it needs the right ClusterAction (DescribeQuorum: Describe) on the cluster" if code in _DENIED else ""
    return f"the controller refused {request} of {TOPIC}: {describe_code(code)}{hint}"
