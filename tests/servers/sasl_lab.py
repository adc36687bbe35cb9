"""A lab whose brokers have ACLs and a second listener, SASL_PLAINTEXT. The plain one is for the lab, a super user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kit.lab import Lab
from kit.lab.ports import free_ports
from kit.lab.process import wait_until
from kit.lab.servers.cluster import Servers
from kit.lab.servers.kafka import Broker
from kit.lab.servers.security import NODE_USER
from tests.servers.issuer import AUDIENCE, ISSUER, NODE_SECRET, Issuer

MODULES = "org.apache.kafka.common.security"
_OPERATIONS = {each.name.replace("_", "").lower(): each for each in AclOperation}
AUTHORIZERS = {True: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
AUTHORIZERS[False] = "kafka.security.authorizer.AclAuthorizer"


class SaslLab(Lab):
    """``logins``: mechanism → settings of the listener; ``zookeeper``: lines of ``zoo.cfg``; ``options``: of JVMs.

    ``host``: of the listener; ``added``: more lines of each broker.
    """

    def __init__(
        self,
        logins: Mapping[str, Mapping[str, str]],
        options: tuple[str, ...] = (),
        zookeeper: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        added: Mapping[str, str] | None = None,
        **shape: Any,
    ) -> None:
        super().__init__(**shape)
        self._logins, self._options, self._zookeeper = logins, options, dict(zookeeper or {})
        self._host, self._added = host, dict(added or {})

    def _servers(self) -> Servers:
        servers = super()._servers()
        for broker in servers.brokers:
            broker.addresses["SASL_PLAINTEXT"] = f"{self._host}:{free_ports(1)[0]}"
            listeners = f"{broker.role()['listeners']},SASL_PLAINTEXT://{broker.addresses['SASL_PLAINTEXT']}"
            broker.added |= {"listeners": listeners, **self._settings()}
            broker.added |= {**self._settings_of(broker), **self._added}
            broker.options = self._options
        if not self._kraft:
            servers.zookeeper.added |= self._zookeeper
        return servers

    def _settings_of(self, broker: Broker) -> dict[str, str]:
        """More lines of one broker."""
        return {}

    def _settings(self) -> dict[str, str]:
        names = ("PLAINTEXT", "SASL_PLAINTEXT", *(["CONTROLLER"] if self._kraft else []))
        settings = {
            "listener.security.protocol.map": ",".join(
                f"{name}:{name.replace('CONTROLLER', 'PLAINTEXT')}" for name in names
            ),
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": ",".join(self._logins),
            "authorizer.class.name": AUTHORIZERS[self._kraft],
            "super.users": "User:ANONYMOUS",
            "connections.max.reauth.ms": "3600000",
        }
        for mechanism, lines in self._logins.items():
            prefix = f"listener.name.sasl_plaintext.{mechanism.lower()}."
            for name, value in lines.items():
                is_shared = name.startswith(("sasl.oauthbearer.", "sasl.kerberos."))
                settings[name if is_shared else prefix + name] = value
        return settings

    @property
    def zookeeper_connect(self) -> str:
        """By the name that clients of Kerberos ask a ticket for."""
        return super().zookeeper_connect.replace("127.0.0.1", "localhost")

    def sasl_profile(self, mechanism: str, kafka: str, zookeeper: str = "") -> str:
        """A profile of cluster ``lab`` by the second listener; ``kafka`` and ``zookeeper``: lines of its security."""
        lines = [f'[clusters.lab]\nbootstrap_servers = "{self.servers.addresses("SASL_PLAINTEXT")}"']
        if not self._kraft:
            lines.append(f'zookeeper_connect = "{self.zookeeper_connect}"')
        lines += [f'cluster_id = "{self.cluster_id}"', '[clusters.lab.deploy]\nkind = "lab"']
        lines += ["[clusters.lab.security.kafka]", 'protocol = "SASL_PLAINTEXT"', f'mechanism = "{mechanism}"', kafka]
        return "\n".join([*lines, "[clusters.lab.security.zookeeper]", zookeeper, ""])


Right = tuple[str, str, str]
"""Operation, resource type, name: ``("Read", "Topic", "*")``. A name that ends in ``.`` is a prefix."""
CLUSTER = "kafka-cluster"
OFFSETS: tuple[Right, ...] = (("Describe", "Broker", CLUSTER), ("Read", "Topic", "*"), ("Read", "Group", "*"))
"""Plans and runs of offsets: docs/security.md, "Usual sets"."""
FIRST_LOCK: Right = ("Create", "Topic", "offramp.lock")


def grant(lab: Lab, user: str, *rights: Right) -> None:
    """Return when the broker's authorizer has these ACLs."""
    change(lab.admin.create_acls, user, rights)
    wait_until(lambda: set(map(_key, rights)) <= _granted(lab, user), "the rights", 30)


def revoke(lab: Lab, user: str, *rights: Right) -> None:
    """Return when the broker's authorizer has none of these ACLs."""
    change(lab.admin.delete_acls, user, rights)
    wait_until(lambda: not set(map(_key, rights)) & _granted(lab, user), "the end of the rights", 30)


def _granted(lab: Lab, user: str) -> set[tuple[AclOperation, ResourceType, str]]:
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
    )
    return {(each.operation, each.restype, each.name) for each in lab.admin.describe_acls(every).result(30)}


def _key(right: Right) -> tuple[AclOperation, ResourceType, str]:
    operation, resource, name = right
    return _OPERATIONS[operation.lower()], ResourceType[resource.upper()], name


def change(how: Any, user: str, rights: tuple[Right, ...]) -> None:
    kind = AclBindingFilter if how.__name__ == "delete_acls" else AclBinding
    bound = [
        kind(
            resource,
            name,
            ResourcePatternType.PREFIXED if name.endswith(".") else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation, resource, name in map(_key, rights)
    ]
    for future in how(bound).values():
        future.result(30)


def by_tokens(issuer: Issuer) -> dict[str, Mapping[str, str]]:
    """The listener takes tokens of this issuer; which URLs a JVM may read: ``allowed``."""
    return {
        "OAUTHBEARER": {
            "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.server.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.jwks.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }
    }


def allowed(issuer: Issuer) -> tuple[str, ...]:
    """Since 4.0 no URL is allowed by default."""
    urls = f"{issuer.jwks.as_uri()},{issuer.token_url}"
    return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}",)


def node_login(issuer: Issuer, listener: str) -> dict[str, str]:
    """Lines of nodes that listen there and of nodes that call there: tokens of this issuer, as client ``node``."""
    own = {
        **by_tokens(issuer)["OAUTHBEARER"],
        "sasl.jaas.config": f'{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId="{NODE_USER}" '
        f'clientSecret="{NODE_SECRET}";',
        "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
    }
    prefix = f"listener.name.{listener}.oauthbearer."
    return {name if name.startswith("sasl.oauthbearer.") else prefix + name: value for name, value in own.items()}


def controllers_by_token(issuer: Issuer) -> dict[str, str]:
    """Lines of combined nodes whose controllers take tokens alone."""
    names = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    return {
        "listener.security.protocol.map": names,
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "listener.name.controller.sasl.enabled.mechanisms": "OAUTHBEARER",
        "super.users": f"User:ANONYMOUS;User:{NODE_USER}",
        **node_login(issuer, "controller"),
    }
