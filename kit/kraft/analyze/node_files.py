"""Ready-made settings of a node for each step of a migration to KRaft, from its own present ones (KIP-866, 3.9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kit.kraft.analyze.node_settings import (
    ACL_AUTHORIZER,
    BOOTSTRAP,
    CONTROLLER,
    FLAG,
    KRAFT,
    LISTENERS,
    MIGRATION,
    PROTOCOLS,
    STANDARD_AUTHORIZER,
    VERSION,
    VOTERS,
    ZOOKEEPER,
    NodeSettings,
    entries,
    inter_broker_listener,
)
from kit.text.properties import render_properties
from kit.text.visible import visible

_DEFAULT_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
_CONTROLLER_LISTENER = "CONTROLLER"
_RESERVED = 1000
_ONLY_ZOOKEEPER = ("broker.id", "broker.id.generation.enable", "reserved.broker.max.id", VERSION)
_GONE = ("control.plane.listener.name", "log.message.format.version", "inter.broker.protocol.version")
_NOT_OF_A_CONTROLLER = (VERSION, "broker.id", BOOTSTRAP, "security.inter.broker.protocol")
_OF_A_CONTROLLER = (
    "zookeeper.", "password.encoder.", "sasl.", "ssl.", "security.", "listener.name.", "super.users", "authorizer.",
    "allow.everyone.", "principal.builder.", "delegation.token.", "delete.topic.enable", "auto.create.topics.enable",
    "default.replication.factor", "num.partitions", "min.insync.replicas", "unclean.leader.election.enable",
    "message.max.bytes", "alter.config.policy.", "create.topic.policy.", "connections.max.",
)  # fmt: skip

_UNTOLD = (
    "super.users, and the settings of plug-ins: DescribeConfigs does not report them; copy them from"
    " the node's own file"
)


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """The changes of a node's file for a mode. ``by_hand``: sentences about what can't be known from outside."""

    mode: str
    values: Mapping[str, str]
    removed: tuple[str, ...]
    by_hand: tuple[str, ...]


def settings_change(mode: str, present: NodeSettings, voters: str | None) -> SettingsChange:
    """From a broker's present settings to those of ``mode``; ``voters`` is ``controller.quorum.voters``, if known.

    Modes ``controller`` and ``final controller`` make a new controller's settings out of a broker's, or change its own.
    """
    if mode == ZOOKEEPER:
        return _plain(present)
    if mode in (MIGRATION, KRAFT):
        return _broker(mode, present, voters)
    return _controller(mode, present, voters)


def render(change: SettingsChange, present: NodeSettings) -> str:
    """The whole file: what stays and what is set; as comments what is removed, secret, or to do manually."""
    remaining = {name: value for name, value in present.given.items() if name not in change.removed}
    if _is_new(change, present):
        remaining = {name: value for name, value in remaining.items() if name.startswith(_OF_A_CONTROLLER)}
    merged = dict(sorted((remaining | dict(change.values)).items()))
    comments = [
        f"{present.name}: settings for {change.mode} mode, made from {present.source}",
        *(f"removed: {name}" for name in _removed(change, present)),
        *_by_hand(change, present),
    ]
    return "".join(f"# {visible(each)}\n" for each in comments) + render_properties(merged)


def changed_lines(change: SettingsChange, present: NodeSettings) -> list[tuple[str, str, str | None]]:
    """Return the differences from the node's present settings: (action, name, value), as in
    ``tables.NODE_SETTING_CHANGES``.
    """
    is_new = _is_new(change, present)
    values = [(name, value) for name, value in change.values.items() if is_new or present.get(name) != value]
    removed = [] if is_new else _removed(change, present)
    return [
        *(("set", name, value) for name, value in values),
        *(("remove", name, None) for name in removed),
        *(
            ("manually", name, instruction or None)
            for name, _, instruction in (each.partition(": ") for each in _by_hand(change, present))
        ),
    ]


def _is_new(change: SettingsChange, present: NodeSettings) -> bool:
    """A controller's, made from a broker's."""
    return change.mode.endswith(CONTROLLER) and present.role != CONTROLLER


def _removed(change: SettingsChange, present: NodeSettings) -> list[str]:
    return [name for name in change.removed if name in present.given or name in present.secrets]


def _by_hand(change: SettingsChange, present: NodeSettings) -> list[str]:
    secrets = [name for name in sorted(present.secrets) if name not in change.removed]
    copied = [f"{name}: set; copy its value from the node's own file" for name in secrets]
    return [*copied, *change.by_hand, *([_UNTOLD] if present.defaults else [])]


def _broker(mode: str, present: NodeSettings, voters: str | None) -> SettingsChange:
    values = {LISTENERS: _controller_listener(present), PROTOCOLS: _protocols(present)}
    values |= _login(present, values[PROTOCOLS])
    by_hand = list(_quorum(values, present, voters))
    number = present.node_id
    if number is None:
        by_hand.append("the id of this broker is unknown: copy it from its meta.properties")
    if mode == KRAFT:
        values |= {"process.roles": "broker"} | ({} if number is None else {"node.id": str(number)})
        if present.get("authorizer.class.name") == ACL_AUTHORIZER:
            values["authorizer.class.name"] = STANDARD_AUTHORIZER
        own = [name for name in (*present.given, *present.secrets) if name.startswith("zookeeper.")]
        return SettingsChange(
            mode, values, tuple(dict.fromkeys([*own, *_ONLY_ZOOKEEPER, *_GONE, FLAG, BOOTSTRAP])), tuple(by_hand)
        )
    values |= {FLAG: "true"} | ({} if number is None else {"broker.id": str(number)})
    version = present.get(VERSION)
    values |= {} if version is None else {VERSION: version}
    if present.get("authorizer.class.name") == STANDARD_AUTHORIZER:
        values["authorizer.class.name"] = ACL_AUTHORIZER
    values |= _no_generation(present)
    if not present.get("zookeeper.connect"):
        by_hand.append("zookeeper.connect and the other zookeeper settings: from the file saved before KRaft mode")
    return SettingsChange(
        mode, values, ("process.roles", "node.id", "log.message.format.version", BOOTSTRAP), tuple(by_hand)
    )


def _plain(present: NodeSettings) -> SettingsChange:
    values = {} if present.node_id is None else {"broker.id": str(present.node_id)}
    values |= _no_generation(present)
    own = [each for each in _map_entries(present) if each.partition(":")[0] not in entries(present.get(LISTENERS))]
    if PROTOCOLS in present.given:
        values[PROTOCOLS] = ",".join(own)
    return SettingsChange(ZOOKEEPER, values, (FLAG, LISTENERS, VOTERS, BOOTSTRAP, "process.roles", "node.id"), ())


def _controller(mode: str, present: NodeSettings, voters: str | None) -> SettingsChange:
    is_own = present.role == CONTROLLER
    values = {
        "process.roles": "controller",
        LISTENERS: _controller_listener(present),
        PROTOCOLS: _protocols(present),
        "inter.broker.listener.name": inter_broker_listener(present),
    }
    values |= _login(present, values[PROTOCOLS])
    by_hand = [*_quorum(values, present, voters), *_own_login(present, values[PROTOCOLS])]
    if not is_own:
        by_hand += [
            "node.id: an id that no broker and no other controller has",
            f"listeners: {_CONTROLLER_LISTENER}://<host>:<port>, different for each controller",
            "log.dirs: an empty folder; format it with the cluster id of ZooKeeper before the first start",
        ]
    if present.get("authorizer.class.name") == ACL_AUTHORIZER:
        values["authorizer.class.name"] = STANDARD_AUTHORIZER
    if mode == CONTROLLER:
        return SettingsChange(mode, values | {FLAG: "true"}, _NOT_OF_A_CONTROLLER, tuple(by_hand))
    own = [name for name in (*present.given, *present.secrets) if name.startswith("zookeeper.")]
    return SettingsChange(mode, values, tuple(dict.fromkeys([*own, FLAG, *_NOT_OF_A_CONTROLLER])), tuple(by_hand))


def _quorum(values: dict[str, str], present: NodeSettings, voters: str | None) -> list[str]:
    known = present.get(VOTERS) or voters
    if known:
        values[VOTERS] = known
        return []
    return [f"{VOTERS}: <id>@<host>:<port> of every controller, the same value on all nodes"]


def _controller_listener(present: NodeSettings) -> str:
    return present.get(LISTENERS) or _CONTROLLER_LISTENER


def _map_entries(present: NodeSettings) -> list[str]:
    return entries(present.get(PROTOCOLS) or _DEFAULT_PROTOCOLS)


def _protocols(present: NodeSettings) -> str:
    """The node's own map, and the controllers' listener with the protocol of the inter-broker listener."""
    own = _map_entries(present)
    protocols = _by_name(own)
    protocol = protocols.get(inter_broker_listener(present), "PLAINTEXT")
    new = [name for name in entries(_controller_listener(present)) if name.upper() not in protocols]
    return ",".join([*own, *(f"{name}:{protocol}" for name in new)])


def _by_name(entries_of_map: list[str]) -> dict[str, str]:
    """Protocol by the name of the listener."""
    pairs = (each.partition(":") for each in entries_of_map)
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _login(present: NodeSettings, protocols: str) -> dict[str, str]:
    """The mechanism by which a node logs in to controllers: Kafka's default is GSSAPI, whatever brokers use."""
    name = "sasl.mechanism.controller.protocol"
    if name in present.given or not _controller_protocol(present, protocols).startswith("SASL"):
        return {}
    return {name: present.get("sasl.mechanism.inter.broker.protocol") or "GSSAPI"}


def _own_login(present: NodeSettings, protocols: str) -> list[str]:
    """Settings of the inter-broker listener alone, which the controllers' listener needs, too."""
    own, new = f"listener.name.{inter_broker_listener(present).lower()}.", entries(_controller_listener(present))
    has_own = any(name.startswith(own) for name in (*present.given, *present.secrets))
    if not has_own or _controller_protocol(present, protocols) == "PLAINTEXT" or present.role == CONTROLLER:
        return []
    return [f"listener.name.{new[0].lower()}.…: as the settings of {own}…, for the controllers' own listener"]


def _controller_protocol(present: NodeSettings, protocols: str) -> str:
    """The protocol of the first of the controllers' listeners, which nodes dial."""
    first = next(iter(entries(_controller_listener(present))), _CONTROLLER_LISTENER)
    return _by_name(entries(protocols)).get(first.upper(), "PLAINTEXT")


def _no_generation(present: NodeSettings) -> dict[str, str]:
    """Kafka refuses an id above ``reserved.broker.max.id`` while it generates ids."""
    most = (present.get("reserved.broker.max.id") or "").strip()
    highest = int(most) if re.fullmatch(r"[0-9]{1,9}", most) else _RESERVED
    is_high = present.node_id is not None and present.node_id > highest
    return {"broker.id.generation.enable": "false"} if is_high else {}
