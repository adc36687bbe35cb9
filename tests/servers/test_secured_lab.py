"""The secured lab lets the right ones in, and only them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from kit.lab.lab import PROTECTED_GROUP
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from tests.servers.awaiting import SECONDS
from tests.soak import first


def client_of(settings: Mapping[str, str], **callbacks: Callable[[KafkaError], Any]) -> AdminClient:
    """A client with dotted settings, which are written with underscores here."""
    return AdminClient(QUIET | {name.replace("_", "."): value for name, value in settings.items()} | callbacks)


def ask(**settings: str) -> str:
    """The cluster id."""
    return client_of(settings).list_topics(timeout=SECONDS).cluster_id


def refusal(**settings: str) -> int:
    """The code of the first error of a client. The client itself tries to connect repeatedly."""
    errors = list[KafkaError]()
    client = client_of(settings, error_cb=errors.append)
    answer = client.describe_cluster()
    wait_until(lambda: client.poll(0.1) is not None and bool(errors), "a refusal", SECONDS)
    assert not answer.done()
    return errors[0].code()


def sasl(lab, mechanism: str, password: str) -> dict[str, str]:
    return {
        "bootstrap_servers": lab.bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": str(lab.security.file("ca.pem")),
        "sasl_mechanism": mechanism,
        "sasl_username": "alice",
        "sasl_password": password,
    }


@pytest.mark.parametrize("mechanism", first(["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]))
def test_password_is_asked_for(secured_lab, mechanism):
    right = secured_lab.secrets["OFFRAMP_KAFKA_PASSWORD"]
    assert ask(**sasl(secured_lab, mechanism, right)) == secured_lab.cluster_id
    assert refusal(**sasl(secured_lab, mechanism, "wrong")) == KafkaError._AUTHENTICATION


def test_broker_of_another_authority_is_refused(secured_lab):
    settings = sasl(secured_lab, "PLAIN", secured_lab.secrets["OFFRAMP_KAFKA_PASSWORD"])
    other = {"ssl_ca_location": str(secured_lab.security.file("other-ca.pem"))}
    assert refusal(**settings | other) == KafkaError._SSL


def test_client_certificate_is_asked_for(secured_lab):
    settings = {
        "bootstrap_servers": secured_lab.servers.addresses("SSL"),
        "security_protocol": "SSL",
        "ssl_ca_location": str(secured_lab.security.file("ca.pem")),
    }
    own = {
        "ssl_certificate_location": str(secured_lab.security.file("client.pem")),
        "ssl_key_location": str(secured_lab.security.file("client.key")),
    }
    assert ask(**settings, **own) == secured_lab.cluster_id
    assert refusal(**settings) in (KafkaError._SSL, KafkaError._TRANSPORT)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("digest", ["right", "wrong", "none"])
def test_consumers_are_behind_the_digest(secured_lab, tls, digest):
    given = {"right": [("digest", secured_lab.secrets["OFFRAMP_ZK_DIGEST"])], "wrong": [("digest", "alice:wrong")]}
    connect = secured_lab.servers.zookeeper_tls_connect if tls else secured_lab.zookeeper_connect
    options = {"use_ssl": True, "ca": str(secured_lab.security.file("ca.pem"))} if tls else {}
    client = KazooClient(connect, auth_data=given.get(digest, []), **options)
    client.start(SECONDS)
    try:
        if digest == "right":
            assert PROTECTED_GROUP in client.get_children("/consumers")
            assert client.get(f"/consumers/{PROTECTED_GROUP}/offsets/payments/0")[0] == b"7"
        else:
            with pytest.raises(NoAuthError):
                client.get_children("/consumers")
        assert client.get_children("/brokers/ids") == ["1"]
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_profile_names_secrets_without_holding_them(secured_lab, protocol):
    text = secured_lab.profile_toml(protocol, zookeeper_tls=True)
    cluster = tomllib.loads(text)["clusters"]["lab"]
    assert cluster["security"]["kafka"]["protocol"] == protocol
    assert cluster["security"]["zookeeper"]["digest"] == {"env": "OFFRAMP_ZK_DIGEST"}
    assert not any(secret in text for secret in secured_lab.secrets.values())
