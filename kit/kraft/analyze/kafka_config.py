"""A node's settings as Kafka 3.9.1 sees them: synonyms, defaults, types, listeners (``kafka.server.KafkaConfig``)."""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from kit.kraft.analyze.kafka_values import SPACE, NotAllowed, Value, csv, release_of, split, trimmed, value_of, whole
from kit.kraft.analyze.node_settings import (
    BOOTSTRAP,
    FLAG,
    LISTENERS,
    PROTOCOLS,
    VERSION,
    VOTERS,
    NodeSettings,
    is_template,
)
from kit.text.kafka_settings import settings

INTER_BROKER, INTER_BROKER_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
CONTROL_PLANE = "control.plane.listener.name"
ADVERTISED = "advertised.listeners"
SECURITY_PROTOCOLS = frozenset(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_ADDRESS = re.compile(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
MAX_PORT = 65535
FIRST_OF_RECORDS_V2 = "0.11.0-IV0"


class Refused(Exception):
    """Kafka does not start with these settings: the id of the check, a sentence, a remedy."""


class NotKnown(Exception):
    """A setting whose value is not known here; ``is_bad``: Kafka refuses the value itself."""

    def __init__(self, name: str, is_bad: bool = False) -> None:
        super().__init__(name)
        self.name, self.is_bad = name, is_bad


def refuse(check_id: str, sentence: str, remedy: str) -> NoReturn:
    raise Refused(check_id, sentence, remedy)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One entry of ``listeners`` or ``advertised.listeners``; ``host`` is empty for every interface."""

    name: str
    host: str
    port: int


class Config:
    """The effective settings of one node. Each property raises ``Refused`` or ``NotKnown`` where it has no value."""

    def __init__(self, node: NodeSettings) -> None:
        self.node = node
        given = dict(node.given)
        for name, synonym in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if name in node.given:
                given.setdefault(synonym, node.given[name])
        self.given: Mapping[str, str] = given

    def is_set(self, name: str) -> bool:
        return name in self.given or name in self.node.secrets

    def get(self, name: str) -> Value:
        """The parsed value, or the default.

        Raises:
            NotKnown: it is a secret or a template, or Kafka refuses it.
        """
        text = self.given.get(name)
        if name in self.node.secrets or (text is not None and is_template(text)):
            raise NotKnown(name)
        try:
            return value_of(settings()[name], settings()[name].default if text is None else text)
        except NotAllowed as error:
            raise NotKnown(name, is_bad=True) from error

    def text(self, name: str) -> str:
        """A setting of type STRING; empty where it has no value."""
        value = self.get(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> int | None:
        value = self.get(name)
        return value if isinstance(value, int) else None

    def whole(self, name: str) -> int:
        """A number that has a default."""
        value = self.number(name)
        assert value is not None, name
        return value

    def items(self, name: str) -> list[str]:
        value = self.get(name)
        assert isinstance(value, list), name
        return value

    @cached_property
    def roles(self) -> list[str]:
        return self.items("process.roles")

    @property
    def is_broker(self) -> bool:
        return not self.roles or "broker" in self.roles

    @property
    def has_flag(self) -> bool:
        return self.get(FLAG) is True

    @cached_property
    def version(self) -> int:
        """The rank of ``inter.broker.protocol.version`` (``release_of``); fixed in KRaft mode."""
        rank = release_of("3.0-IV1" if self.roles else self.text(VERSION))
        assert rank is not None
        return rank

    @cached_property
    def controller_names(self) -> list[str]:
        """``controller.listener.names``; Kafka does not trim them."""
        text = self.text(LISTENERS)
        return split(text) if text else []

    @cached_property
    def protocols(self) -> dict[str, str]:
        """The security protocol of each listener, by its name."""
        protocols = {}
        for name, protocol in pairs(PROTOCOLS, self.text(PROTOCOLS)).items():
            if protocol.upper() not in SECURITY_PROTOCOLS:
                refuse("N09", f"{PROTOCOLS} has the unknown protocol {protocol!r}", _ONE_OF)
            protocols[upper(name, PROTOCOLS)] = protocol.upper()
        if self.roles and not self.is_set(PROTOCOLS):
            secure = SECURITY_PROTOCOLS - {"PLAINTEXT"}
            own = [_name_in(each) for each in csv(self.text("listeners"))]
            if secure.isdisjoint([*own, *self.controller_names]):
                protocols |= dict.fromkeys(self.controller_names, "PLAINTEXT")
        return protocols

    @cached_property
    def listeners(self) -> list[Endpoint]:
        endpoints = self._endpoints("listeners")
        _hold_ports(endpoints)
        return endpoints

    @cached_property
    def advertised(self) -> list[Endpoint]:
        return self.listeners if self.get(ADVERTISED) is None else self._endpoints(ADVERTISED)

    def _endpoints(self, setting: str) -> list[Endpoint]:
        """Entries of a list of listeners; each has a name of its own, which the protocols know."""
        endpoints = [self._endpoint(setting, each) for each in csv(self.text(setting))]
        if len({each.name for each in endpoints}) < len(endpoints):
            refuse("N03", f"{setting} has two listeners with the same name", "Give each listener a different name.")
        return endpoints

    def _endpoint(self, setting: str, text: str) -> Endpoint:
        match = _ENDPOINT.fullmatch(text)
        port = None if match is None else whole(match[3])
        if match is None or port is None:
            refuse(
                "N03",
                f"{setting} has {text!r}, which is no NAME://host:port",
                "Write each listener as NAME://host:port.",
            )
        name = upper(match[1], setting)
        if name not in self.protocols:
            refuse("N09", f"{PROTOCOLS} lacks {name}", f"Add {name} to {PROTOCOLS}.")
        return Endpoint(name, match[2], port)

    @cached_property
    def controller_endpoints(self) -> list[Endpoint]:
        """Return how this node's controller is reached: one endpoint per controller listener that it has."""
        own = [each for each in (*self.advertised, *self.listeners) if each.name in self.controller_names]
        if not own:
            return []
        wanted = [upper(each, LISTENERS) for each in self.controller_names]
        return [each for name in wanted for each in [each for each in own if each.name == name][:1]]

    @cached_property
    def broker_endpoints(self) -> list[Endpoint]:
        """Return how this node's broker is reached."""
        return [each for each in self.advertised if each.name not in self.controller_names or self._is_kept(each.name)]

    def _is_kept(self, name: str) -> bool:
        """Return whether a controller listener is a broker's, too: the control plane's is, during a migration."""
        if not self.has_flag or self.control_plane is None:
            return False
        if self.control_plane not in {each.name for each in self.listeners}:
            refuse("N03", f"{CONTROL_PLANE} is {self.control_plane}, which listeners lack", _REMOVE_OR_ADD)
        return name == self.control_plane

    @cached_property
    def inter_broker(self) -> tuple[str, str]:
        """Name and protocol of the inter-broker listener."""
        name = self.get(INTER_BROKER)
        if name is None:
            protocol = self.text(INTER_BROKER_PROTOCOL)
            return protocol, protocol
        if self.is_set(INTER_BROKER_PROTOCOL):
            refuse(
                "N09", f"{INTER_BROKER} and {INTER_BROKER_PROTOCOL} are both set", f"Remove {INTER_BROKER_PROTOCOL}."
            )
        return self._named(str(name), INTER_BROKER)

    @cached_property
    def control_plane(self) -> str | None:
        name = self.get(CONTROL_PLANE)
        return None if name is None else self._named(str(name), CONTROL_PLANE)[0]

    def _named(self, text: str, setting: str) -> tuple[str, str]:
        name = upper(text, setting)
        if name not in self.protocols:
            refuse("N09", f"{PROTOCOLS} lacks {name}, which {setting} names", f"Add {name} to {PROTOCOLS}.")
        return name, self.protocols[name]

    @cached_property
    def voters(self) -> set[tuple[int, str]]:
        """Id and host of each entry of ``controller.quorum.voters``."""
        voters = set()
        for entry in self.items(VOTERS):
            parts = split(entry, "@")
            if len(parts) != 2 or whole(parts[0]) is None:
                refuse("N06", f"{VOTERS} is no list of id@host:port", "Write each voter as 3000@controller-1:9093.")
            voters.add((int(parts[0]), _host_in(parts[1], VOTERS)))
        return voters

    @cached_property
    def bootstrap(self) -> list[str]:
        return [_host_in(each, BOOTSTRAP) for each in self.items(BOOTSTRAP)]

    @cached_property
    def log_dirs(self) -> list[str]:
        return csv(self.text("log.dir") if self.get("log.dirs") is None else self.text("log.dirs"))

    def overridden(self, listener: str) -> dict[str, str]:
        """Return the settings that ``listener.name.<listener>.`` sets for this listener alone: the setting's own
        name → text.
        """
        prefix = f"listener.name.{listener.lower()}."
        own = {name.removeprefix(prefix): text for name, text in self.given.items() if name.startswith(prefix)}
        return {
            known: text
            for name, text in own.items()
            for known in (name, name.partition(".")[2])[: 1 if name in settings() else 2]
            if known in settings()
        }


def upper(name: str, setting: str) -> str:
    """The name of a listener as Kafka compares it."""
    if not trimmed(name):
        refuse("N03", f"{setting} has an empty name of a listener", f"Remove the empty entry from {setting}.")
    return name.upper()


def pairs(setting: str, text: str) -> dict[str, str]:
    """A text ``a:1,b:2`` as Kafka's ``Csv.parseCsvMap``."""
    found = {}
    for each in split(text, f"{SPACE},{SPACE}") if text else []:
        name, colon, value = each.rpartition(":")
        if not colon:
            refuse("N12", f"{setting} has {each!r}, which is no name:value", f"Write {setting} as name:value,…")
        found[trimmed(name)] = trimmed(value)
    return found


def _host_in(text: str, setting: str) -> str:
    match = _ADDRESS.fullmatch(text)
    port = None if match is None else whole(match[2])
    if match is None or port is None or port > MAX_PORT:
        form = "id@host:port" if setting == VOTERS else "host:port"
        refuse("N06", f"{setting} is no list of {form}", f"Write each entry of {setting} as {form}.")
    return match[1]


def _name_in(listener: str) -> str:
    name, colon, _ = listener.partition(":")
    if not colon:
        refuse(
            "N03",
            f"listeners has {listener!r}, which is no NAME://host:port",
            "Write each listener as NAME://host:port.",
        )
    return name.upper()


def _hold_ports(endpoints: Iterable[Endpoint]) -> None:
    """Two listeners have one port only if one has an IPv4 address and the other an IPv6 address."""
    by_port = defaultdict(list)
    for each in endpoints:
        by_port[each.port].append(_family(each.host))
    for port, families in by_port.items():
        if port and len(families) > 1 and sorted(map(str, families)) != ["4", "6"]:
            refuse("N03", f"listeners has port {port} twice", "Give each listener a different port.")


def _family(host: str) -> int | None:
    """4 or 6 of an IP address; None of a name."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


_ONE_OF = "Give each listener one of the protocols PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."
_REMOVE_OR_ADD = f"Add the listener to listeners, or remove {CONTROL_PLANE}."
