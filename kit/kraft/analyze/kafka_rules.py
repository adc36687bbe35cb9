"""What Kafka 3.9.1 refuses in a node's settings, before it opens a port or a folder.

Source: ``KafkaConfig.validateValues`` and the constructors around it, ``LogConfig`` and what ``KafkaServer`` and
``KafkaRaftServer`` ask first. A test gives generated files to the real Kafka, and both must say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kit.kraft.analyze.kafka_config import (
    ADVERTISED,
    CONTROL_PLANE,
    FIRST_OF_RECORDS_V2,
    INTER_BROKER,
    MAX_PORT,
    SECURITY_PROTOCOLS,
    Config,
    NotKnown,
    Refused,
    pairs,
    refuse,
    upper,
)
from kit.kraft.analyze.kafka_values import NotAllowed, csv, release_of, value_of, whole
from kit.kraft.analyze.node_settings import (
    ACL_AUTHORIZER,
    FLAG,
    LISTENERS,
    PROTOCOLS,
    STANDARD_AUTHORIZER,
    VERSION,
    VOTERS,
    NodeSettings,
    is_template,
)
from kit.text.kafka_settings import settings


@dataclass(frozen=True, slots=True)
class Judgement:
    """One thing that Kafka refuses; ``is_met`` None: whether it does is not known here."""

    check_id: str
    sentence: str
    remedy: str
    is_met: bool | None = False


def judgements(node: NodeSettings) -> list[Judgement]:
    """What Kafka refuses in these settings, and what can't be judged; nothing if it goes on."""
    config, found = Config(node), dict[Judgement, None]()
    for judgement in (*_values(config), *(each for rule in _RULES for each in _judged(rule, config))):
        found.setdefault(judgement)
    return list(found)


def _judged(rule: Callable[[Config], None], config: Config) -> Iterator[Judgement]:
    try:
        rule(config)
    except Refused as refusal:
        yield Judgement(*refusal.args)
    except NotKnown as unknown:
        if not unknown.is_bad:
            yield _not_known(unknown.name)


def _not_known(name: str) -> Judgement:
    return Judgement("N12", f"the value of {name} is withheld, or filled in later: it is not known here", _RENDER, None)


def _values(config: Config) -> Iterator[Judgement]:
    """Each known setting by itself. A class that is not Kafka's own may be on the node's class path."""
    for name, text in config.node.given.items():
        setting = settings().get(name)
        if setting is None or is_template(text):
            continue
        try:
            value = value_of(setting, text)
        except NotAllowed as error:
            yield Judgement(
                "N12", f"{name} is {error}", f"Write a value that Kafka takes for {name}, and nothing else."
            )
            continue
        classes = [str(value)] if setting.type == "CLASS" or name == "authorizer.class.name" else []
        classes += config.items(name) if name in _LISTS_OF_CLASSES else []
        for each in classes:
            if each and each not in _KAFKAS_OWN:
                yield Judgement("N14", f"{name} needs the class {each}", "Put it on the class path of the node.", None)


def _ids(config: Config) -> None:
    number, node_id = config.whole("broker.id"), config.whole("node.id")
    if number != node_id:
        refuse("N01", f"node.id is {node_id}, and broker.id is {number}", "Write one of them, or the same into both.")
    if config.roles:
        if node_id < 0:
            refuse("N01", "node.id is missing", "Write node.id.")
        return
    if config.has_flag and number < 0:
        refuse(
            "N01",
            "broker.id is missing or negative: a generated id is refused",
            "Write broker.id, from its meta.properties.",
        )
    most = config.whole("reserved.broker.max.id")
    if config.get("broker.id.generation.enable"):
        if not -1 <= number <= most:
            raise Refused("N01", f"broker.id {number} is above reserved.broker.max.id {most}", _NO_GENERATION)
    elif number < 0:
        refuse("N01", "broker.id is missing or negative, and broker.id.generation.enable is false", "Write broker.id.")


def _roles(config: Config) -> None:
    if len(set(config.roles)) < len(config.roles):
        refuse("N12", "process.roles names a role twice", "Name it once.")


def _zookeeper(config: Config) -> None:
    has_flag = config.has_flag
    if config.get("zookeeper.connect") is not None or (config.roles and not has_flag):
        return
    if has_flag:
        remedy = _KEEP_THE_FLAG if "controller" in config.roles else "Write zookeeper.connect, or remove the flag."
        refuse("N04", f"{FLAG} is true without zookeeper.connect", remedy)
    refuse("N04", "zookeeper.connect is missing", "Write zookeeper.connect, or process.roles for KRaft mode.")


def _quorum(config: Config) -> None:
    if (config.roles or config.has_flag) and not config.voters and not config.bootstrap:
        refuse("N02", f"{VOTERS} is missing", "Write the same list as on every other node.")


def _voter(config: Config) -> None:
    number, voters, _ = config.whole("node.id"), config.voters, config.bootstrap
    ids, hosts = {each for each, _ in voters}, {host for _, host in voters}
    if "controller" in config.roles and voters and number not in ids:
        refuse("N06", f"its id {number} is not in {VOTERS}", "Write the same list as on every other node.")
    if config.roles == ["broker"] and number in ids:
        refuse("N06", f"its id {number} is in {VOTERS}, and it is no controller", "Give controllers ids of their own.")
    if (config.roles or config.has_flag) and "0.0.0.0" in hosts:
        refuse("N06", f"{VOTERS} has the host 0.0.0.0, which no node can reach", "Write the controller's host.")


def _controller_names(config: Config) -> None:
    names = config.controller_names
    if not config.roles and not config.has_flag and names:
        refuse("N02", f"{LISTENERS} is set without {FLAG}", f"Set {FLAG}=true, or remove it.")
    if not names and (config.roles == ["broker"] or (not config.roles and config.has_flag)):
        refuse("N03", f"{LISTENERS} is missing or empty", f"Write {LISTENERS}=CONTROLLER.")
    if config.roles == ["broker"]:
        lacking = [each for each in names if upper(each, LISTENERS) not in config.protocols]
        if lacking:
            refuse("N09", f"{PROTOCOLS} lacks {', '.join(lacking)}", "Add them.")


def _first_controller_name(config: Config) -> None:
    """A client of the controllers needs a protocol for the first of their listeners."""
    names = config.controller_names
    if not names and (config.roles or config.has_flag):
        refuse("N03", f"{LISTENERS} is missing or empty", f"Write {LISTENERS}=CONTROLLER.")
    if (config.roles or config.has_flag) and not {names[0].upper()} & SECURITY_PROTOCOLS | (
        {names[0]} & config.protocols.keys()
    ):
        refuse("N09", f"{PROTOCOLS} lacks {names[0]}", "Add them.")


def _controller_endpoints(config: Config) -> None:
    names, own = config.controller_names, [each.name for each in config.listeners]
    found = config.controller_endpoints
    if config.roles == ["broker"] and set(own) & set(names):
        refuse("N03", f"a broker does not listen on {', '.join(names)}", "Remove it from listeners.")
    if "controller" not in config.roles:
        return
    if not config.is_set("listeners") and own != names:
        refuse("N03", "listeners is missing, and its default is no controller's", f"Write one of {LISTENERS}.")
    others = [each for each in own if each not in names]
    if config.roles == ["controller"] and len(found) != len(own):
        told = f"and {', '.join(others)} are others" if others else "each of them once"
        refuse("N03", f"a controller has only controller listeners, {told}", "Remove them.")
    if not found:
        refuse("N03", f"listeners has none of {LISTENERS}", f"Write one of {LISTENERS} into listeners.")
    if not set(names) <= set(own):
        refuse("N03", f"{LISTENERS} names one that listeners lacks", "Write the same names into both, in capitals.")


def _broker_endpoints(config: Config) -> None:
    if not config.is_broker:
        return
    names, own = [each.name for each in config.broker_endpoints], {each.name for each in config.listeners}
    if not names:
        refuse("N03", "listeners has no listener of a broker", f"Add one that is not in {LISTENERS}.")
    wanted = config.inter_broker[0]
    if wanted not in names:
        listed = ", ".join(sorted(names))
        refuse("N09", f"{INTER_BROKER} is {wanted}, and the advertised listeners are {listed}", _NAME_ONE)
    if not set(names) <= own:
        refuse("N03", f"{ADVERTISED} names one that listeners lacks", "Add it to listeners, or remove it.")


def _ports(config: Config) -> None:
    wrong = [each.port for each in config.listeners if not 0 <= each.port <= MAX_PORT]
    if wrong:
        refuse("N03", f"listeners has the port {wrong[0]}", f"Write a port from 0 to {MAX_PORT}.")


def _routable(config: Config) -> None:
    if "0.0.0.0" in {each.host for each in (*config.broker_endpoints, *config.controller_endpoints)}:
        refuse("N03", "it would advertise the host 0.0.0.0", f"Set {ADVERTISED}, with a host that others can reach.")


def _control_plane(config: Config) -> None:
    if config.roles and config.is_set(CONTROL_PLANE):
        refuse("N08", f"{CONTROL_PLANE} must go in KRaft mode", "Remove them.")
    name = config.control_plane
    if name is None:
        return
    if name not in {each.name for each in config.broker_endpoints}:
        refuse("N03", f"{CONTROL_PLANE} is {name}, which is not advertised", f"Name one of {ADVERTISED}.")
    if name == config.inter_broker[0]:
        refuse("N03", f"{CONTROL_PLANE} is the inter-broker listener", "Name another listener.")


def _early_start(config: Config) -> None:
    own = {each.name for each in config.listeners}
    wanted = config.get("early.start.listeners")
    unknown = [] if wanted is None else [each for each in csv(str(wanted)) if each not in own]
    if unknown:
        inner = ", ".join(unknown)
        refuse("N03", f"early.start.listeners names {inner}, which listeners lacks", "Remove it.")


def _version(config: Config) -> None:
    if config.roles:
        if config.is_set(VERSION) and _is_below(config.text(VERSION), "3.0-IV1"):
            refuse("N05", f"{VERSION} is {config.text(VERSION)}, and KRaft mode needs 3.0 at least", "Remove it.")
        return
    if not config.has_flag:
        return
    version = config.text(VERSION)
    if _is_below(version, "3.4-IV0"):
        refuse("N05", f"{VERSION} is {version}, and a migration needs 3.4 at least", f"Set {VERSION}=3.9.")
    if _is_below(version, "3.7-IV2") and len(config.log_dirs) > 1:
        refuse("N05", f"several log.dirs need {VERSION} 3.7-IV2", f"Set {VERSION}=3.9.")


def _is_below(version: str, least: str) -> bool:
    return _rank(version) < _rank(least)


def _rank(version: str) -> int:
    rank = release_of(version)
    assert rank is not None, version
    return rank


def _record_format(config: Config) -> None:
    """The format of records that ``inter.broker.protocol.version`` knows; from 3.0 on Kafka ignores the setting."""
    own = _record_version(config.version)
    version = config.text("log.message.format.version")
    if config.version < _rank("3.0-IV1") and _record_version(_rank(version)) > own:
        refuse("N05", f"log.message.format.version {version} is above {VERSION}", "Remove it.")
    codec = config.number("offsets.topic.compression.codec")
    if codec is not None and codec not in range(5):
        refuse("N12", f"offsets.topic.compression.codec is {codec}, and must be from 0 to 4", "Remove it.")
    if codec == 4 and own < 2:
        refuse("N05", f"offsets.topic.compression.codec 4 needs {VERSION} 2.1", f"Set {VERSION}=2.1 at least.")


def _record_version(rank: int) -> int:
    return sum(rank >= _rank(each) for each in ("0.10.0-IV0", FIRST_OF_RECORDS_V2))


def _sasl(config: Config) -> None:
    name, protocol = config.inter_broker
    if not protocol.startswith("SASL"):
        return
    mechanism = config.text("sasl.mechanism.inter.broker.protocol")
    if config.version < _rank("0.10.0-IV1") and mechanism != "GSSAPI":
        refuse("N05", f"{VERSION} knows only GSSAPI between brokers", f"Set {VERSION}=3.9.")
    own = config.overridden(name)
    enabled = config.items("sasl.enabled.mechanisms")
    for setting, text in own.items():
        if is_template(text):
            raise NotKnown(setting)
        try:
            value = value_of(settings()[setting], text)
        except NotAllowed as error:
            refuse("N12", f"{setting} of the listener {name} is {error}", "Write a value that Kafka takes.")
        if setting == "sasl.enabled.mechanisms" and isinstance(value, list):
            enabled = value
    if mechanism not in enabled:
        sentence = f"sasl.mechanism.inter.broker.protocol is {mechanism}, which sasl.enabled.mechanisms lacks"
        refuse("N13", sentence, "Write the same mechanism into both.")


def _connections(config: Config) -> None:
    by_host = pairs("max.connections.per.ip.overrides", config.text("max.connections.per.ip.overrides"))
    for host, number in by_host.items():
        if whole(number) is None:
            refuse("N12", f"max.connections.per.ip.overrides has {number!r} for {host}", "Write a whole number.")
        if not set(host) <= _HOST:
            refuse("N12", f"max.connections.per.ip.overrides has the host {host!r}", "Write a host, or an IP address.")
    if config.whole("max.connections.per.ip") == 0 and not by_host:
        refuse("N13", "max.connections.per.ip is 0 without overrides", "Remove it.")
    idle, delay = config.whole("connections.max.idle.ms"), config.whole("connection.failed.authentication.delay.ms")
    if 0 <= idle <= delay:
        refuse("N13", "connection.failed.authentication.delay.ms is not below connections.max.idle.ms", "Lower it.")
    queued = config.whole("queued.max.request.bytes")
    if 0 < queued < config.whole("socket.request.max.bytes"):
        refuse("N13", "queued.max.request.bytes is below socket.request.max.bytes", "Raise it.")


def _log(config: Config) -> None:
    if not config.log_dirs:
        refuse("N12", "log.dirs is empty", "Name the folders of the data, or remove it.")
    roll, jitter = config.number("log.roll.ms"), config.number("log.roll.jitter.ms")
    if roll is not None and roll < 1:
        refuse("N12", f"log.roll.ms is {roll}, and must be 1 at least", "Raise it, or remove it.")
    if jitter is not None and jitter < 0:
        refuse("N12", f"log.roll.jitter.ms is {jitter}, and must be 0 at least", "Raise it, or remove it.")
    if _retention_ms(config) == 0:
        refuse("N12", "the retention of the log is 0", "Set it to -1 (no end), or above 0.")
    threads, buffer = config.whole("log.cleaner.threads"), config.whole("log.cleaner.dedupe.buffer.size")
    if threads == 0 or buffer // threads <= 1 << 20:
        refuse("N13", "log.cleaner.dedupe.buffer.size is below 1 MiB for each of log.cleaner.threads", "Raise it.")


def _retention_ms(config: Config) -> int:
    """-1 for no end."""
    for unit, scale in (("ms", 1), ("minutes", 60_000), ("hours", 3_600_000)):
        value = config.number(f"log.retention.{unit}")
        if value is not None:
            return max(value * scale, -1)
    raise AssertionError("log.retention.hours has a default")


def _topic_defaults(config: Config) -> None:
    """``LogConfig``, which only brokers make."""
    if not config.is_broker:
        return
    flush = config.number("log.flush.interval.ms")
    if (config.whole("log.flush.scheduler.interval.ms") if flush is None else flush) < 0:
        refuse("N12", "log.flush.interval.ms is negative", "Remove it.")
    if config.get("remote.log.storage.system.enable"):
        _hold_local("log.local.retention.ms", config.whole("log.local.retention.ms"), _retention_ms(config))
        whole = config.whole("log.retention.bytes")
        _hold_local("log.local.retention.bytes", config.whole("log.local.retention.bytes"), whole)


def _hold_local(name: str, local: int, whole: int) -> None:
    if whole > -1 and local != -2 and (local == -1 or local > whole):
        refuse("N13", f"{name} is {local}, above what is kept in all, {whole}", "Lower it, or set it to -2.")


def _groups(config: Config) -> None:
    protocols = [each.upper() for each in config.items("group.coordinator.rebalance.protocols")]
    if "CLASSIC" not in protocols:
        refuse("N13", "group.coordinator.rebalance.protocols lacks classic", "Add classic.")
    if "CONSUMER" in protocols and not config.roles:
        refuse("N13", "group.coordinator.rebalance.protocols has consumer without KRaft mode", "Remove consumer.")
    acks = config.whole("offsets.commit.required.acks")
    if not -1 <= acks <= config.whole("offsets.topic.replication.factor"):
        refuse("N13", "offsets.commit.required.acks is above offsets.topic.replication.factor", "Remove it.")


def _at_most(lower: str, higher: str, of_brokers: bool = False) -> Callable[[Config], None]:
    def rule(config: Config) -> None:
        if (config.is_broker or not of_brokers) and config.whole(lower) > config.whole(higher):
            refuse("N13", f"{lower} is above {higher}", f"Lower {lower}, or raise {higher}.")

    return rule


def _in_between(kind: str, name: str) -> Iterable[Callable[[Config], None]]:
    least, most, value = f"group.{kind}.min.{name}", f"group.{kind}.max.{name}", f"group.{kind}.{name}"
    return (_at_most(least, most), _at_most(least, value), _at_most(value, most))


_RENDER = "Lint the file as the node gets it, with every value filled in."
_KEEP_THE_FLAG = "Write zookeeper.connect. Do not remove the flag: a controller without it ends the migration for good."
_NO_GENERATION = "Set broker.id.generation.enable=false, or raise reserved.broker.max.id."
_NAME_ONE = f"Name one of them in {INTER_BROKER}, or add it to listeners and to {ADVERTISED}."
_HOST = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-%._:")
_LISTS_OF_CLASSES = ("group.consumer.assignors", "metric.reporters", "kafka.metrics.reporters")
_KAFKAS_OWN = frozenset(
    (
        ACL_AUTHORIZER,
        STANDARD_AUTHORIZER,
        "org.apache.kafka.common.metrics.JmxReporter",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    )
)
_RULES: tuple[Callable[[Config], None], ...] = (
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
    _version,
    _record_format,
    _sasl,
    _connections,
    _log,
    _topic_defaults,
    _groups,
    _at_most("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    _at_most("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    _at_most("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms", of_brokers=True),
    *_in_between("consumer", "heartbeat.interval.ms"),
    *_in_between("consumer", "session.timeout.ms"),
    *_in_between("share", "heartbeat.interval.ms"),
    *_in_between("share", "session.timeout.ms"),
    _at_most("group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"),
    _at_most("group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
)
