"""What a secured lab adds: certificates, SASL_SSL and mutual TLS on the brokers, digest ACLs and TLS in ZooKeeper."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient
from kazoo.security import ACL, make_digest_acl

from kit.errors import LabError
from kit.lab.java import compiled, jars, jvm
from kit.lab.ports import free_ports

USER = "alice"
NODE_USER = "node"
"""As whom nodes call controllers."""
PASSWORD_VARIABLE = "OFFRAMP_KAFKA_PASSWORD"
DIGEST_VARIABLE = "OFFRAMP_ZK_DIGEST"
KEYTOOL_CLASSES = ["--add-exports", "java.base/sun.security.tools.keytool=ALL-UNNAMED"]
SCRAM_ITERATIONS = 4096
MODULES = "org.apache.kafka.common.security"


class Security:
    """Secrets and certificates of one lab, made when it starts, under ``folder``.

    ``secrets`` holds the environment variables that the profile refers to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "security"
        self.password = secrets.token_hex(12)
        self.digest = f"{USER}:{secrets.token_hex(12)}"
        self._store_password = secrets.token_hex(12)

    @property
    def secrets(self) -> dict[str, str]:
        """Environment variable → secret, as ``profile`` names them."""
        return {PASSWORD_VARIABLE: self.password, DIGEST_VARIABLE: self.digest}

    def file(self, name: str) -> Path:
        """``ca.pem``, ``other-ca.pem`` (signed nothing here), ``client.pem``, ``client.key``."""
        return self.folder / name

    def make_certificates(self) -> None:
        """Write the certificates; raises LabError with the key tool's words."""
        self.folder.mkdir()
        classes = compiled.classes("Certificates.java", jars.SERVERS)
        arguments = [str(self.folder), self._store_password]
        command = jvm.java(str(classes), "Certificates", arguments, 64, self.folder.parent, KEYTOOL_CLASSES)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"The lab's certificates were not made:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")

    @cached_property
    def _stores(self) -> dict[str, str]:
        return {
            "keystore": str(self.file("server.p12")),
            "truststore": str(self.file("trust.p12")),
        }

    def broker_settings(self, plaintext: str, sasl_ssl: str, ssl: str) -> dict[str, str]:
        """Three listeners: unprotected for the lab itself and old consumers, SASL over TLS, mutual TLS."""
        plain = f'{MODULES}.plain.PlainLoginModule required user_{USER}="{self.password}";'
        scram = f"{MODULES}.scram.ScramLoginModule required;"
        return {
            "listeners": f"PLAINTEXT://{plaintext},SASL_SSL://{sasl_ssl},SSL://{ssl}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
            "listener.name.ssl.ssl.client.auth": "required",
            **self._store_settings(),
        }

    def controller_settings(self) -> dict[str, str]:
        """The controllers' listener, for those who listen and for those who call: SASL_SSL with PLAIN."""
        users = " ".join(f'user_{name}="{self.password}"' for name in (NODE_USER, USER))
        login = f'{MODULES}.plain.PlainLoginModule required username="{NODE_USER}" password="{self.password}" {users};'
        return {
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": login,
            **self._store_settings(),
        }

    def _store_settings(self) -> dict[str, str]:
        settings = {"ssl.keystore.type": "PKCS12", "ssl.truststore.type": "PKCS12"}
        for store, path in self._stores.items():
            settings |= {f"ssl.{store}.location": path, f"ssl.{store}.password": self._store_password}
        return settings

    def zookeeper_settings(self) -> dict[str, str]:
        """A second, TLS-only client port; digest authentication needs no setting."""
        settings = {
            "secureClientPort": str(free_ports(1)[0]),
            "secureClientPortAddress": "127.0.0.1",
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.clientAuth": "none",
        }
        for store, path in self._stores.items():
            name = store.replace("store", "Store")
            settings |= {f"ssl.{name}.location": path, f"ssl.{name}.password": self._store_password}
        return settings

    def create_user(self, admin: AdminClient) -> None:
        """Store the user's SCRAM credentials in the cluster."""
        mechanisms = (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, SCRAM_ITERATIONS), self.password.encode())
            for mechanism in mechanisms
        ]
        for future in admin.alter_user_scram_credentials(wanted).values():
            future.result(30)

    def protect(self, zookeeper_connect: str, path: str, contents: Mapping[str, bytes]) -> None:
        """Put ``contents`` (path → data) under ``path`` and close it, and all below, to everyone without the digest."""
        user, _, password = self.digest.partition(":")
        closed: list[ACL] = [make_digest_acl(user, password, all=True)]
        client = KazooClient(zookeeper_connect, auth_data=[("digest", self.digest)])
        client.start(15)
        with closing(client):
            client.ensure_path(path)
            for name, data in contents.items():
                client.create(f"{path}/{name}", data, makepath=True)
            close_tree(client, path, closed)
            client.stop()


def close_tree(client: KazooClient, path: str, acl: list[ACL]) -> None:
    """Set ``acl`` on ``path`` and everything below it, children first."""
    for child in client.get_children(path):
        close_tree(client, f"{path}/{child}", acl)
    client.set_acls(path, acl)


def profile_sections(security: Security, protocol: str, zookeeper_tls: bool) -> str:
    """The security part of a profile, by reference only: ``SASL_SSL`` with SCRAM, or ``SSL`` with a certificate."""
    lines = ["[clusters.lab.security.kafka]", f'protocol = "{protocol}"', f'ca_file = "{security.file("ca.pem")}"']
    if protocol == "SASL_SSL":
        lines += [
            'mechanism = "SCRAM-SHA-512"',
            f'username = "{USER}"',
            f'password = {{ env = "{PASSWORD_VARIABLE}" }}',
        ]
    else:
        lines.append(f'certificate_file = "{security.file("client.pem")}"')
        lines.append(f'key_file = "{security.file("client.key")}"')
    lines += ["[clusters.lab.security.zookeeper]", f'digest = {{ env = "{DIGEST_VARIABLE}" }}']
    if zookeeper_tls:
        lines.append(f'ca_file = "{security.file("ca.pem")}"')
    return "\n".join(lines) + "\n"
