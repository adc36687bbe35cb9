"""Sentences for a login that brokers or ZooKeeper refused: who was refused, and what to check."""

from __future__ import annotations

from kit.errors import OfframpError
from kit.profile.security.settings import GSSAPI, KafkaSecurity, ZookeeperSecurity
from kit.profile.security.token import Token
from kit.profile.security.tokens import provider_of, shown_time
from kit.text.visible import visible


def who(security: KafkaSecurity) -> str:
    """The login of this section, for people."""
    if not security.uses_sasl:
        return "TLS login"
    if security.mechanism == GSSAPI:
        return f"GSSAPI login as {security.principal or 'the default principal'}"
    if security.username is not None:
        return f"{security.mechanism} login as {security.username!r}"
    return f"{security.mechanism} login{f' as client {security.client_id!r}' if security.client_id else ''}"


def kafka_remedy(security: KafkaSecurity) -> str:
    """Return what to check, without the last full stop."""
    if not security.uses_sasl:
        return (
            "check certificate_file and key_file in security.kafka, and the certificate authority that the "
            "brokers trust"
        )
    if security.mechanism == GSSAPI:
        return (
            "check that service_name is the brokers' sasl.kerberos.service.name, and that the brokers' clocks and "
            "their sasl.kerberos.principal.to.local.rules are right"
        )
    if security.username is not None:
        return "check the user and the password in security.kafka"
    return (
        f"{_described(security)}; compare it with the brokers' sasl.oauthbearer.expected.issuer, "
        "sasl.oauthbearer.expected.audience and sasl.oauthbearer.jwks.endpoint.url"
    )


def zookeeper_remedy(security: ZookeeperSecurity) -> str:
    if security.sasl_mechanism == GSSAPI:
        return "check that service_name and the servers' host names are those of the servers' keytab"
    return "check security.zookeeper"


def _described(security: KafkaSecurity) -> str:
    try:
        return described_token(provider_of(security).token())
    except OfframpError as error:
        return str(error).rstrip(".")


def described_token(token: Token) -> str:
    """The claims by which a broker judges a token. The token itself is a secret."""
    claims = token.claims
    if not claims:
        return "the token is no JWT, so its claims are unknown"
    said = [f"{name} {visible(str(claims.get(claim, 'none')))}" for name, claim in _CLAIMS.items()]
    if token.expires_at_s is not None:
        said.append(f"end {shown_time(token.expires_at_s)}")
    return f"the token has {', '.join(said)}"


_CLAIMS = {"issuer": "iss", "audience": "aud", "subject": "sub"}
