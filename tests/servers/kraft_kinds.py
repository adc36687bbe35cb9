"""A change of each kind of metadata, one at a time, to a lab in dual write; and many values at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest

from kit.lab import Lab, topics
from kit.lab.entities import alter_config, ask, done, make_token, set_quotas

PASSWORD = b"hush-hush-hush"
TOPIC, BROKER = ConfigResource.Type.TOPIC, ConfigResource.Type.BROKER
MANY_TOPICS, MANY_PARTITIONS, MANY_USERS, MANY_RULES = 40, 9, 60, 9
"""Rules: of each topic. After an election a controller writes each partition's znode again: that takes it 10 ms."""


def new_admin(lab: Lab) -> AdminClient:
    """librdkafka's client gets no answer to CreateTopics after the broker it knew has changed its mode."""
    return AdminClient({**topics.QUIET, "bootstrap.servers": lab.bootstrap_servers})


def _make_topics(lab: Lab, admin: AdminClient) -> None:
    topics.create(admin, {"new": 2, "gone": 1}, 1)


def _add_partitions(lab: Lab, admin: AdminClient) -> None:
    topics.grow(admin, "orders", 4, 1)


def _set_topics(lab: Lab, admin: AdminClient, names: tuple[str, ...], values: Mapping[str, str | None]) -> None:
    for name in names:
        alter_config(admin, TOPIC, name, values)


def _set_broker(lab: Lab, admin: AdminClient, value: str | None) -> None:
    alter_config(admin, BROKER, "1", {"log.cleaner.threads": value})


def _delete_topic(lab: Lab, admin: AdminClient) -> None:
    done(admin.delete_topics(["gone"]), "topic")


def set_credential(admin: AdminClient, user: str, mechanism: ScramMechanism) -> None:
    """A password for a user."""
    set_it = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 5000), PASSWORD)
    done(admin.alter_user_scram_credentials([set_it]), "user")


def _remove_credential(lab: Lab, admin: AdminClient) -> None:
    removed = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    done(admin.alter_user_scram_credentials([removed]), "user")


def _add_acl(lab: Lab, admin: AdminClient) -> None:
    done(admin.create_acls([acl("orders", "User:dora")]), "ACL")


def acl(topic: str, principal: str) -> AclBinding:
    """One that lets a principal read a topic."""
    how = AclOperation.READ, AclPermissionType.ALLOW
    return AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, principal, "*", *how)


def _remove_acls(lab: Lab, admin: AdminClient) -> None:
    anything = AclOperation.ANY, AclPermissionType.ANY
    which = AclBindingFilter(ResourceType.GROUP, "*", ResourcePatternType.LITERAL, None, None, *anything)
    done(admin.delete_acls([which]), "ACL")


def _set_quotas(lab: Lab, admin: AdminClient) -> None:
    set_quotas(lab.migration, {(("user", "carol/é"),): {"consumer_byte_rate": 10.0}})


def _remove_a_quota(lab: Lab, admin: AdminClient) -> None:
    """Not the last one of its entity: Kafka 3.9.1 fails on that."""
    set_quotas(lab.migration, {(("user", "alice"),): {"producer_byte_rate": None}})


KINDS: Mapping[str, Callable[[Lab, AdminClient], None]] = {
    "topics created": _make_topics,
    "partitions added": _add_partitions,
    "settings of topics set": partial(
        _set_topics, names=("orders",), values={"retention.ms": "90000000", "cleanup.policy": "delete"}
    ),
    "a topic's setting removed": partial(_set_topics, names=("orders",), values={"retention.ms": None}),
    "a broker's setting changed": partial(_set_broker, value="1"),
    "a broker's setting removed": partial(_set_broker, value=None),
    "a topic deleted": _delete_topic,
    "a SCRAM credential set": lambda _, admin: set_credential(admin, "bob", ScramMechanism.SCRAM_SHA_512),
    "a SCRAM credential removed": _remove_credential,
    "an ACL added": _add_acl,
    "ACLs removed": _remove_acls,
    "quotas set": _set_quotas,
    "a quota removed": _remove_a_quota,
    "a delegation token made": lambda lab, _: make_token(lab.migration),
}
"""The kinds on one broker; what needs several (ISR, leaders, reassignments) is in ``preflight_story``."""


def set_metrics(lab: Lab, interval_ms: str | None) -> None:
    """A client-metrics setting, or none: with it Kafka 3.9.1 fails after the next election."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = resource.AlterableConfig(name="interval.ms", config_operation=0 if interval_ms else 1, value=interval_ms)
    wanted = resource(resource_type=16, resource_name="watchers", configs=[config])
    response = ask(lab.migration, IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False))
    assert response.responses[0].error_code == 0, response


def make_many(lab: Lab) -> None:
    """About a thousand values of every kind but tokens."""
    admin, names = new_admin(lab), [f"many-{number}" for number in range(MANY_TOPICS)]
    done(admin.create_topics([NewTopic(name, MANY_PARTITIONS, 1) for name in names]), "topic")
    for name in names:
        alter_config(admin, TOPIC, name, {"retention.ms": "80000000", "segment.ms": "70000000"})
    rates = {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0}
    set_quotas(lab.migration, {(("user", f"many {number}"),): rates for number in range(MANY_USERS)})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info, users = ScramCredentialInfo(mechanism, 4096), [f"u{number}" for number in range(MANY_USERS)]
        set_all = [UserScramCredentialUpsertion(each, info, PASSWORD) for each in users]
        done(admin.alter_user_scram_credentials(set_all), "user")
    done(admin.create_acls([acl(name, f"User:u{number}") for name in names for number in range(MANY_RULES)]), "ACL")
