"""Brokers without ZooKeeper refuse with one sentence each: rights of the lock, protocols that are switched off."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import Cluster, connect
from kit.errors import RunError
from kit.lab import Lab
from kit.lab.java import jars, jvm
from kit.lab.topics import QUIET
from kit.moves.locks.kafka_lock import KafkaLock, LockGroups
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.tuned_lab import TunedLab

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with TunedLab(RIGHTS, kraft=True) as running:
        (running.folder / "offramp.toml").write_text(running.profile_toml())
        running.create_topic("t", 1)
        yield running


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with connect(load_profile(file=lab.folder / "offramp.toml")) as connected:
        lock = KafkaLock(LockGroups(connected))
        lock.acquire(["first"], "run-0")  # From now on its topic is there.
        lock.release()
        yield connected


@contextmanager
def denied(lab: Lab, kind: ResourceType, name: str, pattern: ResourcePatternType) -> Iterator[None]:
    """Nobody may read it."""
    who = ("User:*", "*", AclOperation.READ, AclPermissionType.DENY)
    for each in lab.admin.create_acls([AclBinding(kind, name, pattern, *who)]).values():
        each.result(SECONDS)
    try:
        yield
    finally:
        for each in lab.admin.delete_acls([AclBindingFilter(kind, name, pattern, *who)]).values():
            each.result(SECONDS)


@pytest.mark.parametrize(
    ("kind", "name", "pattern", "grant"),
    [
        (ResourceType.GROUP, "offramp.lock.", ResourcePatternType.PREFIXED, "--group offramp.lock. --resource"),
        (ResourceType.TOPIC, "offramp.lock", ResourcePatternType.LITERAL, "--topic offramp.lock"),
    ],
)
def test_a_right_that_the_lock_lacks_is_named_as_a_command(lab, cluster, kind, name, pattern, grant):
    def refusal() -> str:
        lock = KafkaLock(LockGroups(cluster))
        try:
            lock.acquire(["orders"], "run-1")
        except RunError as error:
            return str(error)
        finally:
            lock.release()
        return ""

    with denied(lab, kind, name, pattern):
        text = awaited(refusal, bool, "the refusal")
        assert "kafka-acls.sh --bootstrap-server ADDRESS --add" in text
        assert grant in text
    awaited(refusal, lambda text: not text, "the lock")


def features(lab: Lab, *words: str) -> None:
    jar_set = lab.servers.brokers[0].jar_set
    command = jvm.java(
        jars.class_path(jar_set),
        "org.apache.kafka.tools.FeatureCommand",
        ["--bootstrap-server", lab.servers.addresses(), *words],
        64,
        lab.folder,
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_protocol_that_a_feature_level_switched_off_is_named(lab, cluster):
    config = {**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": "sharing"}
    consumer = ShareConsumer(config)
    consumer.subscribe(["t"])
    words = ["groups", "--profile-file", str(lab.folder / "offramp.toml")]

    def listed() -> str:
        consumer.poll(0.1)
        return CliRunner().invoke(app, words, env={"COLUMNS": "250"}).output

    awaited(listed, lambda text: re.search(r"sharing.*share", text), "the group")
    consumer.close()
    features(lab, "downgrade", "--feature", "share.version=0")
    off = "sharing: the brokers do not serve this group's protocol, because a feature level switches it off (see kafka-"
    awaited(lambda: " ".join(CliRunner().invoke(app, words).output.split()), lambda text: off in text, "the refusal")
