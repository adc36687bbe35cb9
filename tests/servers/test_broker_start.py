"""Znodes that keep a real broker of 3.9.1 in ZooKeeper mode from starting are found by ``brokers_start``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl
import pytest
from kazoo.client import KazooClient

from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight import preflight
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.kraft.move.conditions import READ_AT_START
from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
from kit.kraft.read.preflight_znodes import fetch_preflight_znodes
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.tables.conditions import BLOCK
from tests.servers.awaiting import SECONDS
from tests.servers.tuned_lab import TunedLab
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(900)]
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}


def config(**settings: object) -> bytes:
    return json.dumps(
        {"version": 1, "config": {key.replace("__", "."): each for key, each in settings.items()}}
    ).encode()


def acl(**changed: object) -> bytes:
    entry = {"principal": "User:ann", "permissionType": "Allow", "operation": "Read", "host": "*"} | changed
    return json.dumps({"version": 1, "acls": [entry]}).encode()


ENDS = [
    ("/config/brokers/one", config()),
    ("/config/brokers/9999999999", config()),
    ("/config/users/ann", config(producer_byte_rate="fast")),
    ("/config/users/ann", config(producer_byte_rate="1000.0")),
    ("/config/users/ann", config(producer_byte_rate=1000)),
    ("/config/users/ann/clients/app", config(request_percentage="much")),
    ("/config/clients/app", config(consumer_byte_rate="1.5")),
    ("/config/ips/10.0.0.1", config(connection_creation_rate="99999999999")),
    ("/config/ips/no host", config()),
    ("/config/users/ann", b'{"version":1,"config":{"SCRAM-SHA-256":"malformed"}}'),
    ("/config/topics/orders", config(retention__ms="abc")),
    ("/config/topics/gone", config(segment__ms="0")),
    ("/kafka-acl/Topic/orders", acl(principal="ann")),
]
STARTS = [
    ("/config/brokers/<default>", config(log__cleaner__threads="2")),
    ("/config/users/ann", config(request_percentage="12.5", producer_byte_rate="1000")),
    ("/config/ips/10.0.0.1", config(connection_creation_rate="5")),
    ("/config/ips/localhost", config(connection_creation_rate="5")),
    ("/config/topics/orders", config(retention="1")),
    ("/config/topics/orders", config(retention__ms="-1")),
    ("/kafka-acl/Topic/orders", acl()),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with TunedLab(AUTHORIZER) as running:
        running.create_topic("orders", 1)
        yield running


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[KazooClient]:
    session = KazooClient(lab.zookeeper_connect)
    session.start(SECONDS)
    yield session
    session.stop()
    session.close()


def is_refused(client: KazooClient) -> bool:
    """Return the gate's answer."""
    read = fetch_metadata_znodes(client, lambda _: False)
    facts = PreflightFacts(
        Facts(datetime.now(UTC), read.control, ()),
        pl.DataFrame(read.partitions),
        pl.DataFrame(read.items),
        fetch_preflight_znodes(client),
    )
    rows = [each for each in preflight(facts) if each.check_id in READ_AT_START and each.severity == BLOCK]
    return any(each.is_met is not True for each in rows)


def starts(lab: Lab, client: KazooClient) -> bool:
    """Return whether the broker starts again, as one whose ephemeral znode is gone."""
    (broker,) = lab.servers.brokers
    broker.process.kill()
    wait_until(lambda: not client.get_children("/brokers/ids"), "no broker in /brokers/ids", SECONDS)
    broker.launch()
    wait_until(lambda: broker.has_started() or not broker.process.running, "the start or the end", SECONDS)
    return broker.process.running


@pytest.mark.parametrize(
    ("path", "data", "is_sound"), [*((*each, False) for each in ENDS), *((*each, True) for each in STARTS)]
)
def test_a_broker_starts_beside_a_znode_if_the_gate_lets_it(
    lab: Lab, client: KazooClient, path: str, data: bytes, is_sound: bool
) -> None:
    before = client.get(path)[0] if client.exists(path) else None
    client.ensure_path(path)
    client.set(path, data)
    try:
        assert (starts(lab, client), is_refused(client)) == (is_sound, not is_sound)
    finally:
        if before is None:
            client.delete(path)
        else:
            client.set(path, before)
