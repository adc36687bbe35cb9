"""Changes of every kind of metadata, at random, to a lab in dual write: what a diff has to bear."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from kit.errors import OfframpError
from kit.lab import Lab, topics
from kit.lab.entities import alter_config, done, make_token, reassign, set_quotas

PASSWORD = b"hush-hush-hush"
CREDENTIALS = (("u0", ScramMechanism.SCRAM_SHA_256), ("u1", ScramMechanism.SCRAM_SHA_512))
LASTING = ("lasting-1", "lasting-2")
"""Topics that are not deleted; the only ones with settings."""


@dataclass
class Changes:
    """One change after the other until stopped. ``made`` and ``refused`` count them by name.

    Names come from small pools, so that topics and users are made again after they were deleted. What is refused
    (no such topic, no answer during an election) is part of the game. Three things that Kafka 3.9.1 can't do in dual
    write are left out: no last quota of an entity is removed, no topic with settings is deleted, and of each SCRAM
    mechanism there is one user alone, because a removal makes restarted nodes forget others.
    """

    lab: Lab
    seed: int = 1
    pause_s: float = 0.2
    made: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    def __enter__(self) -> Changes:
        self._random = random.Random(self.seed)
        self._ends = threading.Event()
        topics.create(self.lab.admin, dict.fromkeys(LASTING, 2), 1)
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._ends.set()
        self._thread.join(60)

    def _run(self) -> None:
        admin = AdminClient({**topics.QUIET, "bootstrap.servers": self.lab.bootstrap_servers})
        while not self._ends.wait(self.pause_s):
            change = self._random.choice(_CHANGES)
            try:
                change(self, admin)
                self.made[change.__name__] += 1
            except (OfframpError, KafkaException):
                self.refused[change.__name__] += 1

    @property
    def _topic(self) -> str:
        """Mostly of those that come and go."""
        return self._random.choice([*LASTING, *(f"t{number}" for number in range(10))])

    def _replicas(self) -> list[int]:
        ids = [each.broker_id for each in self.lab.servers.brokers]
        return self._random.sample(ids, self._random.randint(1, len(ids)))

    def create_topic(self, admin: AdminClient) -> None:
        assignment = [self._replicas()]
        assignment += [self._random.sample(assignment[0], len(assignment[0])) for _ in range(self._random.randrange(4))]
        made = NewTopic(self._topic, len(assignment), replica_assignment=assignment)
        done(admin.create_topics([made], request_timeout=15), "topic")

    def delete_topic(self, admin: AdminClient) -> None:
        done(admin.delete_topics([f"t{self._random.randrange(10)}"], request_timeout=15), "topic")

    def add_partitions(self, admin: AdminClient) -> None:
        done(admin.create_partitions([NewPartitions(self._topic, self._random.randint(2, 6))]), "topic")

    def change_topic_config(self, admin: AdminClient) -> None:
        key = self._random.choice(["retention.ms", "segment.ms", "max.message.bytes"])
        value = self._random.choice([None, str(self._random.randint(100_000, 900_000))])
        alter_config(admin, ConfigResource.Type.TOPIC, self._random.choice(LASTING), {key: value})

    def change_broker_config(self, admin: AdminClient) -> None:
        value = self._random.choice([None, "1", "2", "3"])
        number = self._random.choice(self.lab.servers.brokers).broker_id
        alter_config(admin, ConfigResource.Type.BROKER, str(number), {"log.cleaner.threads": value})

    def change_quota(self, admin: AdminClient) -> None:
        entity = self._random.choice([(("user", "u1"),), (("client-id", "c1"),), (("user", "u1"), ("client-id", None))])
        other = self._random.choice([None, float(self._random.randint(1, 99))])
        rate = float(self._random.randint(1_000, 9_000))
        set_quotas(self.lab.migration, {entity: {"producer_byte_rate": rate, "request_percentage": other}})

    def _acl(self) -> AclBinding:
        principal = f"User:u{self._random.randrange(4)}"
        return AclBinding(
            ResourceType.TOPIC,
            self._topic,
            self._random.choice([ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED]),
            principal,
            "*",
            self._random.choice([AclOperation.READ, AclOperation.WRITE]),
            AclPermissionType.ALLOW,
        )

    def create_acl(self, admin: AdminClient) -> None:
        done(admin.create_acls([self._acl()]), "ACL")

    def delete_acl(self, admin: AdminClient) -> None:
        anything = AclOperation.ANY, AclPermissionType.ANY
        which = AclBindingFilter(ResourceType.TOPIC, self._topic, ResourcePatternType.ANY, None, None, *anything)
        done(admin.delete_acls([which]), "ACL")

    def set_credential(self, admin: AdminClient) -> None:
        user, mechanism = self._random.choice(CREDENTIALS)
        info = ScramCredentialInfo(mechanism, self._random.randint(4096, 9000))
        done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, PASSWORD)]), "user")

    def delete_credential(self, admin: AdminClient) -> None:
        gone = UserScramCredentialDeletion(*self._random.choice(CREDENTIALS))
        done(admin.alter_user_scram_credentials([gone]), "user")

    def reassign(self, admin: AdminClient) -> None:
        found = admin.list_topics(timeout=5).topics
        name = self._topic
        if name in found:
            replicas = self._replicas()
            reassign(self.lab.migration, {(name, number): replicas for number in found[name].partitions})

    def elect_leaders(self, admin: AdminClient) -> None:
        admin.elect_leaders(ElectionType.PREFERRED).result(15)

    def make_token(self, admin: AdminClient) -> None:
        if self._random.random() < 0.1:  # Kafka's tool is a JVM.
            make_token(self.lab.migration)


_CHANGES: tuple[Callable[[Changes, AdminClient], None], ...] = (
    Changes.create_topic,
    Changes.create_topic,
    Changes.delete_topic,
    Changes.add_partitions,
    Changes.change_topic_config,
    Changes.change_topic_config,
    Changes.change_broker_config,
    Changes.change_quota,
    Changes.create_acl,
    Changes.delete_acl,
    Changes.set_credential,
    Changes.delete_credential,
    Changes.reassign,
    Changes.elect_leaders,
    Changes.make_token,
)
