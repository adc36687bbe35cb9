"""A node's settings, and what to set and to remove in them for each step of a migration to KRaft (KIP-866, 3.9).

No secret is in a ``NodeSettings``: of each only that it is set, and a fingerprint by a key of this one observation, so
that two nodes' secrets can be compared.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kit.tables.kraft import NodeSetting
from kit.text.kafka_settings import settings
from kit.text.withholding import without_secrets

ZOOKEEPER, MIGRATION, KRAFT = "zookeeper", "migration", "kraft"
CONTROLLER, FINAL_CONTROLLER = "controller", "final controller"
MODES = (ZOOKEEPER, MIGRATION, KRAFT, CONTROLLER, FINAL_CONTROLLER)
FLAG = "zookeeper.metadata.migration.enable"
VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
DECIDING = ("process.roles", FLAG, "node.id", "broker.id")
"""Settings that decide which node in which mode a file starts."""
LISTENERS = "controller.listener.names"
PROTOCOLS = "listener.security.protocol.map"
VERSION = "inter.broker.protocol.version"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ENCODER_SECRET = "password.encoder.secret"
_TEXTS = ("STRING", "LIST", "CLASS")
_TOLD = "DescribeConfigs of"
_STARTS = {FLAG, VOTERS, BOOTSTRAP, "process.roles", "node.id", "broker.id"}
"""By these a node starts in one mode or another, and in one quorum or another."""
_PUBLIC = re.compile(
    r"password\.encoder\.(?!secret|old\.secret)[a-z.]+|delegation\.token\.[a-z.]+\.(?:time|interval)\.ms"
)
_SECRET = re.compile(r"(?:\.secret|\.(?:secret|master|private)\.key|keystore\.key|jaas\.config|password)\Z", re.I)
_TEMPLATE = re.compile(r"\$\{|\$\(|\{\{|\{%|<%|@[A-Z_]{2,}@|\$[A-Z_]{2,}")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:-IV(\d+))?\Z")
_LEVELS = {
    (3, 0): (1, 1), (3, 1): (2, 0), (3, 2): (3, 0), (3, 3): (4, 3), (3, 4): (8, 0), (3, 5): (9, 2), (3, 6): (12, 2),
    (3, 7): (15, 4), (3, 8): (20, 0), (3, 9): (21, 0),
}  # fmt: skip
"""Release → level of ``metadata.version`` of its first and number of its last IV (``MetadataVersion`` of 3.9)."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one node. ``given``: what an operator set; ``defaults``: the rest, where the node reported it.

    ``secrets``: name → fingerprint, empty where the node hides the value. ``source``: of whom, to show. ``running``: of
    an operator's file what the node itself reported otherwise.
    """

    node_id: int | None
    role: str
    source: str
    given: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.role} {'of unknown id' if self.node_id is None else self.node_id}"

    def get(self, key: str) -> str | None:
        """Return the value in force, as far as it is known."""
        return self.given.get(key, self.defaults.get(key))

    def is_template(self, key: str) -> bool:
        """Return whether the value is filled in later, and not known here."""
        return is_template(self.get(key) or "")

    def over(self, reported: NodeSettings) -> NodeSettings:
        """The operator's file, with what the node itself reported where the file reports nothing.

        But how a node starts, and its secrets, the file alone reports.
        """
        known = {name: value for name, value in {**reported.defaults, **reported.given}.items() if name not in _STARTS}
        running = {name: value for name, value in known.items() if self.given.get(name, value) != value}
        defaults = {name: value for name, value in known.items() if name not in self.given}
        return replace(self, defaults=defaults, running=running)

    @property
    def is_told(self) -> bool:
        """Return whether the node itself reported them; else they are of the operator's file."""
        return self.source.startswith(_TOLD)

    @property
    def mode(self) -> str:
        """Return how a node with these settings starts, one of ``MODES``."""
        is_on = (self.get(FLAG) or "").strip().lower() == "true"
        if self.role == "controller":
            return CONTROLLER if is_on else FINAL_CONTROLLER
        if entries(self.get("process.roles")):
            return KRAFT
        return MIGRATION if is_on else ZOOKEEPER


def is_template(text: str) -> bool:
    """Return whether a value is filled in later, by Kafka or by what writes the file: it is not known here.

    >>> is_template("${file:/etc/secrets:id}"), is_template("{{ broker_id }}"), is_template("RULE:^CN=(.*?),.*$/$1/")
    (True, True, False)
    """
    return _TEMPLATE.search(text) is not None


def is_secret(key: str, value: str) -> bool:
    """Return whether a setting's value is redacted: by its name, or because the value resembles one.

    >>> is_secret("ssl.key.password", "x"), is_secret("password.encoder.iterations", "4096")
    (True, False)
    """
    setting = settings().get(key)
    if (
        setting is not None
        and setting.type != "PASSWORD"
        and (setting.type not in _TEXTS or key in (VOTERS, BOOTSTRAP))
    ):
        return False
    if _PUBLIC.fullmatch(key):
        return False
    line = f"{key}={value or 'x'}"
    return _SECRET.search(key) is not None or without_secrets(line) != line


def of_file(held: Mapping[str, str], source: str, key: bytes) -> NodeSettings:
    """The operator's file, without its secrets; ``key`` makes fingerprints comparable within one observation."""
    secrets = {name: value for name, value in held.items() if is_secret(name, value)}
    given = {name: value for name, value in held.items() if name not in secrets}
    node_id = given.get("node.id", given.get("broker.id", "")).strip()
    return NodeSettings(
        node_id=int(node_id) if re.fullmatch(r"[+-]?[0-9]{1,10}", node_id) else None,
        role="controller" if "controller" in entries(given.get("process.roles")) else "broker",
        source=source,
        given=given,
        secrets={name: "" if is_template(value) else _fingerprint(key, value) for name, value in secrets.items()},
    )


def _fingerprint(key: bytes, value: str) -> str:
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()


def of_described(node_id: int, rows: Iterable[NodeSetting]) -> NodeSettings:
    """Return the settings by a node's answer to DescribeConfigs."""
    given, defaults, secrets = dict[str, str](), dict[str, str](), dict[str, str]()
    for row in rows:
        is_default = row.source == "default"
        if row.is_sensitive:
            secrets |= {} if is_default else {row.name: ""}
        elif row.value is not None:
            (defaults if is_default else given)[row.name] = row.value
    roles = given.get("process.roles", "")
    role = "controller" if "controller" in roles else "broker"
    return NodeSettings(node_id, role, f"{_TOLD} {role} {node_id}", given, defaults, secrets)


def level(version: str | None) -> int | None:
    """The level of ``metadata.version`` that an ``inter.broker.protocol.version`` is; None for what isn't known.

    >>> level("3.9"), level("3.9-IV0"), level("3.6-IV1"), level("2.8")
    (21, 21, 13, 0)
    """
    parts = _VERSION.match(version or "")
    if parts is None:
        return None
    release = (int(parts[1]), int(parts[2]))
    if release < (3, 0):
        return 0
    if release not in _LEVELS:
        return None
    first, last = _LEVELS[release]
    number = int(parts[3]) if parts[3] else last
    return first + number - (1 if release == (3, 0) else 0) if number <= last else None


def entries(text: str | None) -> list[str]:
    """A list in a setting."""
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def voter_ids(text: str | None) -> list[int]:
    """Ids of ``controller.quorum.voters``; what is no ``id@host:port`` is left out."""
    matches = [re.match(r"([0-9]{1,9})@", each) for each in entries(text)]
    return [int(each[1]) for each in matches if each]


def inter_broker_listener(node: NodeSettings) -> str:
    """The name of the listener on which brokers, and controllers, dial a broker. Kafka compares it in capitals."""
    name = node.get("inter.broker.listener.name") or node.get("security.inter.broker.protocol") or "PLAINTEXT"
    return name.strip().upper()


def advertised_listeners(node: NodeSettings) -> set[str]:
    """The names of the listeners on which others dial a broker."""
    text = node.get("advertised.listeners") or node.get("listeners") or settings()["listeners"].default
    return {each.partition("://")[0].strip().upper() for each in entries(text)}
