"""The keys that a login needs and takes, by mechanism; and how each client gets it."""

from __future__ import annotations

import pickle
from pathlib import Path

import puresasl.mechanisms
import pytest
from confluent_kafka import Producer
from kafka.net.sasl import get_sasl_mechanism

from kit.profile.security.clients import (
    BY_TOKEN,
    IN_WHEEL,
    TokenCallback,
    kafka_python_login,
    kazoo_login,
    librdkafka_login,
)
from kit.profile.security.kerberos import KerberosLogin
from kit.profile.security.secret import SecretReference
from kit.profile.security.settings import (
    GSSAPI,
    KAFKA_KEYS,
    OAUTHBEARER,
    ZOOKEEPER_KEYS,
    KafkaSecurity,
    ZookeeperSecurity,
)

SECRET = SecretReference(env="S")
PASSWORD = {"username": "u", "password": SECRET}
CLIENT = {"client_id": "c", "client_secret": SECRET}
WRONG = [
    ({"mechanism": "PLAIN", **PASSWORD}, "needs protocol SASL_SSL or SASL_PLAINTEXT"),
    ({"protocol": "SSL", **PASSWORD}, "password needs protocol SASL_SSL or SASL_PLAINTEXT"),
    ({"ca_file": Path("ca")}, "ca_file needs protocol SSL or SASL_SSL"),
    (
        {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", **PASSWORD, "certificate_file": Path("c")},
        "certificate_file needs protocol SSL or SASL_SSL",
    ),
    ({"protocol": "SASL_SSL"}, "needs mechanism"),
    ({"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u"}, "needs mechanism, username and password"),
    ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", **PASSWORD}, "remove password, username"),
    ({"protocol": "SASL_SSL", "mechanism": "GSSAPI", "keytab": Path("k")}, "keytab needs principal"),
    (
        {"protocol": "SASL_SSL", "mechanism": "GSSAPI", "keytab": Path("k"), "ticket_cache": "c", "principal": "p"},
        "keytab or ticket_cache",
    ),
    ({"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER"}, "needs one of token_url, token and token_command"),
    (
        {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token": SECRET, "token_command": ("x",)},
        "needs one of token_url, token and token_command",
    ),
    (
        {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_url": "https://i/t", "client_id": "c"},
        "needs client_id and client_secret",
    ),
    ({"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM"}, "needs region"),
    ({"protocol": "SASL_PLAINTEXT", "mechanism": "AWS_MSK_IAM", "region": "r"}, "needs region, and protocol SASL_SSL"),
]


@pytest.mark.parametrize(("keys", "said"), WRONG)
def test_a_login_that_lacks_a_key_or_has_a_foreign_one_is_refused(keys, said):
    with pytest.raises(ValueError, match=said):
        KafkaSecurity(**keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"username": "u"}, "needs username and password"),
        ({"mechanism": "DIGEST-MD5"}, "needs username and password"),
        ({"mechanism": "GSSAPI", **PASSWORD}, "remove password, username"),
        ({"principal": "p"}, "remove principal"),
    ],
)
def test_a_login_at_zookeeper_is_held_to_its_mechanism(keys, said):
    with pytest.raises(ValueError, match=said):
        ZookeeperSecurity(**keys)


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://issuer.example/token", True),
        ("http://localhost:8080/token", True),
        ("http://127.0.0.1/token", True),
        ("http://[::1]/token", True),
        ("http://issuer.example/token", False),
        ("http://localhost.example/token", False),
        ("file:///etc/passwd", False),
        ("https://", False),
    ],
)
def test_a_client_secret_travels_over_tls_or_not_at_all(url, is_taken):
    keys = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_url": url, **CLIENT}
    if is_taken:
        KafkaSecurity(**keys)
    else:
        with pytest.raises(ValueError, match="must be https"):
            KafkaSecurity(**keys)


def test_both_kafka_clients_log_in_by_token_for_oauth_and_for_msk():
    for keys in ({"mechanism": "OAUTHBEARER", "token": SECRET}, {"mechanism": "AWS_MSK_IAM", "region": "r"}):
        security = KafkaSecurity(protocol="SASL_SSL", **keys)
        assert kafka_python_login(security)["sasl_mechanism"] == "OAUTHBEARER"
        login = librdkafka_login(security)
        assert login == {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": TokenCallback(security)}
        assert pickle.loads(pickle.dumps(login)) == login


def test_kerberos_of_kafka_and_of_zookeeper_are_apart():
    keytab = {"mechanism": "GSSAPI", "principal": "p", "keytab": Path("k")}
    kafka = kafka_python_login(KafkaSecurity(protocol="SASL_SSL", **keytab))
    assert kafka["sasl_kerberos_name"] == KerberosLogin("kafka", "p", Path("k"))
    zookeeper = kazoo_login(ZookeeperSecurity(service_name="zk", **keytab))
    assert zookeeper["sasl_options"]["login"] == KerberosLogin("zk", "p", Path("k"))


def test_the_table_of_logins_is_what_the_installed_clients_can_do():
    """docs/security.md makes its table from these: KAFKA_KEYS, ZOOKEEPER_KEYS, IN_WHEEL."""
    for mechanism in KAFKA_KEYS:
        assert get_sasl_mechanism(OAUTHBEARER if mechanism in BY_TOKEN else mechanism) is not None
    assert ZOOKEEPER_KEYS.keys() <= puresasl.mechanisms.mechanisms.keys()
    for mechanism in IN_WHEEL:
        name = OAUTHBEARER if mechanism in BY_TOKEN else mechanism
        login = {"sasl.username": "u", "sasl.password": "p"} if name != OAUTHBEARER else {}
        Producer({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": name, **login})
    assert KAFKA_KEYS.keys() - IN_WHEEL == {GSSAPI}
