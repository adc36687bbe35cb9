"""Secure a lab: certificates, SASL_SSL and mutual TLS on the brokers, digest ACLs and TLS in ZooKeeper.

One that moves to KRaft also has SASL_SSL between its nodes, SASL and access lists in ZooKeeper, and a secret for
passwords among dynamic settings.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

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
"""The user by which nodes log in at each other."""
ZOOKEEPER_USER = "kafka"
"""The user by which nodes, and offramp, log in at ZooKeeper: the access lists name this user."""
PASSWORD_VARIABLE = "OFFRAMP_KAFKA_PASSWORD"
DIGEST_VARIABLE = "OFFRAMP_ZK_DIGEST"
ZOOKEEPER_VARIABLE = "OFFRAMP_ZK_PASSWORD"
KEYTOOL_CLASSES = ["--add-exports", "java.base/sun.security.tools.keytool=ALL-UNNAMED"]
SCRAM_ITERATIONS = 4096
MECHANISMS = "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN"
MODULES = "org.apache.kafka.common.security"


class Security:
    """Secrets and certificates of one lab, made when it starts, under ``folder``.

    ``secrets`` holds the environment variables that the profile refers to. ``moves``: the lab has controllers.
    """

    def __init__(self, folder: Path, moves: bool = False) -> None:
        self.folder = folder / "security"
        self.moves = moves
        self.zookeeper_password = secrets.token_hex(12)
        self.encoder_secret = secrets.token_hex(12)
        self.password = secrets.token_hex(12)
        self.digest = f"{USER}:{secrets.token_hex(12)}"
        self._store_password = secrets.token_hex(12)

    @property
    def secrets(self) -> dict[str, str]:
        """Environment variable → secret, as ``profile`` names them."""
        variables = {PASSWORD_VARIABLE: self.password, DIGEST_VARIABLE: self.digest}
        return variables | ({ZOOKEEPER_VARIABLE: self.zookeeper_password} if self.moves else {})

    @property
    def zookeeper_login(self) -> dict[str, Any]:
        """Kazoo's arguments for a session that may do what nodes and the user may."""
        login = {"mechanism": "DIGEST-MD5", "username": ZOOKEEPER_USER, "password": self.zookeeper_password}
        return {"auth_data": [("digest", self.digest)]} | ({"sasl_options": login} if self.moves else {})

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of the JVMs of ZooKeeper and of each node."""
        return (f"-Djava.security.auth.login.config={self.file('jaas.conf')}",) if self.moves else ()

    def write_logins(self) -> None:
        """Write the logins by which nodes and ZooKeeper know each other."""
        module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
        password = self.zookeeper_password
        server = f'Server {{ {module} user_{ZOOKEEPER_USER}="{password}"; }};\n'
        client = f'Client {{ {module} username="{ZOOKEEPER_USER}" password="{password}"; }};\n'
        self.file("jaas.conf").write_text(server + client, encoding="utf-8")

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
        self.write_logins()

    @cached_property
    def _stores(self) -> dict[str, str]:
        return {
            "keystore": str(self.file("server.p12")),
            "truststore": str(self.file("trust.p12")),
        }

    def broker_settings(self, plaintext: str, sasl_ssl: str, ssl: str) -> dict[str, str]:
        """Three listeners: unprotected for the lab itself and old consumers, SASL over TLS, mutual TLS."""
        plain = f'{MODULES}.plain.PlainLoginModule required user_{USER}="{self.password}";'
        scram = f'{MODULES}.scram.ScramLoginModule required username="{NODE_USER}" password="{self.password}";'
        return {
            "listeners": f"PLAINTEXT://{plaintext},SASL_SSL://{sasl_ssl},SSL://{ssl}",
            "sasl.enabled.mechanisms": MECHANISMS,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
            "listener.name.ssl.ssl.client.auth": "required",
            **self.store_settings(),
            **(self.node_settings() if self.moves else {}),
        }

    def node_settings(self) -> dict[str, str]:
        """Between brokers, and from controllers to brokers: SASL_SSL with SCRAM."""
        return {
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.enabled.mechanisms": MECHANISMS,
            "password.encoder.secret": self.encoder_secret,
        }

    def controller_settings(self) -> dict[str, str]:
        """The controllers' listener, for those who listen and for those who call: SASL_SSL with PLAIN."""
        users = " ".join(f'user_{name}="{self.password}"' for name in (NODE_USER, USER))
        login = f'{MODULES}.plain.PlainLoginModule required username="{NODE_USER}" password="{self.password}" {users};'
        return {
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": login,
            **self.store_settings(),
        }

    def caller_settings(self) -> dict[str, str]:
        """Return the settings of a controller, which calls brokers and has no listener of theirs."""
        login = f'{MODULES}.scram.ScramLoginModule required username="{NODE_USER}" password="{self.password}";'
        return {**self.node_settings(), "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": login}

    def store_settings(self) -> dict[str, str]:
        """The key and the authority of a server."""
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
        if self.moves:
            settings["authProvider.sasl"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        for store, path in self._stores.items():
            name = store.replace("store", "Store")
            settings |= {f"ssl.{name}.location": path, f"ssl.{name}.password": self._store_password}
        return settings

    def create_node_user(self, zookeeper_connect: str) -> None:
        """Before the first broker: what they call each other by; by Kafka's own tool. Raises LabError."""
        added = f"SCRAM-SHA-512=[iterations={SCRAM_ITERATIONS},password={self.password}]"
        arguments = ["--zookeeper", zookeeper_connect, "--alter", "--add-config", added]
        arguments += ["--entity-type", "users", "--entity-name", NODE_USER]
        classes = jars.class_path(jars.SERVERS)
        command = jvm.java(classes, "kafka.admin.ConfigCommand", arguments, 64, self.folder.parent, self.options)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"The user of the nodes was not made:\n{done.stdout[-500:]}{done.stderr[-1500:]}")

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
        client = KazooClient(zookeeper_connect, **self.zookeeper_login)
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
            # Controllers know SCRAM users only after the copy.
            f'mechanism = "{"PLAIN" if security.moves else "SCRAM-SHA-512"}"',
            f'username = "{USER}"',
            f'password = {{ env = "{PASSWORD_VARIABLE}" }}',
        ]
    else:
        lines.append(f'certificate_file = "{security.file("client.pem")}"')
        lines.append(f'key_file = "{security.file("client.key")}"')
    lines += ["[clusters.lab.security.zookeeper]", f'digest = {{ env = "{DIGEST_VARIABLE}" }}']
    if security.moves:
        lines += [f'username = "{ZOOKEEPER_USER}"', f'password = {{ env = "{ZOOKEEPER_VARIABLE}" }}']
    if zookeeper_tls:
        lines.append(f'ca_file = "{security.file("ca.pem")}"')
    return "\n".join(lines) + "\n"
