"""Add up the records of a metadata log: Kafka's ``MetadataImage``, replayed as its deltas replay it.

Rules (``PartitionRegistration.merge``, ``TopicsDelta``, ``ClusterDelta`` and their neighbours in Kafka's metadata):
a PartitionChange raises the partition epoch by one, and the leader epoch by one when it names a leader, the same one
too (-2: not named; -1: none); RemoveTopic takes the topic's configs along; a setting without value, a quota with
``remove``, and a feature at level 0 are gone; a change of a broker counts only for its registration's epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from kit.kraft.metadata_log.records import Record
from kit.kraft.metadata_log.transactions import COMMITTED, MARKERS, NONE
from kit.text.quantity import quantity

if TYPE_CHECKING:
    from kit.kraft.metadata_log.folding import Folded

Body: TypeAlias = dict[str, Any]
Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""The entity of a quota: entity type and name, by type; the name None is the default."""
_UNCHANGED = -2
_FENCED = 1
TOPIC_CONFIG = 2
METADATA_VERSION = "metadata.version"
_MOST_PROBLEMS = 100


@dataclass(slots=True)
class Partition:
    """One partition; ``leader`` is -1 where there is none."""

    replicas: list[int]
    isr: list[int]
    removing: list[int]
    adding: list[int]
    leader: int
    recovery: int
    leader_epoch: int
    epoch: int
    elr: list[int]
    last_known_elr: list[int]
    directories: list[str]
    offset: int


@dataclass(slots=True)
class Topic:
    """One topic and its partitions by number."""

    name: str
    offset: int
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass(slots=True)
class Value:
    """A value, and the offset of the record that set it; ``fields`` are the record's."""

    fields: Body
    offset: int


class Unreplayable(Exception):
    """The record does not fit what is before it."""


@dataclass(repr=False)
class Image:
    """Everything a cluster's metadata log reports, as of ``offset``, the last record of the log in it (-1: none).

    Partitions may be there as columns (``folded``) until a caller asks for ``topics``: then they are read plainly, by
    ``unfold``. ``heads`` are the topics whether or not they have their partitions.

    Keys: topics by id; configs by (resource type, name), then key; quotas by entity, then key; credentials by (user,
    mechanism); ACLs and tokens by id; features by name; registrations by node id. ``stopped`` gives the reason what is
    behind ``offset`` could not be replayed (None: it was replayed to its end); ``written_ms``: when that one was
    written; ``problems`` are single records that fit nothing, and records of a newer Kafka, whose effect is missing.
    """

    heads: dict[str, Topic] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, Value]] = field(default_factory=dict)
    quotas: dict[Entity, dict[str, Value]] = field(default_factory=dict)
    credentials: dict[tuple[str, int], Value] = field(default_factory=dict)
    acls: dict[str, Value] = field(default_factory=dict)
    tokens: dict[str, Value] = field(default_factory=dict)
    features: dict[str, Value] = field(default_factory=dict)
    brokers: dict[int, Value] = field(default_factory=dict)
    controllers: dict[int, Value] = field(default_factory=dict)
    producer_ids: Value | None = None
    migration_state: Value | None = None
    offset: int = -1
    epoch: int = -1
    written_ms: int = -1
    stopped: str | None = None
    problems: list[str] = field(default_factory=list)
    folded: Folded | None = None
    unfold: Callable[[], Mapping[str, Topic]] | None = None

    def __repr__(self) -> str:
        return (
            f"Image as of offset {self.offset}, epoch {self.epoch}: {quantity(len(self.heads), 'topic')}, "
            f"{quantity(self.n_partitions, 'partition')}, {quantity(len(self.brokers), 'broker')}, "
            f"{quantity(len(self.controllers), 'controller')}."
        )

    def topic(self, name: str) -> Topic | None:
        """The topic of that name."""
        return next((each for each in self.topics.values() if each.name == name), None)

    @property
    def topics(self) -> dict[str, Topic]:
        """By id, with their partitions."""
        if self.unfold is not None:
            self.folded, unfold, self.unfold = None, self.unfold, None
            self.heads = dict(unfold())
        return self.heads

    @property
    def n_partitions(self) -> int:
        if self.folded is not None:
            return len(self.folded.rows)
        return sum(len(each.partitions) for each in self.topics.values())

    def replay(self, records: Iterable[tuple[Record, str]], at_offset: int | None = None) -> None:
        """Apply records with the fate of their transaction, until one can't be read.

        ``at_offset`` means the offset of each record of a checkpoint.
        """
        for record, transaction in records:
            if record.error is not None and record.is_known and record.api_key not in MARKERS:
                self.stopped = f"after offset {self.offset}: {record.error}"
                return
            self.place(record, at_offset)
            if transaction in (NONE, COMMITTED):
                self._apply(record)

    def place(self, record: Record, at_offset: int | None = None) -> None:
        """The image is as of this record, or of ``at_offset``."""
        if record.offset is None:
            return
        self.offset = record.offset if at_offset is None else at_offset
        self.epoch = self.epoch if record.epoch is None else record.epoch
        if record.name == "SnapshotHeader" and record.body is not None:
            self.written_ms = record.body["lastContainedLogTimestamp"]
        elif at_offset is None:
            self.written_ms = record.written_ms

    def _apply(self, record: Record) -> None:
        try:
            if record.error is not None:
                raise Unreplayable(record.error)
            if record.name in _RULES and record.body is not None:
                _RULES[record.name](self, record.body)
        except Unreplayable as problem:
            if len(self.problems) < _MOST_PROBLEMS:
                self.problems.append(f"offset {self.offset}: {problem}")

    def _topic(self, body: Body) -> Topic:
        if body["topicId"] not in self.topics:
            raise Unreplayable(f"there is no topic of id {body['topicId']}")
        return self.topics[body["topicId"]]

    def _on_topic(self, body: Body) -> None:
        self.topics[body["topicId"]] = Topic(body["name"], self.offset)

    def _on_remove_topic(self, body: Body) -> None:
        gone = self._topic(body)
        del self.topics[body["topicId"]]
        self.configs.pop((TOPIC_CONFIG, gone.name), None)

    def _on_partition(self, body: Body) -> None:
        self._topic(body).partitions[body["partitionId"]] = Partition(
            replicas=body["replicas"],
            isr=body["isr"],
            removing=body["removingReplicas"],
            adding=body["addingReplicas"],
            leader=body["leader"],
            recovery=body.get("leaderRecoveryState", 0),
            leader_epoch=body["leaderEpoch"],
            epoch=body["partitionEpoch"],
            elr=body.get("eligibleLeaderReplicas", []),
            last_known_elr=body.get("lastKnownElr", []),
            directories=body.get("directories", []),
            offset=self.offset,
        )

    def _on_partition_change(self, body: Body) -> None:
        topic = self._topic(body)
        partition = topic.partitions.get(body["partitionId"])
        if partition is None:
            raise Unreplayable(f"topic {topic.name!r} has no partition {body['partitionId']}")
        self._change(partition, body)

    def _change(self, partition: Partition, body: Body) -> None:
        for key, name in _CHANGES.items():
            if key in body:
                setattr(partition, name, body[key])
        if body.get("leader", _UNCHANGED) != _UNCHANGED:
            partition.leader_epoch += 1
        partition.epoch += 1
        partition.offset = self.offset

    def _on_clear_elr(self, body: Body) -> None:
        """Only partitions that have any are changed; no name means every topic."""
        topics = [each for each in self.topics.values() if body["topicName"] in ("", each.name)]
        if body["topicName"] and not topics:
            raise Unreplayable(f"there is no topic {body['topicName']!r}")
        for partition in (each for topic in topics for each in topic.partitions.values()):
            if partition.elr or partition.last_known_elr:
                self._change(partition, {"eligibleLeaderReplicas": [], "lastKnownElr": []})

    def _on_config(self, body: Body) -> None:
        self._set(self.configs, (body["resourceType"], body["resourceName"]), body["name"], body, body["value"] is None)

    def _on_client_quota(self, body: Body) -> None:
        names = {each["entityType"]: each["entityName"] for each in body["entity"]}
        entity = tuple((kind, names[kind]) for kind in sorted(names))
        self._set(self.quotas, entity, body["key"], body, body["remove"])

    def _set(self, of: dict[Any, dict[str, Value]], owner: Any, key: str, body: Body, is_removed: bool) -> None:
        """One key of an owner that is there as long as it has keys."""
        values = of.setdefault(owner, {})
        if is_removed:
            values.pop(key, None)
        else:
            values[key] = Value(body, self.offset)
        if not values:
            del of[owner]

    def _on_credential(self, body: Body) -> None:
        self.credentials[body["name"], body["mechanism"]] = Value(body, self.offset)

    def _on_remove_credential(self, body: Body) -> None:
        self.credentials.pop((body["name"], body["mechanism"]), None)

    def _on_acl(self, body: Body) -> None:
        self.acls[body["id"]] = Value(body, self.offset)

    def _on_remove_acl(self, body: Body) -> None:
        if self.acls.pop(body["id"], None) is None:
            raise Unreplayable(f"there is no ACL of id {body['id']}")

    def _on_token(self, body: Body) -> None:
        self.tokens[body["tokenId"]] = Value(body, self.offset)

    def _on_remove_token(self, body: Body) -> None:
        self.tokens.pop(body["tokenId"], None)

    def _on_feature(self, body: Body) -> None:
        if body["featureLevel"] == 0 and body["name"] != METADATA_VERSION:
            self.features.pop(body["name"], None)
        else:
            self.features[body["name"]] = Value(body, self.offset)

    def _on_producer_ids(self, body: Body) -> None:
        self.producer_ids = Value(body, self.offset)

    def _on_migration_state(self, body: Body) -> None:
        self.migration_state = Value(body, self.offset)

    def _on_register_broker(self, body: Body) -> None:
        self.brokers[body["brokerId"]] = Value(dict(body), self.offset)

    def _on_unregister_broker(self, body: Body) -> None:
        self.brokers.pop(body["brokerId"], None)

    def _on_register_controller(self, body: Body) -> None:
        self.controllers[body["controllerId"]] = Value(body, self.offset)

    def _on_fence(self, body: Body) -> None:
        self._change_broker(body["id"], body["epoch"], {"fenced": True})

    def _on_unfence(self, body: Body) -> None:
        self._change_broker(body["id"], body["epoch"], {"fenced": False})

    def _on_broker_change(self, body: Body) -> None:
        changes: Body = {}
        if "fenced" in body:
            changes["fenced"] = body["fenced"] == _FENCED
        if "inControlledShutdown" in body:
            changes["inControlledShutdown"] = True
        if body.get("logDirs"):
            changes["logDirs"] = body["logDirs"]
        self._change_broker(body["brokerId"], body["brokerEpoch"], changes)

    def _change_broker(self, node_id: int, epoch: int, changes: Body) -> None:
        broker = self.brokers.get(node_id)
        if broker is None:
            raise Unreplayable(f"broker {node_id} is not registered")
        if broker.fields["brokerEpoch"] != epoch:
            raise Unreplayable(f"broker {node_id} is registered with epoch {broker.fields['brokerEpoch']}, not {epoch}")
        broker.fields |= changes
        broker.offset = self.offset


_CHANGES = {
    "isr": "isr",
    "leader": "leader",
    "replicas": "replicas",
    "removingReplicas": "removing",
    "addingReplicas": "adding",
    "leaderRecoveryState": "recovery",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
    "directories": "directories",
}
"""Fields of a PartitionChange, which has those that change, by what they are called here."""

_RULES: dict[str, Callable[[Image, Body], None]] = {
    "RegisterBroker": Image._on_register_broker,
    "UnregisterBroker": Image._on_unregister_broker,
    "Topic": Image._on_topic,
    "Partition": Image._on_partition,
    "Config": Image._on_config,
    "PartitionChange": Image._on_partition_change,
    "FenceBroker": Image._on_fence,
    "UnfenceBroker": Image._on_unfence,
    "RemoveTopic": Image._on_remove_topic,
    "DelegationToken": Image._on_token,
    "UserScramCredential": Image._on_credential,
    "FeatureLevel": Image._on_feature,
    "ClientQuota": Image._on_client_quota,
    "ProducerIds": Image._on_producer_ids,
    "BrokerRegistrationChange": Image._on_broker_change,
    "AccessControlEntry": Image._on_acl,
    "RemoveAccessControlEntry": Image._on_remove_acl,
    "ZkMigrationState": Image._on_migration_state,
    "RemoveUserScramCredential": Image._on_remove_credential,
    "RemoveDelegationToken": Image._on_remove_token,
    "RegisterController": Image._on_register_controller,
    "ClearElr": Image._on_clear_elr,
}
"""Every record type but NoOp and the marks of transactions."""
