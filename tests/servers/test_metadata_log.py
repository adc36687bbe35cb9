"""The metadata logs of real controllers, 3.9.1 and 4.1.1: what Kafka's own tools and its brokers say of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient
from polars.testing import assert_frame_equal

import kit
from kit.clients.cluster import kafka_settings
from kit.clients.nodes import fetch_node_facts
from kit.errors import ConnectError
from kit.kraft.metadata_log import Controllers, MetadataLog, read_files, read_log, verify_log
from kit.kraft.metadata_log.batches import read_batches
from kit.kraft.metadata_log.make_record_types import PLACE, table, text
from kit.kraft.metadata_log.records import RECORD_TYPES
from kit.lab import topics
from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import ProcessSupervisor, wait_until
from kit.lab.servers.kraft import KRaftServers
from kit.profile import Profile
from tests.servers.dumped_log import dumped, read_here
from tests.soak import first

SECRET = "hush-hush-hush"
TOOLS = {jars.NEWER_SERVERS: "tool-4.1.1", jars.SERVERS: "tool-3.9.1"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # So few bytes lie between two checkpoints that a handful of changes makes one.
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}
TOPICS = {"orders": 3, "shop.items": 2, "gone": 1}


@dataclass(frozen=True)
class Cluster:
    """One node, broker and controller, with one of everything in its metadata."""

    servers: KRaftServers
    admin: AdminClient
    jar_set: jars.JarSet

    @property
    def folder(self) -> Path:
        return self.servers.supervisor.folder

    @property
    def log_folder(self) -> Path:
        return self.folder / "broker-1" / "data" / "__cluster_metadata-0"

    @property
    def controllers(self) -> Controllers:
        return Controllers(self.servers.brokers[0].controller)

    def run(self, main: str, *arguments: str, jar_set: jars.JarSet | None = None) -> str:
        command = jvm.java(jars.class_path(jar_set or self.jar_set), main, arguments, 128, self.folder)
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def configure(self, *arguments: str) -> None:
        self.run("kafka.admin.ConfigCommand", "--bootstrap-server", self.servers.addresses(), *arguments)


@pytest.fixture(scope="module", params=first(["3.9.1", "4.1.1"]), ids="node-{}".format)
def cluster(request) -> Iterator[Cluster]:
    supervisor = ProcessSupervisor()
    try:
        servers = KRaftServers(supervisor, 1, request.param)
        servers.brokers[0].added |= SETTINGS
        servers.start()
        admin = AdminClient({**topics.QUIET, "bootstrap.servers": servers.addresses()})
        made = Cluster(servers, admin, jars.KAFKA_SETS[request.param])
        change_everything(made)
        yield made
    finally:
        supervisor.close()


def change_everything(cluster: Cluster) -> None:
    admin = cluster.admin
    topics.create(admin, TOPICS, 1)
    topics.grow(admin, "shop.items", 4, 1)
    acls = [
        AclBinding(kind, name, pattern, "User:al*ce", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for kind, name, pattern in (
            (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL),
            (ResourceType.GROUP, "shop/", ResourcePatternType.PREFIXED),
            (ResourceType.TOPIC, "gone", ResourcePatternType.LITERAL),
        )
    ]
    done(admin.create_acls(acls))
    done(
        admin.delete_acls(
            [
                AclBindingFilter(
                    ResourceType.TOPIC,
                    "gone",
                    ResourcePatternType.LITERAL,
                    None,
                    None,
                    AclOperation.ANY,
                    AclPermissionType.ANY,
                )
            ]
        )
    )
    both = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    for mechanism in both:  # The two of one user can't be in one request.
        info = ScramCredentialInfo(mechanism, 5000)
        users = [UserScramCredentialUpsertion(user, info, SECRET.encode()) for user in ("alice", "bob")]
        done(admin.alter_user_scram_credentials(users))
    done(admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", both[0])]))
    alter(admin, ConfigResource.Type.TOPIC, "orders", {"retention.ms": "1000", "cleanup.policy": "compact"})
    alter(admin, ConfigResource.Type.TOPIC, "orders", {"cleanup.policy": None})
    alter(admin, ConfigResource.Type.BROKER, "1", {"log.cleaner.threads": "2", "my.own.password": SECRET})
    cluster.configure(
        "--alter",
        "--add-config",
        "producer_byte_rate=1000,request_percentage=12.5",
        "--entity-type",
        "users",
        "--entity-name",
        "al*ce/x",
        "--entity-type",
        "clients",
        "--entity-default",
    )
    cluster.configure(
        "--alter", "--add-config", "connection_creation_rate=7", "--entity-type", "ips", "--entity-default"
    )
    cluster.configure(
        "--alter",
        "--delete-config",
        "request_percentage",
        "--entity-type",
        "users",
        "--entity-name",
        "al*ce/x",
        "--entity-type",
        "clients",
        "--entity-default",
    )
    done(admin.delete_topics(["gone"]))
    wait_until(lambda: any(cluster.log_folder.glob("*.checkpoint")), "a checkpoint", 30)


def done(futures: Mapping) -> None:
    for future in futures.values():
        future.result(30)


def alter(admin: AdminClient, kind, name: str, values: Mapping[str, str | None]) -> None:
    entries = [
        ConfigEntry(
            key,
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    done(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=entries)]))


@pytest.fixture(scope="module")
def copied(cluster, tmp_path_factory) -> Path:
    """A copy of the live folder, as an operator takes it."""
    return Path(shutil.copytree(cluster.log_folder, tmp_path_factory.mktemp("copied") / "__cluster_metadata-0"))


@pytest.fixture(scope="module")
def log(copied) -> MetadataLog:
    return read_log(copied)


@pytest.mark.parametrize("jar_set", first([jars.NEWER_SERVERS, jars.SERVERS]), ids=TOOLS.get)
def test_every_record_is_what_kafka_s_own_tool_prints(cluster, log, jar_set):
    """Segments and checkpoints, control records too; the tool of 3.9.1 reads the same log."""
    for file in log.files["file"]:
        mine = read_here(log.records.filter(pl.col("file") == file))
        if jar_set is jars.SERVERS:  # The older tool prints no fields of it.
            mine = [record for record in mine if record[2] != "LeaderChange"]
        assert mine == dumped(Path(file), cluster.folder, jar_set)
        assert len(mine) > 10
    assert {"Begin", "NoOp"} <= {name.removesuffix("Transaction") for name in log.types}
    assert verify_log(log)


def test_the_image_is_what_the_broker_answers(cluster, log):
    admin = cluster.admin
    names = [name for name in TOPICS if name != "gone"]
    found = {name: future.result(30) for name, future in admin.describe_topics(TopicCollection(names)).items()}
    assert {each.name for each in log.image.topics.values()} == set(admin.list_topics(timeout=10).topics)
    for name, topic in found.items():
        mine = log.partitions.filter(pl.col("topic") == name)
        assert mine["topic_id"].unique().to_list() == [str(topic.topic_id).replace("+", "-").replace("/", "_")]
        told = [
            (each.id, each.leader.id, [node.id for node in each.replicas], [node.id for node in each.isr])
            for each in topic.partitions
        ]
        assert mine.select("partition", "leader", "replicas", "isr").rows() == told
    assert len(found["shop.items"].partitions) == 4


def items(log: MetadataLog, kind: str) -> dict[tuple[str, str], str | None]:
    rows = log.items.filter(pl.col("kind") == kind)
    return {(entity, item): value for entity, item, value in rows.select("entity", "item", "value").rows()}


def test_settings_are_what_the_broker_describes(cluster, log):
    resources = [ConfigResource(ConfigResource.Type.TOPIC, "orders"), ConfigResource(ConfigResource.Type.BROKER, "1")]
    # Sources of Kafka's protocol: 1 of a topic, 2 of a broker.
    told = {
        (f"{resource.restype.name.lower()}s/{resource.name}", name): entry.value
        for resource, future in cluster.admin.describe_configs(resources).items()
        for name, entry in future.result(30).items()
        if entry.source in (1, 2)
    }
    mine = {key: value for key, value in items(log, "config").items() if key[0] != "brokers/<default>"}
    assert mine == told
    assert mine == {
        ("topics/orders", "retention.ms"): "1000",
        ("brokers/1", "log.cleaner.threads"): "2",
        ("brokers/1", "my.own.password"): None,
    }


def test_credentials_acls_and_quotas(cluster, log):
    described = {
        user: future.result(30)
        for user, future in cluster.admin.describe_user_scram_credentials(["alice", "bob"]).items()
    }
    told = {
        (user, each.mechanism.name.replace("_", "-")): f"iterations={each.iterations}"
        for user, found in described.items()
        for each in found.scram_credential_infos
    }
    assert items(log, "scram") == told
    assert len(told) == 3
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(items(log, "acl")) == {
        (
            f"{each.restype.name}:{each.resource_pattern_type.name}:{each.name}",
            json.dumps(
                [each.principal, each.host, each.operation.name, each.permission_type.name], separators=(",", ":")
            ),
        )
        for each in cluster.admin.describe_acls(everything).result(30)
    }
    assert items(log, "quota") == {
        ("users/al%2Ace%2Fx/clients/<default>", "producer_byte_rate"): "1000",
        ("ips/<default>", "connection_creation_rate"): "7",
    }


def test_nodes_and_features(cluster, log):
    broker, controller = log.nodes.to_dicts()
    assert (broker["role"], broker["node_id"], broker["is_fenced"], broker["is_migrating"]) == (
        "broker",
        1,
        False,
        False,
    )
    assert broker["listeners"] == [f"PLAINTEXT://{cluster.servers.brokers[0].addresses['PLAINTEXT']}"]
    assert controller["listeners"] == [f"CONTROLLER://{cluster.servers.brokers[0].controller}"]
    assert controller["is_migration_ready"] is False
    level = "21" if cluster.jar_set is jars.SERVERS else "27"
    assert items(log, "feature")["metadata.version", "level"] == level


def test_no_secret_is_in_a_table(log):
    for frame in (log.records, log.items, log.partitions, log.nodes, log.files):
        assert SECRET not in str(frame.to_dicts())
    assert SECRET not in str(vars(log.image))
    assert log.items.filter(pl.col("is_secret"))["item"].to_list() == [
        "my.own.password",
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
        "SCRAM-SHA-512",
    ]


def without_files(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("file").sort("offset")


def test_a_live_controller_has_the_same_log(cluster, copied):
    live = read_log(cluster.controllers)
    assert verify_log(live)
    newest = max(copied.glob("*.checkpoint"))
    checkpoint, fetched = live.sources
    end = checkpoint.base_offset
    # A log continues between two observations: so it is copied again, and compared as far as both go.
    now = read_log(cluster.log_folder)
    assert checkpoint.data == (cluster.log_folder / Path(checkpoint.name.split(" ")[-1])).read_bytes()
    assert end >= int(newest.name[:20])
    until = min(live.image.offset, now.image.offset)
    for at_most, frame in ((until, live.records), (until, now.records)):
        assert frame["error"].null_count() == len(frame)
        assert frame["offset"].max() >= at_most
    common = pl.col("offset").is_between(end, until)
    ours = live.records.filter((pl.col("file") == fetched.name) & common)
    theirs = now.records.filter(pl.col("file").str.ends_with(".log") & common)
    assert_frame_equal(without_files(ours), without_files(theirs))
    assert_frame_equal(live.partitions.drop("offset"), now.partitions.drop("offset"))
    assert_frame_equal(live.items.drop("offset"), now.items.drop("offset"))
    assert live.image.offset == live.until - 1


def test_the_checkpoint_is_the_image_of_the_log_before_it(copied):
    """Replayed from the first record, the log gives what Kafka itself wrote down at that offset."""
    checkpoint, segments = max(copied.glob("*.checkpoint")), sorted(copied.glob("*.log"))
    end = int(checkpoint.name[:20])
    by_kafka = read_log(checkpoint)
    (segment,) = segments
    octets = segment.read_bytes()
    # The copy may end where the checkpoint does: the node writes one of what is committed, then the next record.
    at = next((batch.position for batch in read_batches(octets) if batch.base_offset >= end), len(octets))
    before = copied / "before"
    before.mkdir()
    (before / segment.name).write_bytes(octets[:at])
    by_us = read_log(before)
    assert by_us.image.offset == by_kafka.image.offset == end - 1
    for name in ("partitions", "items", "nodes"):
        assert_frame_equal(getattr(by_us, name).drop("offset"), getattr(by_kafka, name).drop("offset"))
    assert len(by_us.partitions) > 0


def replicas(cluster: Cluster) -> dict[str, list[int]]:
    """Voters and observers, by a client that knows nothing of this reader."""
    client = KafkaAdminClient(bootstrap_servers=cluster.servers.addresses())
    try:
        (partition,) = client.describe_metadata_quorum()["topics"][0]["partitions"]
    finally:
        client.close()
    return {kind: [each["replica_id"] for each in partition[kind]] for kind in ("current_voters", "observers")}


def test_the_quorum_does_not_learn_of_a_reader(cluster):
    read_log(cluster.controllers)
    assert replicas(cluster) == {"current_voters": [1], "observers": []}


def test_a_controller_that_is_not_there():
    with pytest.raises(ConnectError, match=r"controllers 127\.0\.0\.1:.*: none answered within 1 s"):
        read_log(Controllers(f"127.0.0.1:{free_ports(1)[0]}", timeout_s=1))


def test_a_broker_s_listener_is_no_controller_s(cluster):
    """A broker forwards DescribeQuorum, and would pass for the leader; but it has no such partition to read."""
    with pytest.raises(ConnectError, match="is no controller, because it answers no quorum request"):
        read_log(Controllers(cluster.servers.addresses()))
    settings = kafka_settings(Profile(name="c", file=Path(), bootstrap_servers=cluster.servers.addresses()))
    addresses = (cluster.servers.addresses(), cluster.controllers.servers)
    broker, controller = fetch_node_facts(settings, [], addresses)
    assert (broker.is_leader, controller.is_leader) == (None, True)
    assert "is no controller" in broker.error


def test_spark_s_tasks_read_the_same(log, copied):
    spark = kit.spark_session()
    try:
        read = read_files(spark, [copied])
        columns = ["file", "offset"]
        assert_frame_equal(pl.DataFrame(read.records.toArrow()).sort(columns), log.records.sort(columns))
        assert_frame_equal(read.files, log.files.sort("file"))
        assert read.records.groupBy("name").count().count() == log.records["name"].n_unique()
    finally:
        spark.stop()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_every_compression(cluster, codec):
    """No controller compresses; whoever copies records between tools may. librdkafka and a broker made these."""
    name = f"packed-{codec}"
    topics.create(cluster.admin, {name: 1}, 1)
    producer = Producer(
        {**topics.QUIET, "bootstrap.servers": cluster.servers.addresses(), "compression.type": codec, "linger.ms": 50}
    )
    values = [f"value {at} ".encode() * 20 for at in range(50)]
    for each in values:
        producer.produce(name, each)
    producer.flush(30)
    (segment,) = (cluster.folder / "broker-1" / "data" / f"{name}-0").glob("*.log")
    batches = list(read_batches(segment.read_bytes()))
    assert [each.error for each in batches] == [None] * len(batches)
    assert [record[3] for each in batches for record in each.records] == values


def test_the_table_of_record_types_is_kafka_s():
    newer, older = (jars.ensure([each])[each.name] for each in (jars.NEWER_SERVERS, jars.SERVERS))
    made = text(table([newer / "kafka-metadata-4.1.1.jar", newer / "kafka-clients-4.1.1.jar"]))
    assert made == PLACE.read_text(encoding="utf-8")
    of_older = table([older / "kafka-metadata-3.9.1.jar", older / "kafka-clients-3.9.1.jar"])
    of_newer = json.loads(made)
    for kind, entries in json.loads(text(of_older)).items():
        for key, entry in entries.items():
            assert of_newer[kind][key] == entry
    assert set(RECORD_TYPES) == set(map(int, of_newer["records"]))
