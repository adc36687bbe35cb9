"""The sections ``security.kafka`` and ``security.zookeeper`` of a profile, and which keys each mechanism takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from kit.profile.security.secret import SecretReference

GSSAPI = "GSSAPI"
OAUTHBEARER = "OAUTHBEARER"
AWS_MSK_IAM = "AWS_MSK_IAM"
DIGEST_MD5 = "DIGEST-MD5"
_KERBEROS = ("service_name", "principal", "keytab", "ticket_cache")
_PASSWORD = ("username", "password")
_TOKEN_URL = ("token_url", "client_id", "client_secret", "scope", "token_ca_file")
KAFKA_KEYS = {
    "PLAIN": _PASSWORD,
    "SCRAM-SHA-256": _PASSWORD,
    "SCRAM-SHA-512": _PASSWORD,
    GSSAPI: _KERBEROS,
    OAUTHBEARER: (*_TOKEN_URL, "token", "token_command"),
    AWS_MSK_IAM: ("region",),
}
"""Mechanism → keys of ``security.kafka`` that it takes."""
ZOOKEEPER_KEYS = {DIGEST_MD5: _PASSWORD, GSSAPI: _KERBEROS}


def _check_keys(section: Any, mechanism: str, keys: Mapping[str, Sequence[str]]) -> None:
    """Refuse the keys of another mechanism: the reader would believe that they count."""
    foreign = {key for taken in keys.values() for key in taken} - set(keys[mechanism])
    given = sorted(key for key in foreign if getattr(section, key))
    if given:
        takes = ", ".join(keys[mechanism]) or "none of these"
        raise ValueError(f"mechanism {mechanism} takes {takes}; remove {', '.join(given)}")


def _is_private(url: str) -> bool:
    """Return whether no one on the way can read a request: TLS, or this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    if parts.scheme != "http":
        return False
    try:
        return parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class _Tls:
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: SecretReference | None = None

    def _check_tls(self) -> None:
        """Refuse keys that no client would use: the reader would believe that they count."""
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("key_file needs certificate_file")
        if self.key_password is not None and self.certificate_file is None:
            raise ValueError("key_password needs certificate_file")


@dataclass(frozen=True, kw_only=True)
class _Kerberos:
    """``ticket_cache`` is a name as ``KRB5CCNAME`` has it. Without it and ``keytab``, the user's own tickets count."""

    service_name: str | None = None
    principal: str | None = None
    keytab: Path | None = None
    ticket_cache: str | None = None

    def _check_kerberos(self) -> None:
        if self.keytab is not None and self.ticket_cache is not None:
            raise ValueError("give keytab or ticket_cache, not both")
        if self.keytab is not None and self.principal is None:
            raise ValueError("keytab needs principal: a keytab may hold several")


@dataclass(frozen=True, kw_only=True)
class KafkaSecurity(_Tls, _Kerberos):
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM"] | None = None
    username: str | None = None
    password: SecretReference | None = None
    token_url: str | None = None
    client_id: str | None = None
    client_secret: SecretReference | None = None
    scope: str | None = None
    token_ca_file: Path | None = None
    token: SecretReference | None = None
    token_command: tuple[str, ...] = ()
    region: str | None = None

    def __post_init__(self) -> None:
        self._check_tls()
        tls = [key for key in ("ca_file", "certificate_file") if getattr(self, key)]
        if tls and not self.uses_tls:
            raise ValueError(f"{tls[0]} needs protocol SSL or SASL_SSL: with {self.protocol} nothing is encrypted")
        if not self.uses_sasl:
            given = sorted({key for keys in KAFKA_KEYS.values() for key in keys if getattr(self, key)})
            if self.mechanism is not None or given:
                given = given if self.mechanism is None else [f"mechanism {self.mechanism}"]
                raise ValueError(f"{given[0]} needs protocol SASL_SSL or SASL_PLAINTEXT: {self.protocol} has no login")
            return
        if self.mechanism is None:
            raise ValueError(f"{self.protocol} needs mechanism, and the keys of that mechanism")
        _check_keys(self, self.mechanism, KAFKA_KEYS)
        if KAFKA_KEYS[self.mechanism] is _PASSWORD and not (self.username and self.password):
            raise ValueError(f"{self.protocol} needs mechanism, username and password")
        self._check_kerberos()
        if self.mechanism == OAUTHBEARER:
            self._check_token()
        if self.mechanism == AWS_MSK_IAM and not (self.region and self.protocol == "SASL_SSL"):
            raise ValueError("AWS_MSK_IAM needs region, and protocol SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    def _check_token(self) -> None:
        sources = [self.token_url is not None, self.token is not None, bool(self.token_command)]
        if sum(sources) != 1:
            raise ValueError("OAUTHBEARER needs one of token_url, token and token_command")
        if self.token_url is None:
            return
        if "@" in urlsplit(self.token_url).netloc:
            raise ValueError("token_url must not hold a user or a password: give client_id and client_secret")
        if not (self.client_id and self.client_secret):
            raise ValueError("token_url needs client_id and client_secret")
        if not _is_private(self.token_url):
            raise ValueError("token_url must be https: over http the client secret can be read on the network")


@dataclass(frozen=True, kw_only=True)
class ZookeeperSecurity(_Tls, _Kerberos):
    digest: SecretReference | None = None
    mechanism: Literal["DIGEST-MD5", "GSSAPI"] | None = None
    username: str | None = None
    password: SecretReference | None = None
    check_host_name: bool = True

    def __post_init__(self) -> None:
        self._check_tls()
        if (self.username is None) != (self.password is None):
            raise ValueError("SASL needs username and password")
        if self.sasl_mechanism is None:
            _check_keys(self, "no mechanism", {"no mechanism": (), **ZOOKEEPER_KEYS})
            return
        _check_keys(self, self.sasl_mechanism, ZOOKEEPER_KEYS)
        if self.sasl_mechanism == DIGEST_MD5 and self.username is None:
            raise ValueError(f"{DIGEST_MD5} needs username and password")
        self._check_kerberos()

    @property
    def uses_tls(self) -> bool:
        return self.ca_file is not None or self.certificate_file is not None

    @property
    def sasl_mechanism(self) -> str | None:
        """``mechanism``, or DIGEST-MD5 where only a user is given."""
        return self.mechanism or (DIGEST_MD5 if self.username is not None else None)


def section_of(security: KafkaSecurity | ZookeeperSecurity) -> str:
    """Return where the profile has these keys."""
    return "security.kafka" if isinstance(security, KafkaSecurity) else "security.zookeeper"


@dataclass(frozen=True, kw_only=True)
class Security:
    kafka: KafkaSecurity = KafkaSecurity()
    zookeeper: ZookeeperSecurity = ZookeeperSecurity()
