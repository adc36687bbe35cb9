"""Find settings that a node of Kafka 3.9.1 refuses before it opens a port or a folder.

Source: ``KafkaConfig.validateValues`` and the constructors around it, ``LogConfig`` and what ``KafkaServer`` and
``KafkaRaftServer`` ask first. A test gives generated files to the real Kafka, and both must report the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kit.kraft.analyze.kafka_config import (
    FIRST_OF_RECORDS_V2,
    Config,
    NotKnown,
    Refused,
    pairs,
    refuse,
)
from kit.kraft.analyze.kafka_role_rules import ROLE_RULES
from kit.kraft.analyze.kafka_values import NotAllowed, release_of, value_of, whole
from kit.kraft.analyze.node_settings import (
    ACL_AUTHORIZER,
    STANDARD_AUTHORIZER,
    VERSION,
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
    """Yield the settings that Kafka refuses, and settings that can't be judged; nothing if Kafka continues."""
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
    return Judgement("N12", f"the value of {name} is redacted or a placeholder, so it is unknown here", _RENDER, None)


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
                "N12",
                f"{name} is {error}",
                f"Write a value that Kafka accepts for {name}, and no other text on that line.",
            )
            continue
        classes = [str(value)] if setting.type == "CLASS" or name == "authorizer.class.name" else []
        classes += config.items(name) if name in _LISTS_OF_CLASSES else []
        for each in classes:
            if each and each not in _KAFKAS_OWN:
                yield Judgement(
                    "N14", f"{name} needs the class {each}", "Add the class to the class path of the node.", None
                )


def _version(config: Config) -> None:
    if config.roles:
        if config.is_set(VERSION) and _is_below(config.text(VERSION), "3.0-IV1"):
            refuse(
                "N05", f"{VERSION} is {config.text(VERSION)}, but KRaft mode needs 3.0 or later", f"Remove {VERSION}."
            )
        return
    if not config.has_flag:
        return
    version = config.text(VERSION)
    if _is_below(version, "3.4-IV0"):
        refuse("N05", f"{VERSION} is {version}, but a migration needs 3.4 or later", f"Set {VERSION}=3.9.")
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
        refuse("N05", f"log.message.format.version {version} is above {VERSION}", "Remove log.message.format.version.")
    codec = config.number("offsets.topic.compression.codec")
    if codec is not None and codec not in range(5):
        refuse(
            "N12",
            f"offsets.topic.compression.codec is {codec}, and must be from 0 to 4",
            "Remove offsets.topic.compression.codec.",
        )
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
            refuse(
                "N12",
                f"{setting} of the listener {name} is {error}",
                f"Write a value that Kafka accepts for {setting}.",
            )
        if setting == "sasl.enabled.mechanisms" and isinstance(value, list):
            enabled = value
    if mechanism not in enabled:
        sentence = f"sasl.mechanism.inter.broker.protocol is {mechanism}, which sasl.enabled.mechanisms lacks"
        refuse("N13", sentence, f"Add {mechanism} to sasl.enabled.mechanisms.")


def _connections(config: Config) -> None:
    by_host = pairs("max.connections.per.ip.overrides", config.text("max.connections.per.ip.overrides"))
    for host, number in by_host.items():
        if whole(number) is None:
            refuse(
                "N12",
                f"max.connections.per.ip.overrides has {number!r} for {host}",
                f"Write a whole number for {host}.",
            )
        if not set(host) <= _HOST:
            refuse(
                "N12",
                f"max.connections.per.ip.overrides has {host!r}, which is no host name",
                f"Write a host or an IP address for {host!r}.",
            )
    if config.whole("max.connections.per.ip") == 0 and not by_host:
        refuse("N13", "max.connections.per.ip is 0 without overrides", "Remove max.connections.per.ip.")
    idle, delay = config.whole("connections.max.idle.ms"), config.whole("connection.failed.authentication.delay.ms")
    if 0 <= idle <= delay:
        refuse(
            "N13",
            "connection.failed.authentication.delay.ms is not below connections.max.idle.ms",
            f"Set it below {idle}.",
        )
    queued = config.whole("queued.max.request.bytes")
    if 0 < queued < config.whole("socket.request.max.bytes"):
        refuse("N13", "queued.max.request.bytes is below socket.request.max.bytes", "Raise queued.max.request.bytes.")


def _log(config: Config) -> None:
    if not config.log_dirs:
        refuse("N12", "log.dirs is empty", "Name the data folders in log.dirs, or remove log.dirs.")
    roll, jitter = config.number("log.roll.ms"), config.number("log.roll.jitter.ms")
    if roll is not None and roll < 1:
        refuse("N12", f"log.roll.ms is {roll}, and must be 1 at least", "Set log.roll.ms to 1 or more, or remove it.")
    if jitter is not None and jitter < 0:
        refuse(
            "N12",
            f"log.roll.jitter.ms is {jitter}, and must be 0 at least",
            "Set log.roll.jitter.ms to 0 or more, or remove it.",
        )
    if _retention_ms(config) == 0:
        refuse("N12", "the retention of the log is 0", "Set the retention to -1 (no end), or above 0.")
    threads, buffer = config.whole("log.cleaner.threads"), config.whole("log.cleaner.dedupe.buffer.size")
    if threads == 0 or buffer // threads <= 1 << 20:
        refuse(
            "N13",
            "log.cleaner.dedupe.buffer.size is below 1 MiB for each of log.cleaner.threads",
            "Raise log.cleaner.dedupe.buffer.size.",
        )


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
        refuse("N12", "log.flush.interval.ms is negative", "Remove log.flush.interval.ms.")
    if config.get("remote.log.storage.system.enable"):
        _hold_local("log.local.retention.ms", config.whole("log.local.retention.ms"), _retention_ms(config))
        whole = config.whole("log.retention.bytes")
        _hold_local("log.local.retention.bytes", config.whole("log.local.retention.bytes"), whole)


def _hold_local(name: str, local: int, whole: int) -> None:
    if whole > -1 and local != -2 and (local == -1 or local > whole):
        refuse("N13", f"{name} is {local}, above the total retention, {whole}", f"Lower {name}, or set it to -2.")


def _groups(config: Config) -> None:
    protocols = [each.upper() for each in config.items("group.coordinator.rebalance.protocols")]
    if "CLASSIC" not in protocols:
        refuse("N13", "group.coordinator.rebalance.protocols lacks classic", "Add classic to the setting.")
    if "CONSUMER" in protocols and not config.roles:
        refuse(
            "N13",
            "group.coordinator.rebalance.protocols has consumer without KRaft mode",
            "Remove consumer from the setting.",
        )
    acks = config.whole("offsets.commit.required.acks")
    if not -1 <= acks <= config.whole("offsets.topic.replication.factor"):
        refuse(
            "N13",
            "offsets.commit.required.acks is above offsets.topic.replication.factor",
            "Remove offsets.commit.required.acks.",
        )


def _at_most(lower: str, higher: str, of_brokers: bool = False) -> Callable[[Config], None]:
    def rule(config: Config) -> None:
        if (config.is_broker or not of_brokers) and config.whole(lower) > config.whole(higher):
            refuse("N13", f"{lower} is above {higher}", f"Lower {lower}, or raise {higher}.")

    return rule


def _in_between(kind: str, name: str) -> Iterable[Callable[[Config], None]]:
    least, most, value = f"group.{kind}.min.{name}", f"group.{kind}.max.{name}", f"group.{kind}.{name}"
    return (_at_most(least, most), _at_most(least, value), _at_most(value, most))


_RENDER = "Lint the file as the node gets it, with every value filled in."
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
    *ROLE_RULES,
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
