"""One of every kind of metadata that KIP-866 moves, made in a lab by the admin clients that people use."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding as Acl, AclOperation as Operation, AclPermissionType as Permission
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType as Pattern, ResourceType as Resource
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest
from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest

from kit.clients.broker_client import BrokerClient, Deadline
from kit.errors import LabError
from kit.lab import topics
from kit.lab.java import jars, jvm
from kit.lab.process import wait_until
from kit.lab.servers.migrating import USER
from kit.lab.servers.migrating_cluster import MigratingServers
from kit.text.naming import listed

TOKEN_TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = {"orders": 3, "shop.items": 2}
ACLS = (
    Acl(Resource.TOPIC, "orders", Pattern.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW),
    Acl(Resource.TOPIC, "shop.", Pattern.PREFIXED, "User:al*ce", "*", Operation.DESCRIBE_CONFIGS, Permission.DENY),
    Acl(Resource.GROUP, "*", Pattern.LITERAL, "User:bob", "127.0.0.1", Operation.READ, Permission.ALLOW),
    Acl(Resource.BROKER, "kafka-cluster", Pattern.LITERAL, "User:bob", "*", Operation.ALTER, Permission.ALLOW),
)
QUOTAS: Mapping[tuple[tuple[str, str | None], ...], Mapping[str, float]] = {
    (("user", "alice"),): {"producer_byte_rate": 1000.0, "request_percentage": 12.5},
    (("user", None),): {"consumer_byte_rate": 2e6},
    (("user", "al*ce/x"), ("client-id", None)): {"controller_mutation_rate": 3.0},
    (("client-id", "app 1"),): {"consumer_byte_rate": 1234.0},
    (("ip", "127.0.0.1"),): {"connection_creation_rate": 700.0},
}


def make_one_of_everything(servers: MigratingServers, password: str) -> None:
    """Topics with settings, dynamic settings of brokers, quotas, SCRAM users, ACLs, producer ids, a delegation token.

    Raises LabError when a broker refuses one.
    """
    admin = AdminClient({**topics.QUIET, "bootstrap.servers": servers.addresses()})
    topics.create(admin, TOPICS, min(2, len(servers.brokers)))
    topics.produce(servers.addresses(), "orders", TOPICS["orders"], 0, 10)
    alter_config(admin, ConfigResource.Type.TOPIC, "orders", {"retention.ms": "86400000", "cleanup.policy": "compact"})
    alter_config(admin, ConfigResource.Type.BROKER, "1", {"log.cleaner.threads": "2"})
    set_default(servers, "log.flush.interval.ms", "60000")
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = ScramCredentialInfo(mechanism, 4096)
        done(
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", credential, password.encode())]),
            "SCRAM user",
        )
    done(admin.create_acls(list(ACLS)), "ACL")
    set_quotas(servers, QUOTAS)
    make_token(servers)


def alter_config(admin: AdminClient, kind: Any, name: str, values: Mapping[str, str | None]) -> None:
    """Set (or, with None, delete) dynamic settings; raises LabError."""
    entries = [
        ConfigEntry(
            key,
            value or "",
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    done(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=entries)]), "setting")


def done(futures: Mapping[Any, Any], what: str) -> None:
    """Wait for an admin client's answers; raises LabError."""
    for name, future in futures.items():
        try:
            future.result(30)
        except Exception as error:
            raise LabError(f"The {what} {name} was not changed: {error}") from error


def set_quotas(servers: MigratingServers, quotas: Mapping[Any, Mapping[str, float | None]]) -> None:
    """Entity (pairs of type and name, None: the default) → key → value; None removes it. Raises LabError."""
    entry = AlterClientQuotasRequest.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
        )
        for entity, values in quotas.items()
    ]
    response = ask(servers, AlterClientQuotasRequest(entries=entries, validate_only=False))
    for each in response.entries:
        if each.error_code:
            raise LabError(f"The quota of {each.entity} was not changed: {each.error_message or each.error_code}")


def reassign(servers: MigratingServers, replicas: Mapping[tuple[str, int], Sequence[int] | None]) -> None:
    """(topic, partition) → its new replicas, the preferred leader first; None cancels. Raises LabError.

    Returns when the controller has begun; ``await_reassigned`` waits for the end.
    """
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    wanted = [
        topic(name=name, partitions=[topic.ReassignablePartition(partition_index=number, replicas=ids and list(ids))])
        for (name, number), ids in replicas.items()
    ]
    response = ask(servers, AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=wanted))
    errors = [each.error_message or each.error_code for answer in response.responses for each in answer.partitions]
    if response.error_code or any(errors):
        partitions = listed(f"{name}-{number}" for name, number in replicas)
        raise LabError(f"Not reassigned: {partitions}: {response.error_message or listed(filter(None, errors))}")


def await_reassigned(servers: MigratingServers) -> None:
    """Wait until no reassignment is under way; raises LabError after 60 s."""
    request = ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)
    wait_until(lambda: not ask(servers, request).topics, "the end of all reassignments", 60)


def set_default(servers: MigratingServers, key: str, value: str) -> None:
    """A setting of all brokers: confluent-kafka takes no resource without a name. Raises LabError."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name=key, config_operation=0, value=value)
    wanted = resource(resource_type=4, resource_name="", configs=[config])
    response = ask(servers, IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False))
    if response.responses[0].error_code:
        raise LabError(f"The default of {key} was not changed: {response.responses[0].error_message}")


def ask(servers: MigratingServers, request: Any) -> Any:
    """A broker's answer."""
    client = BrokerClient({"bootstrap_servers": servers.addresses().split(",")}, 10)
    try:
        return client.run(client.ask, request, None, Deadline(30))
    finally:
        client.close()


def make_token(servers: MigratingServers) -> None:
    """A delegation token of the lab's SASL user, by Kafka's own tool: only a SASL login may have one."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    login = servers.supervisor.folder / "token.properties"
    login.write_text(
        jvm.properties(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'{module} required username="{USER}" password="{servers.quorum.password}";',
            }
        ),
        encoding="utf-8",
    )
    arguments = [
        "--bootstrap-server",
        servers.addresses("SASL_PLAINTEXT"),
        "--command-config",
        str(login),
        "--create",
        "--max-life-time-period",
        "-1",
        "--renewer-principal",
        "User:alice",
    ]
    command = jvm.java(jars.class_path(jars.SERVERS), TOKEN_TOOL, arguments, 64, servers.supervisor.folder)
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise LabError(f"No delegation token was made:\n{made.stdout[-500:]}{made.stderr[-1500:]}")
