"""Logins as each client takes them: kafka-python, librdkafka, kazoo."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import puresasl.mechanisms
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslBytesRequest

from kit.errors import SetupError
from kit.profile.security.kerberos import Exchange, KerberosLogin, credentials, login_of
from kit.profile.security.secret import Secret
from kit.profile.security.settings import (
    AWS_MSK_IAM,
    DIGEST_MD5,
    GSSAPI,
    KAFKA_KEYS,
    OAUTHBEARER,
    KafkaSecurity,
    ZookeeperSecurity,
)
from kit.profile.security.tokens import provider_of

KAFKA_SERVICE, ZOOKEEPER_SERVICE = "kafka", "zookeeper"
IN_WHEEL = frozenset(KAFKA_KEYS) - {GSSAPI}
"""Mechanisms that the wheel of confluent-kafka has."""
EXTRAS = {GSSAPI: "kerberos", AWS_MSK_IAM: "msk"}
"""Mechanism → the extra of offramp that it needs."""
BY_TOKEN = (OAUTHBEARER, AWS_MSK_IAM)
"""Mechanisms that log in by a token; Amazon MSK takes the signed one by OAUTHBEARER."""


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, security: KafkaSecurity) -> None:
        super().__init__()
        self._security = security

    def token(self) -> Secret:
        return provider_of(self._security).token().value


@dataclass(frozen=True)
class TokenCallback:
    """``oauth_cb`` of librdkafka; it can be pickled, and finds the provider of its own process."""

    security: KafkaSecurity

    def __call__(self, _: object) -> tuple[str, float]:
        token = provider_of(self.security).token()
        assert token.expires_at_s is not None
        return str(token.value), token.expires_at_s


class _KafkaKerberos(SaslMechanism):  # type: ignore[misc]
    """kafka-python's own mechanism knows neither a keytab nor a ticket cache of a login."""

    def __init__(self, host: str, sasl_kerberos_name: KerberosLogin, **_: Any) -> None:
        self._exchange = Exchange(sasl_kerberos_name, host)
        self._next = self._exchange.step(None)
        self._is_done = False

    def auth_bytes(self) -> bytes:
        self._is_done = self._exchange.is_complete  # Its last message is the client's.
        return self._next

    def receive(self, challenge: bytes) -> None:
        if not self._is_done:
            self._next = self._exchange.step(challenge)

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_done

    def auth_details(self) -> str:
        return "Authenticated via SASL / GSSAPI"


class _ZookeeperKerberos(puresasl.mechanisms.Mechanism):  # type: ignore[misc]
    """pure-sasl's own mechanism needs the package ``kerberos``, and knows no keytab."""

    name = GSSAPI

    def __init__(self, sasl: Any, login: KerberosLogin, **properties: Any) -> None:
        super().__init__(sasl, **properties)
        self._exchange = Exchange(login, sasl.host)

    def process(self, challenge: bytes | None = None) -> bytes:
        answer = self._exchange.step(challenge)
        self.complete = self._exchange.is_complete
        return answer

    def dispose(self) -> None:
        """Nothing is kept."""


class _NoCredentials(logging.Filter):
    """kafka-python logs each request at level DEBUG, and the bytes of it: those of a login are credentials."""

    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(
            isinstance(each, (SaslAuthenticateRequest, SaslBytesRequest, bytes, bytearray)) for each in given
        )


for _name in ("kafka.protocol.parser", "kafka.net.connection"):
    logging.getLogger(_name).addFilter(_NoCredentials())
register_sasl_mechanism(GSSAPI, _KafkaKerberos, overwrite=True)
puresasl.mechanisms.mechanisms[GSSAPI] = _ZookeeperKerberos


def check_login(security: KafkaSecurity | ZookeeperSecurity) -> None:
    """Get the first token, or the first ticket, before a connection is made.

    Raises:
        SetupError, ProfileError, AuthenticationFailed, ConnectError: as ``TokenProvider.token`` and ``credentials``.
    """
    if isinstance(security, ZookeeperSecurity):
        if security.sasl_mechanism == GSSAPI:
            credentials(login_of(security, ZOOKEEPER_SERVICE))
    elif security.uses_sasl and security.mechanism == GSSAPI:
        credentials(login_of(security, KAFKA_SERVICE))
    elif security.uses_sasl and security.mechanism in BY_TOKEN:
        provider_of(security).token()


def kafka_python_login(security: KafkaSecurity) -> dict[str, Any]:
    """kafka-python's ``sasl_…`` arguments; empty without SASL."""
    if not security.uses_sasl:
        return {}
    if security.mechanism in BY_TOKEN:
        return {"sasl_mechanism": OAUTHBEARER, "sasl_oauth_token_provider": _TokenProvider(security)}
    if security.mechanism == GSSAPI:
        return {"sasl_mechanism": GSSAPI, "sasl_kerberos_name": login_of(security, KAFKA_SERVICE)}
    assert security.password is not None
    return {
        "sasl_mechanism": security.mechanism,
        "sasl_plain_username": security.username,
        "sasl_plain_password": security.password.reveal(),
    }


def librdkafka_login(security: KafkaSecurity) -> dict[str, Any]:
    """librdkafka's ``sasl.…`` keys; empty without SASL.

    Raises:
        SetupError: the login is by Kerberos, and this build of confluent-kafka lacks it.
    """
    if not security.uses_sasl:
        return {}
    if security.mechanism in BY_TOKEN:
        return {"sasl.mechanism": OAUTHBEARER, "oauth_cb": TokenCallback(security)}
    check_record_reading(security)
    if security.mechanism == GSSAPI:
        return _librdkafka_kerberos(login_of(security, KAFKA_SERVICE))
    assert security.password is not None
    values = {"sasl.mechanism": security.mechanism, "sasl.username": security.username}
    return {**values, "sasl.password": security.password.reveal()}


def check_record_reading(security: KafkaSecurity) -> None:
    """Before Spark starts: whether librdkafka, which reads records, can log in. Raises SetupError."""
    if security.uses_sasl and security.mechanism not in IN_WHEEL and not librdkafka_has_kerberos():
        raise SetupError(
            "This command reads records with confluent-kafka, whose wheel is built without Kerberos. Build "
            "confluent-kafka on this machine, against a librdkafka with libsasl2: see docs/security.md, Kerberos. "
            "Commands that read groups, and plans, do not need this build."
        )


def _librdkafka_kerberos(login: KerberosLogin) -> dict[str, Any]:
    values = {"sasl.mechanism": GSSAPI, "sasl.kerberos.service.name": login.service_name}
    kinit = {"sasl.kerberos.keytab": str(login.keytab), "sasl.kerberos.principal": str(login.principal)}
    return values | (kinit if login.keytab else {"sasl.kerberos.kinit.cmd": "true"})


@cache
def librdkafka_has_kerberos() -> bool:
    """Return whether the installed build has a provider for GSSAPI; a client without brokers is made to see it."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": GSSAPI, "sasl.kerberos.kinit.cmd": "true"})
    except KafkaException:
        return False
    return True


def kazoo_login(security: ZookeeperSecurity) -> dict[str, Any]:
    """kazoo's ``sasl_options``; empty without SASL."""
    if security.sasl_mechanism == GSSAPI:
        login = login_of(security, ZOOKEEPER_SERVICE)
        return {"sasl_options": {"mechanism": GSSAPI, "service": login.service_name, "login": login}}
    if security.sasl_mechanism is None:
        return {}
    assert security.password is not None
    login_by_digest = {"mechanism": DIGEST_MD5, "username": security.username, "password": security.password.reveal()}
    return {"sasl_options": login_by_digest}
