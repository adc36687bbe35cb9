"""Secured labs that move to KRaft, by the login of their nodes: SCRAM and PLAIN, Kerberos, tokens, or certificates.

Controllers that take SCRAM alone are no such lab. Three of them were tried on Kafka 3.9.1, with the users of
``kafka-storage format --add-scram``. They refused each other's logins: these users are records that a leader writes,
and without logins no leader is elected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kit.lab import Lab
from kit.lab.servers.cluster import Servers
from kit.lab.servers.migrating_cluster import MigratingServers
from kit.lab.servers.security import (
    MECHANISMS,
    NODE_USER,
    PASSWORD_VARIABLE,
    USER,
    ZOOKEEPER_USER,
    ZOOKEEPER_VARIABLE,
    Security,
)
from kit.profile.security.kerberos import KerberosLogin
from kit.profile.security.settings import GSSAPI, OAUTHBEARER
from tests.generators.certificates import Chain
from tests.servers.issuer import SECRET, Issuer
from tests.servers.realm import PEER, REALM, ZOOKEEPER, Realm
from tests.servers.sasl_lab import node_login

SHAPE: dict[str, Any] = {"brokers": 2, "secured": True}


class _KerberosSecurity(Security):
    """Nodes call each other, and ZooKeeper, by Kerberos alone. Access lists name them as ``kafka``, as on HDP."""

    def __init__(self, folder: Path, realm: Realm) -> None:
        super().__init__(folder, moves=True)
        self.realm = realm

    @property
    def options(self) -> tuple[str, ...]:
        return (*super().options, *(each for each in self.realm.options if "krb5.conf" in each))

    @property
    def zookeeper_login(self) -> dict[str, Any]:
        login = KerberosLogin("zookeeper", f"{PEER}@{REALM}", self.realm.keytab(PEER))
        by_kerberos = {"mechanism": GSSAPI, "service": "zookeeper", "login": login}
        return {"auth_data": [("digest", self.digest)], "sasl_options": by_kerberos}

    def write_logins(self) -> None:
        sections = {"Server": ZOOKEEPER, "Client": PEER}
        text = "".join(f"{name} {{ {self.realm.jaas_config(each)} }};\n" for name, each in sections.items())
        self.file("jaas.conf").write_text(text, encoding="utf-8")

    def node_settings(self) -> dict[str, str]:
        return {
            **super().node_settings(),
            "sasl.mechanism.inter.broker.protocol": GSSAPI,
            "sasl.enabled.mechanisms": f"{MECHANISMS},{GSSAPI}",
            "sasl.kerberos.service.name": "kafka",
            "listener.name.sasl_ssl.gssapi.sasl.jaas.config": self.realm.jaas_config(PEER),
        }

    def controller_settings(self) -> dict[str, str]:
        return {
            "sasl.mechanism.controller.protocol": GSSAPI,
            "sasl.kerberos.service.name": "kafka",
            "listener.name.controller.sasl.enabled.mechanisms": GSSAPI,
            "listener.name.controller.gssapi.sasl.jaas.config": self.realm.jaas_config(PEER),
            **self.store_settings(),
        }

    def caller_settings(self) -> dict[str, str]:
        return self.node_settings()

    def zookeeper_settings(self) -> dict[str, str]:
        names = ("kerberos.removeHostFromPrincipal", "kerberos.removeRealmFromPrincipal")
        return super().zookeeper_settings() | dict.fromkeys(names, "true")


class KerberosLab(Lab):
    """Java asks a ticket for the name of 127.0.0.1, so all addresses with a login have that name."""

    def __init__(self, realm: Realm, **shape: Any) -> None:
        super().__init__(**shape)
        self._realm = realm

    def _new_security(self) -> Security:
        return _KerberosSecurity(self.folder, self._realm)

    def _servers(self) -> Servers:
        servers = super()._servers()
        assert isinstance(servers, MigratingServers)
        quorum = servers.quorum
        quorum.super_users = (ZOOKEEPER_USER,)
        servers.zookeeper.connect = _named(servers.zookeeper.connect)
        quorum.zookeeper_connect = servers.zookeeper_connect
        for node, at in quorum.addresses.items():
            quorum.addresses[node] = _named(at)
        for controller in servers.controllers:
            controller.addresses["CONTROLLER"] = quorum.addresses[controller.broker_id]
            controller.zookeeper_connect = servers.zookeeper_connect
        for broker in servers.migrating:
            broker.zookeeper_connect = servers.zookeeper_connect
            broker.addresses["SASL_SSL"] = _named(broker.addresses["SASL_SSL"])
            broker.added["listeners"] = ",".join(f"{name}://{at}" for name, at in broker.addresses.items())
        return servers

    def profile_toml(self, protocol: str = "SASL_SSL", zookeeper_tls: bool = False) -> str:
        text = super().profile_toml(protocol, zookeeper_tls)
        for user, variable, principal in (
            (f'mechanism = "PLAIN"\nusername = "{USER}"', PASSWORD_VARIABLE, USER),
            (f'username = "{ZOOKEEPER_USER}"', ZOOKEEPER_VARIABLE, PEER),
        ):
            keys = f'principal = "{principal}@{REALM}"\nkeytab = "{self._realm.keytab(principal)}"'
            text = text.replace(f'{user}\npassword = {{ env = "{variable}" }}', f'mechanism = "{GSSAPI}"\n{keys}')
        return text


class _TokenSecurity(Security):
    """Brokers and controllers log in at each other by tokens, as does offramp."""

    def __init__(self, folder: Path, issuer: Issuer) -> None:
        super().__init__(folder, moves=True)
        self.issuer = issuer

    def node_settings(self) -> dict[str, str]:
        by_token = {"sasl.mechanism.inter.broker.protocol": OAUTHBEARER, **node_login(self.issuer, "sasl_ssl")}
        return super().node_settings() | by_token | {"sasl.enabled.mechanisms": f"{MECHANISMS},{OAUTHBEARER}"}

    def controller_settings(self) -> dict[str, str]:
        return {
            "sasl.mechanism.controller.protocol": OAUTHBEARER,
            "listener.name.controller.sasl.enabled.mechanisms": OAUTHBEARER,
            **node_login(self.issuer, "controller"),
            **self.store_settings(),
        }

    def caller_settings(self) -> dict[str, str]:
        return self.node_settings()


class TokenLab(Lab):
    def __init__(self, issuer: Issuer, **shape: Any) -> None:
        super().__init__(**shape)
        self.issuer = issuer

    def _new_security(self) -> Security:
        return _TokenSecurity(self.folder, self.issuer)

    def _servers(self) -> Servers:
        servers = super()._servers()
        assert isinstance(servers, MigratingServers)
        servers.quorum.super_users = (USER,)
        return servers

    @property
    def secrets(self) -> dict[str, str]:
        return {**super().secrets, "CLIENT_SECRET": SECRET}

    def profile_toml(self, protocol: str = "SASL_SSL", zookeeper_tls: bool = False) -> str:
        keys = (
            f'token_url = "{self.issuer.token_url}"\nclient_id = "{USER}"\nclient_secret = {{ env = "CLIENT_SECRET" }}'
        )
        by_password = f'mechanism = "PLAIN"\nusername = "{USER}"\npassword = {{ env = "{PASSWORD_VARIABLE}" }}'
        text = super().profile_toml(protocol, zookeeper_tls)
        return text.replace(by_password, f'mechanism = "{OAUTHBEARER}"\n{keys}')


class _CertificateSecurity(Security):
    """Controllers take no connection without a certificate. All certificates are of an intermediate authority."""

    def make_certificates(self) -> None:
        super().make_certificates()
        chain = Chain(self.folder)
        chain.write("node", NODE_USER)
        chain.write("client", USER)

    def store_settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.file("node-all.pem")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.file("ca.pem")),
        }

    def controller_settings(self) -> dict[str, str]:
        plain = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
        return {
            "listener.security.protocol.map": ",".join([*(f"{each}:{each}" for each in plain), "CONTROLLER:SSL"]),
            "listener.name.controller.ssl.client.auth": "required",
            **self.store_settings(),
        }


class CertificateLab(Lab):
    def _new_security(self) -> Security:
        return _CertificateSecurity(self.folder, moves=True)

    def _servers(self) -> Servers:
        servers = super()._servers()
        assert isinstance(servers, MigratingServers)
        servers.quorum.super_users = (f"CN={USER}", f"CN={NODE_USER}")
        return servers

    def profile_toml(self, protocol: str = "SSL", zookeeper_tls: bool = False) -> str:
        return super().profile_toml("SSL", zookeeper_tls)


def _named(address: str) -> str:
    return address.replace("127.0.0.1", "localhost")


@contextmanager
def plain_lab(controllers: int) -> Iterator[Lab]:
    with Lab(controllers=controllers, **SHAPE) as lab:
        yield lab


@contextmanager
def kerberos_lab(controllers: int) -> Iterator[Lab]:
    with TemporaryDirectory() as folder, Realm(Path(folder), [USER]) as realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        with KerberosLab(realm, controllers=controllers, **SHAPE) as lab:
            yield lab


LABS: Mapping[str, Callable[[int], Any]] = {"SCRAM": plain_lab, "Kerberos": kerberos_lab}
"""The logins of brokers at brokers. At controllers they log in by PLAIN or by Kerberos."""
