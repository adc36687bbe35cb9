"""Sixty groups of every kind at rest: what each has committed, who its members are, what its logs hold.

Nothing is produced, committed, joined or left while a test looks, so that all figures but ages is stalled.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, ShareConsumer, TopicPartition
from confluent_kafka.cimpl import NewTopic
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kazoo.client import KazooClient

from kit import connect
from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.cluster import Cluster
from kit.groups.read.coordinator import fetch_groups
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import commit
from tests.servers.streams_member import heartbeat

PREFIX = "fig-"
PLAIN, DELETED, EMPTIED, COMPACTED, MARKED, BARE = (
    f"{PREFIX}{name}" for name in ("plain", "deleted", "emptied", "compacted", "marked", "bare")
)
PARTITIONS = {PLAIN: 3, DELETED: 2, EMPTIED: 2, COMPACTED: 1, MARKED: 1, BARE: 2}
N_RECORDS = 40
"""The number of records of each partition of the dated topics, a minute apart."""
MINUTE_MS = 60_000
Offsets = Mapping[str, Mapping[int, int]]
"""Topic → partition → offset."""
NEWER = {"group.protocol": "consumer"}


@dataclass(frozen=True)
class Group:
    """``offsets`` in Kafka, ``znodes`` in ZooKeeper; ``settings`` of each of its ``n_members`` consumers of ``topics``.

    ``kind``: how its members join: ``consumer``, ``share``, ``streams``, ``connect``, ``assigned`` (no member),
    ``znode`` (registrations and owners in ZooKeeper).
    """

    name: str
    offsets: Offsets = field(default_factory=dict)
    znodes: Offsets = field(default_factory=dict)
    n_members: int = 0
    topics: tuple[str, ...] = (PLAIN,)
    kind: str = "consumer"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group_id(self) -> str:
        return PREFIX + self.name


def everywhere(topic: str, n_partitions: int, offset: int) -> Offsets:
    return {topic: dict.fromkeys(range(n_partitions), offset)}


AT_20 = everywhere(PLAIN, 3, 20)
WITHOUT_MEMBERS = [
    *(Group(f"at-{offset}", everywhere(PLAIN, 3, offset)) for offset in (0, 1, 7, 13, 21, 33, 39, 40)),
    Group("in-part", {PLAIN: {0: 5}}),
    Group("beyond", everywhere(PLAIN, 3, 5_000)),
    Group("beyond-in-part", {PLAIN: {0: 0, 1: 40, 2: 45}}),
    Group("beyond-bare", {BARE: {0: 3}}),
    Group("bare", {BARE: {0: 0, 1: 0}}),
    *(Group(f"deleted-{offset}", everywhere(DELETED, 2, offset)) for offset in (0, 10, 25, 30, 40)),
    Group("deleted-both", {DELETED: {0: 10, 1: 40}}),
    Group("emptied", {EMPTIED: {0: 12}}),
    Group("emptied-at-end", {EMPTIED: {0: 40}}),
    Group("emptied-in-part", {EMPTIED: {0: 12, 1: 12}}),
    *(Group(f"compacted-{offset}", {COMPACTED: {0: offset}}) for offset in (0, 2, 11, 38, 40)),
    *(Group(f"marked-{offset}", {MARKED: {0: offset}}) for offset in (0, 4, 10, 11, 13, 16, 17)),
    Group("two-topics", {**AT_20, DELETED: {1: 12}}),
    Group("left", n_members=1, kind="left"),
]
CLASSIC = [
    Group("classic", AT_20, n_members=1),
    Group("classic-two", AT_20, n_members=2, settings={"partition.assignment.strategy": "roundrobin"}),
    Group("classic-idle", AT_20, n_members=4),
    Group("classic-read", everywhere(PLAIN, 3, 40), n_members=1),
    Group("classic-cooperative", AT_20, n_members=2, settings={"partition.assignment.strategy": "cooperative-sticky"}),
    Group("classic-in-part", {PLAIN: {1: 8}}, n_members=1),
    Group("classic-bare", n_members=1),
    Group("classic-two-topics", {**AT_20, DELETED: {0: 3}}, n_members=2, topics=(PLAIN, DELETED)),
    Group("classic-beyond", {PLAIN: {0: 45, 1: 40, 2: 1}}, n_members=1),
    Group("classic-emptied", {EMPTIED: {0: 12, 1: 40}}, n_members=1, topics=(EMPTIED,)),
    Group("static", AT_20, n_members=2, settings={"group.instance.id": "i"}),
    Group("assigned", AT_20, n_members=2, kind="assigned"),
    Group("assigned-in-part", {PLAIN: {2: 3}}, n_members=1, kind="assigned"),
    Group("connect", n_members=1, kind="connect"),
    Group("classic-marked", {MARKED: {0: 10}}, n_members=1, topics=(MARKED,)),
]
OF_KAFKA_4 = [
    Group("newer", AT_20, n_members=1, settings=NEWER),
    Group("newer-two", AT_20, n_members=2, settings={**NEWER, "group.remote.assignor": "range"}),
    Group("newer-idle", AT_20, n_members=4, settings=NEWER),
    Group("newer-bare", n_members=1, settings=NEWER),
    Group("newer-in-part", {PLAIN: {1: 8}}, n_members=1, settings=NEWER),
    Group("newer-static", AT_20, n_members=2, settings={**NEWER, "group.instance.id": "i"}),
    Group("share", n_members=1, kind="share"),
    Group("share-two", n_members=2, kind="share"),
    Group("streams", n_members=1, kind="streams"),
]
OF_ZOOKEEPER = [
    Group("znodes", znodes=AT_20),
    Group("znodes-in-part", znodes={PLAIN: {2: 3}}),
    Group("znodes-beyond", znodes={PLAIN: {0: 41, 1: 40}}),
    Group("znodes-deleted", znodes=everywhere(DELETED, 2, 10)),
    Group("znodes-owned", znodes=AT_20, n_members=1, kind="znode"),
    Group("znodes-owned-bare", n_members=1, kind="znode"),
    Group("mixed", AT_20, AT_20),
    Group("mixed-ahead", AT_20, everywhere(PLAIN, 3, 30)),
    Group("mixed-behind", {PLAIN: {0: 30, 1: 30}}, {PLAIN: {1: 20, 2: 20}}),
    Group("mixed-beyond", {PLAIN: {0: 50}}, {PLAIN: {0: 5}}),
]


def groups_of(is_kraft: bool) -> list[Group]:
    return [*WITHOUT_MEMBERS, *CLASSIC, *(OF_KAFKA_4 if is_kraft else OF_ZOOKEEPER)]


@dataclass(frozen=True)
class Scene:
    lab: Lab
    cluster: Cluster
    profile: str
    groups: Mapping[str, Group]
    owners: Mapping[tuple[str, str, int], str]
    """Member id by group and partition, as the members themselves say."""

    def owner(self, group_id: str, topic: str, partition: int) -> str | None:
        return self.owners.get((group_id, topic, partition))

    def n_members(self, group: Group) -> int:
        return 0 if group.kind in ("assigned", "left") else group.n_members


@contextmanager
def at_rest(lab: Lab, is_kraft: bool) -> Iterator[Scene]:
    """Yield when all logs, offsets and members are there."""
    file = lab.folder / "figures.toml"
    file.write_text(lab.profile_toml())
    with ExitStack() as ended:
        cluster = ended.enter_context(connect(load_profile(file=file)))
        _make_logs(lab)
        groups = groups_of(is_kraft)
        owners: dict[tuple[str, str, int], str] = {}
        for group in groups:
            owners |= _join(lab, cluster, group, ended)
        wait_until(lambda: _is_compacted(lab), "the compaction of the log", SECONDS)
        others = {each.group_id: each.n_members for each in groups if each.kind in ("share", "streams")}
        wait_until(lambda: _have_partitions(cluster, others), "partitions for members of other kinds", SECONDS)
        yield Scene(lab, cluster, str(file), {group.group_id: group for group in groups}, owners)


def _have_partitions(cluster: Cluster, groups: Mapping[str, int]) -> bool:
    """Return whether as many members of each group own partitions, and all partitions have owners."""
    owned = fetch_groups(cluster.broker_client, groups.__contains__).ownership
    rows = set(owned.rows("group_id", "member_id", "partition"))
    n_owners = Counter(group for group, _ in {row[:2] for row in rows})
    n_owned = Counter(group for group, _ in {(row[0], row[2]) for row in rows})
    return n_owners == groups and n_owned == dict.fromkeys(groups, PARTITIONS[PLAIN])


def _make_logs(lab: Lab) -> None:
    compaction = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.001"}
    topics = [
        NewTopic(name, count, 1, config=compaction if name == COMPACTED else {}) for name, count in PARTITIONS.items()
    ]
    for each in lab.admin.create_topics(topics).values():
        each.result(SECONDS)
    settings = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "linger.ms": 1}
    producer, begun = Producer(settings), time.time_ns() // 1_000_000 - 3 * 60 * MINUTE_MS
    for topic in (PLAIN, DELETED, EMPTIED, COMPACTED):
        for partition in range(PARTITIONS[topic]):
            for number in range(N_RECORDS):
                at_ms = begun + number * MINUTE_MS + 7 * partition
                producer.produce(topic, b"x" * 50, f"key {number % 3}".encode(), partition, timestamp=at_ms)
                if topic == COMPACTED:
                    producer.flush(SECONDS)  # A segment for each record: the active one is not compacted.
    assert producer.flush(SECONDS) == 0
    _write_transactions(settings, begun)
    gone = [TopicPartition(DELETED, number, 25) for number in range(2)] + [TopicPartition(EMPTIED, 0, N_RECORDS)]
    for each in lab.admin.delete_records(gone).values():
        each.result(SECONDS)


def _write_transactions(settings: Mapping[str, Any], begun_ms: int) -> None:
    """0–9 committed, 10 a marker, 11–15 aborted, 16 a marker."""
    producer = Producer({**settings, "transactional.id": MARKED})
    producer.init_transactions(SECONDS)
    for n_records, end in ((10, producer.commit_transaction), (5, producer.abort_transaction)):
        producer.begin_transaction()
        for number in range(n_records):
            producer.produce(MARKED, b"x", partition=0, timestamp=begun_ms + number * MINUTE_MS)
        producer.flush(SECONDS)
        end(SECONDS)


def _is_compacted(lab: Lab) -> bool:
    """Return whether the first record that has a younger one of its key is gone."""
    with closing(Consumer({**settings_of(lab), "group.id": "none", "enable.partition.eof": True})) as consumer:
        consumer.assign([TopicPartition(COMPACTED, 0, 0)])
        message = consumer.poll(SECONDS)
        return message is not None and message.error() is None and message.offset() > 30


def settings_of(lab: Lab) -> dict[str, Any]:
    quiet = {"enable.auto.commit": False, "max.poll.interval.ms": 3_600_000}  # A member that does not poll stays one.
    return {**QUIET, "bootstrap.servers": lab.servers.addresses(), **quiet}


def _join(lab: Lab, cluster: Cluster, group: Group, ended: ExitStack) -> dict[tuple[str, str, int], str]:
    """Commit and join; → who owns what."""
    places = [TopicPartition(topic, *place) for topic, each in group.offsets.items() for place in each.items()]
    if places:
        commit(lab, group.group_id, *places)
    if group.znodes or group.kind == "znode":
        _write_znodes(lab, group, ended)
    join = {"share": _share, "connect": _connect, "streams": _beat}.get(group.kind)
    if join is not None:
        join(lab, cluster, group, ended)
    elif group.kind == "left":
        with ExitStack() as at_once:
            _consume(lab, cluster, group, at_once)
    elif group.kind == "znode":
        return {(group.group_id, PLAIN, number): f"{group.group_id}_host-0" for number in range(PARTITIONS[PLAIN])}
    elif group.n_members:
        return _consume(lab, cluster, group, ended)
    return {}


def _consume(lab: Lab, cluster: Cluster, group: Group, ended: ExitStack) -> dict[tuple[str, str, int], str]:
    """Consumers that read nothing on, and commit nothing."""
    consumers = []
    for number in range(group.n_members):
        named = {"group.id": group.group_id, "client.id": f"{group.name}-{number}"}
        if "group.instance.id" in group.settings:
            named["group.instance.id"] = f"{group.name}-{number}"
        consumers.append(Consumer({**settings_of(lab), **group.settings, **named}))
        ended.callback(consumers[-1].close)
        if group.kind == "assigned":
            consumers[-1].assign([TopicPartition(PLAIN, partition) for partition in range(3)])
        else:
            consumers[-1].subscribe(list(group.topics))
    if group.kind == "assigned":
        return {}
    are_in = lambda: _have_all(consumers, group) and _are_subscribed(cluster, group)  # noqa: E731
    wait_until(are_in, f"the members of {group.name}", SECONDS)
    return {
        (group.group_id, each.topic, each.partition): consumer.memberid()
        for consumer in consumers
        for each in consumer.assignment()
    }


def _have_all(consumers: list[Consumer], group: Group) -> bool:
    for consumer in consumers:
        message = consumer.poll(0.02)
        assert message is None or message.error() is None or message.error().code() != KafkaError._FATAL
    held = [(each.topic, each.partition) for consumer in consumers for each in consumer.assignment()]
    n_busy = sum(bool(consumer.assignment()) for consumer in consumers)
    n_partitions = sum(PARTITIONS[topic] for topic in group.topics)
    if len(held) != n_partitions or len(set(held)) != n_partitions or n_busy != min(len(consumers), n_partitions):
        return False
    for consumer in consumers:
        consumer.pause(consumer.assignment())
    return True


def _are_subscribed(cluster: Cluster, group: Group) -> bool:
    """By the coordinator. A member of librdkafka first joins without the topics that it has no metadata of."""
    found = fetch_groups(cluster.broker_client, lambda group_id: group_id == group.group_id)
    is_stable = found.groups["state"] == ["Stable"]
    return is_stable and len(found.subscriptions) == group.n_members * len(group.topics)


def _share(lab: Lab, cluster: Cluster, group: Group, ended: ExitStack) -> None:
    for number in range(group.n_members):
        config = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": group.group_id}
        consumer = ShareConsumer(config | {"client.id": f"{group.name}-{number}"})
        ended.callback(consumer.close)
        consumer.subscribe(list(group.topics))
        consumer.poll(0.1)


def _beat(lab: Lab, cluster: Cluster, group: Group, ended: ExitStack) -> None:
    """A member of a streams group that is alive until the end."""
    client, member_id, over = cluster.broker_client, str(uuid.uuid4()), threading.Event()

    def beat() -> None:
        epoch = 0
        while True:
            epoch = client.run(heartbeat, client, group.group_id, PLAIN, member_id, epoch).member_epoch
            if over.wait(3.0):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    ended.callback(lambda: (over.set(), thread.join()))


def _connect(lab: Lab, cluster: Cluster, group: Group, ended: ExitStack) -> None:
    """One worker: the protocol type is not that of consumers, and its subscription is none of theirs."""
    client = cluster.broker_client
    client.run(_join_as_worker, client, group.group_id)


async def _join_as_worker(client: BrokerClient, group_id: str) -> None:
    deadline = Deadline(SECONDS)
    (broker_id,) = (await client.find_coordinators([group_id], deadline)).values()
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="sessioned", metadata=b"\0\1worker")
    member_id = ""
    while True:
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=1_200_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="connect",
            protocols=[protocol],
            reason=None,
            max_version=7,
        )
        answer = await client.ask(request, broker_id, deadline)
        member_id = answer.member_id
        if answer.error_code == 0:
            break
    each = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"\0\1tasks")
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=answer.generation_id,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="connect",
        protocol_name="sessioned",
        assignments=[each],
        max_version=5,
    )
    assert (await client.ask(request, broker_id, deadline)).error_code == 0


def _write_znodes(lab: Lab, group: Group, ended: ExitStack) -> None:
    client = KazooClient(lab.zookeeper_connect)
    client.start()
    ended.callback(lambda: (client.stop(), client.close()))
    root = f"/consumers/{group.group_id}"
    for topic, each in group.znodes.items():
        for partition, offset in each.items():
            client.create(f"{root}/offsets/{topic}/{partition}", str(offset).encode(), makepath=True)
    for number in range(group.n_members):
        member = f"{group.group_id}_host-{number}"
        held = {"version": 1, "subscription": {PLAIN: 1}, "pattern": "static", "timestamp": "1700000000000"}
        client.create(f"{root}/ids/{member}", json.dumps(held).encode(), ephemeral=True, makepath=True)
        for partition in range(3):
            path = f"{root}/owners/{PLAIN}/{partition}"
            client.create(path, f"{member}-0".encode(), ephemeral=True, makepath=True)
