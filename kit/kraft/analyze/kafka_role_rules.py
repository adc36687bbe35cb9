"""Find a node's ids, roles, quorum and listeners that Kafka 3.9.1 refuses; as ``kit.kraft.analyze.kafka_rules``."""

from __future__ import annotations

from collections.abc import Callable

from kit.kraft.analyze.kafka_config import (
    ADVERTISED,
    CONTROL_PLANE,
    INTER_BROKER,
    MAX_PORT,
    SECURITY_PROTOCOLS,
    Config,
    Refused,
    refuse,
    upper,
)
from kit.kraft.analyze.kafka_values import csv
from kit.kraft.analyze.node_settings import (
    FLAG,
    LISTENERS,
    PROTOCOLS,
    VOTERS,
)


def _ids(config: Config) -> None:
    number, node_id = config.whole("broker.id"), config.whole("node.id")
    if number != node_id:
        refuse(
            "N01",
            f"node.id is {node_id}, and broker.id is {number}",
            "Set only one of node.id and broker.id, or give both the same value.",
        )
    if config.roles:
        if node_id < 0:
            refuse("N01", "node.id is missing", "Write node.id.")
        return
    if config.has_flag and number < 0:
        refuse(
            "N01",
            "broker.id is missing or negative, and Kafka refuses a generated id here",
            "Write broker.id with the value of the node's meta.properties.",
        )
    most = config.whole("reserved.broker.max.id")
    if config.get("broker.id.generation.enable"):
        if not -1 <= number <= most:
            raise Refused("N01", f"broker.id {number} is above reserved.broker.max.id {most}", _NO_GENERATION)
    elif number < 0:
        refuse("N01", "broker.id is missing or negative, and broker.id.generation.enable is false", "Write broker.id.")


def _roles(config: Config) -> None:
    if len(set(config.roles)) < len(config.roles):
        refuse("N12", "process.roles names a role twice", "Name each role once.")


def _zookeeper(config: Config) -> None:
    has_flag = config.has_flag
    if config.get("zookeeper.connect") is not None or (config.roles and not has_flag):
        return
    if has_flag:
        remedy = _KEEP_THE_FLAG if "controller" in config.roles else f"Write zookeeper.connect, or remove {FLAG}."
        refuse("N04", f"{FLAG} is true without zookeeper.connect", remedy)
    refuse(
        "N04",
        "zookeeper.connect is missing",
        "Add zookeeper.connect for ZooKeeper mode, or process.roles for KRaft mode.",
    )


def _quorum(config: Config) -> None:
    if (config.roles or config.has_flag) and not config.voters and not config.bootstrap:
        refuse("N02", f"{VOTERS} is missing", _SAME_VOTERS)


def _voter(config: Config) -> None:
    number, voters, _ = config.whole("node.id"), config.voters, config.bootstrap
    ids, hosts = {each for each, _ in voters}, {host for _, host in voters}
    if "controller" in config.roles and voters and number not in ids:
        refuse("N06", f"the node's id {number} is not in {VOTERS}", _SAME_VOTERS)
    if config.roles == ["broker"] and number in ids:
        refuse(
            "N06",
            f"the node's id {number} is in {VOTERS}, but the node is no controller",
            "Give the controllers other ids than the brokers.",
        )
    if (config.roles or config.has_flag) and "0.0.0.0" in hosts:
        refuse(
            "N06",
            f"{VOTERS} has the host 0.0.0.0, which no node can reach",
            f"Write the controller's host in {VOTERS}.",
        )


def _controller_names(config: Config) -> None:
    names = config.controller_names
    if not config.roles and not config.has_flag and names:
        refuse("N02", f"{LISTENERS} is set without {FLAG}", f"Set {FLAG}=true, or remove {LISTENERS}.")
    if not names and (config.roles == ["broker"] or (not config.roles and config.has_flag)):
        refuse("N03", f"{LISTENERS} is missing or empty", f"Write {LISTENERS}=CONTROLLER.")
    if config.roles == ["broker"]:
        lacking = [each for each in names if upper(each, LISTENERS) not in config.protocols]
        if lacking:
            refuse("N09", f"{PROTOCOLS} lacks {', '.join(lacking)}", f"Add the missing listeners to {PROTOCOLS}.")


def _first_controller_name(config: Config) -> None:
    """A client of the controllers needs a protocol for the first of their listeners."""
    names = config.controller_names
    if not names and (config.roles or config.has_flag):
        refuse("N03", f"{LISTENERS} is missing or empty", f"Write {LISTENERS}=CONTROLLER.")
    if (config.roles or config.has_flag) and not {names[0].upper()} & SECURITY_PROTOCOLS | (
        {names[0]} & config.protocols.keys()
    ):
        refuse("N09", f"{PROTOCOLS} lacks {names[0]}", f"Add the missing listeners to {PROTOCOLS}.")


def _controller_endpoints(config: Config) -> None:
    names, own = config.controller_names, [each.name for each in config.listeners]
    found = config.controller_endpoints
    if config.roles == ["broker"] and set(own) & set(names):
        refuse(
            "N03", f"a broker does not listen on {', '.join(names)}", "Remove the controllers' listener from listeners."
        )
    if "controller" not in config.roles:
        return
    if not config.is_set("listeners") and own != names:
        refuse(
            "N03",
            "listeners is missing, and its default is not a listener of a controller",
            f"Write one of {LISTENERS} into listeners.",
        )
    others = [each for each in own if each not in names]
    if config.roles == ["controller"] and len(found) != len(own):
        extra = f"and {', '.join(others)} are not" if others else "each listener once"
        refuse(
            "N03", f"a controller has only controller listeners, {extra}", "Remove the other listeners from listeners."
        )
    if not found:
        refuse("N03", f"listeners has none of {LISTENERS}", f"Write one of {LISTENERS} into listeners.")
    if not set(names) <= set(own):
        refuse(
            "N03",
            f"{LISTENERS} names a listener that listeners lacks",
            f"Write the same names into {LISTENERS} and listeners, in capitals.",
        )


def _broker_endpoints(config: Config) -> None:
    if not config.is_broker:
        return
    names, own = [each.name for each in config.broker_endpoints], {each.name for each in config.listeners}
    if not names:
        refuse("N03", "listeners has no listener of a broker", f"Add a listener that is not in {LISTENERS}.")
    wanted = config.inter_broker[0]
    if wanted not in names:
        listed = ", ".join(sorted(names))
        refuse("N09", f"{INTER_BROKER} is {wanted}, and the advertised listeners are {listed}", _NAME_ONE)
    if not set(names) <= own:
        refuse(
            "N03",
            f"{ADVERTISED} names a listener that listeners lacks",
            f"Add the listener to listeners, or remove it from {ADVERTISED}.",
        )


def _ports(config: Config) -> None:
    wrong = [each.port for each in config.listeners if not 0 <= each.port <= MAX_PORT]
    if wrong:
        refuse("N03", f"listeners has the port {wrong[0]}", f"Give each listener a port from 0 to {MAX_PORT}.")


def _routable(config: Config) -> None:
    if "0.0.0.0" in {each.host for each in (*config.broker_endpoints, *config.controller_endpoints)}:
        refuse(
            "N03",
            "the node would advertise the host 0.0.0.0",
            f"Set {ADVERTISED}, with a host that other nodes can reach.",
        )


def _control_plane(config: Config) -> None:
    if config.roles and config.is_set(CONTROL_PLANE):
        refuse("N08", f"{CONTROL_PLANE} is not allowed in KRaft mode", f"Remove {CONTROL_PLANE}.")
    name = config.control_plane
    if name is None:
        return
    if name not in {each.name for each in config.broker_endpoints}:
        refuse(
            "N03",
            f"{CONTROL_PLANE} is {name}, which is not advertised",
            f"Set {CONTROL_PLANE} to a listener in {ADVERTISED}.",
        )
    if name == config.inter_broker[0]:
        refuse("N03", f"{CONTROL_PLANE} is the inter-broker listener", f"Name another listener in {CONTROL_PLANE}.")


def _early_start(config: Config) -> None:
    own = {each.name for each in config.listeners}
    wanted = config.get("early.start.listeners")
    unknown = [] if wanted is None else [each for each in csv(str(wanted)) if each not in own]
    if unknown:
        inner = ", ".join(unknown)
        refuse(
            "N03",
            f"early.start.listeners names {inner}, which is not in listeners",
            f"Remove {inner} from early.start.listeners.",
        )


_KEEP_THE_FLAG = (
    "Add zookeeper.connect. Do not remove the migration flag: a controller without the flag finalises the migration."
)
_SAME_VOTERS = f"Give {VOTERS} the same value as on every other node."
_NO_GENERATION = "Set broker.id.generation.enable=false, or raise reserved.broker.max.id."
_NAME_ONE = f"Name an advertised listener in {INTER_BROKER}, or add this listener to listeners and to {ADVERTISED}."
ROLE_RULES: tuple[Callable[[Config], None], ...] = (
    _ids,
    _roles,
    _zookeeper,
    _quorum,
    _voter,
    _controller_names,
    _first_controller_name,
    _controller_endpoints,
    _broker_endpoints,
    _ports,
    _routable,
    _control_plane,
    _early_start,
)
