"""The secured lab lets the right ones in, and only them."""

from __future__ import annotations

import tomllib

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from kit.lab.lab import PROTECTED_GROUP
from kit.lab.topics import QUIET
from tests.soak import first


def ask(**settings: str) -> str:
    """The cluster id, asked with dotted settings written with underscores."""
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    return AdminClient({**QUIET, **dotted}).list_topics(timeout=4).cluster_id


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
    with pytest.raises(KafkaException):
        ask(**sasl(secured_lab, mechanism, "wrong"))


def test_broker_of_another_authority_is_refused(secured_lab):
    settings = sasl(secured_lab, "PLAIN", secured_lab.secrets["OFFRAMP_KAFKA_PASSWORD"])
    with pytest.raises(KafkaException):
        ask(**settings | {"ssl_ca_location": str(secured_lab.security.file("other-ca.pem"))})


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
    with pytest.raises(KafkaException):
        ask(**settings)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("digest", ["right", "wrong", "none"])
def test_consumers_are_behind_the_digest(secured_lab, tls, digest):
    given = {"right": [("digest", secured_lab.secrets["OFFRAMP_ZK_DIGEST"])], "wrong": [("digest", "alice:wrong")]}
    connect = secured_lab.servers.zookeeper_tls_connect if tls else secured_lab.zookeeper_connect
    options = {"use_ssl": True, "ca": str(secured_lab.security.file("ca.pem"))} if tls else {}
    client = KazooClient(connect, auth_data=given.get(digest, []), **options)
    client.start(15)
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
