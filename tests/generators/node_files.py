"""Generated settings of nodes: sound ones of each mode, and what people and scripts make of them."""

from __future__ import annotations

import random
from collections.abc import Mapping

from kit.text.kafka_settings import Setting, settings

VOTERS = "3000@localhost:9093,3001@localhost:9094"
_FLAG = {"zookeeper.metadata.migration.enable": "true"}
_QUORUM = {
    "controller.quorum.voters": VOTERS,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
}
_CONTROLLER = {"process.roles": "controller", "node.id": "3000", "listeners": "CONTROLLER://localhost:9093", **_QUORUM}
SOUND: Mapping[str, Mapping[str, str]] = {
    "zookeeper": {"broker.id": "1", "zookeeper.connect": "localhost:2181"},
    "migration": {"broker.id": "1", "zookeeper.connect": "localhost:2181", **_FLAG, **_QUORUM},
    "kraft": {"process.roles": "broker", "node.id": "1", **_QUORUM},
    "controller": {**_CONTROLLER, "zookeeper.connect": "localhost:2181", **_FLAG},
    "final controller": _CONTROLLER,
}
_NAMES = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "INNER", "CONTROLLER", "controller", "Inner", "A B", "")
_HOSTS = ("", "localhost", "0.0.0.0", "127.0.0.1", "[::1]", "127.0.0.2", "no_such", "host!")
_PORTS = ("9092", "9093", "9094", "0", "-1", "65536", "99999999999", "", "x")
_TEXTS = ("", " ", "true", "True", " TRUE ", "yes", "0", "-1", "1", "+7", "1001", "99999999999999999999", "1.5", "1e3")
_TEXTS += ("1 # one", "NaN", "²", "٣", "a,b", "a, b ,", ",", "a:b", "3.9", "gzip", "delete, compact", "ALL", "x:1,y:2")
_WORDS = (
    ("process.roles", ("", " ", "broker", "controller", "broker,controller", "Broker", "broker, broker", "broker,")),
    ("zookeeper.metadata.migration.enable", ("true", "True", " true", "false", "yes", "true # on", "")),
    ("zookeeper.connect", ("localhost:2181/kafka", "", " ")),
    ("inter.broker.protocol.version", ("3.9", "3.9.1", "3.9-IV0", "3.7-IV1", "3.3", "2.8", "0.10.0", "0.9.0", "x", "")),
    ("log.message.format.version", ("2.8", "0.9.0", "0.10.2", "3.9", "x")),
    ("inter.broker.listener.name", ("PLAINTEXT", "INNER", "inner", "CONTROLLER", " SSL ", "", "NOBODY")),
    ("control.plane.listener.name", ("INNER", "PLAINTEXT", "CONTROLLER", "", "NOBODY")),
    ("security.inter.broker.protocol", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "ssl", "", "NONE")),
    ("sasl.mechanism.inter.broker.protocol", ("PLAIN", "GSSAPI", "SCRAM-SHA-256", "")),
    ("sasl.enabled.mechanisms", ("PLAIN", "PLAIN, GSSAPI", "", "SCRAM-SHA-256")),
    ("listener.name.inner.sasl.enabled.mechanisms", ("PLAIN", "GSSAPI", "")),
    ("listener.name.sasl_plaintext.sasl.enabled.mechanisms", ("PLAIN", "GSSAPI", "")),
    ("listener.name.sasl_plaintext.ssl.client.auth", ("required", "sometimes")),
    ("log.dirs", ("/a", "/a,/b", " , ", "", ",/a")),
    ("log.dir", ("/a", "", " ")),
    ("authorizer.class.name", ("", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")),
    ("early.start.listeners", ("CONTROLLER", "PLAINTEXT, CONTROLLER", "controller", "", "NOBODY")),
    (
        "group.coordinator.rebalance.protocols",
        ("classic", "classic,consumer", "consumer", "", "Classic", "classic,share"),
    ),
    ("max.connections.per.ip.overrides", ("localhost:5", "127.0.0.1:-1,::1:2", "a", "a:b", "ho st:1", "", ",a:1")),
    ("broker.id.generation.enable", ("true", "false", "FALSE")),
    ("compression.type", ("gzip", "GZIP", "none", "producer")),
    ("log.cleanup.policy", ("compact", "compact,delete", "", "Compact", "delete,")),
)
_NUMBERS = (
    ("broker.id", (-2, -1, 0, 1, 1000, 1001, 3000)),
    ("node.id", (-1, 0, 1, 3000, 3001, 3005)),
    ("reserved.broker.max.id", (-1, 0, 1000, 5000)),
    ("log.roll.ms", (0, 1, -1)),
    ("log.roll.jitter.ms", (0, -1)),
    ("log.retention.ms", (0, -1, -5, 1)),
    ("log.retention.minutes", (0, -1, 5)),
    ("log.retention.hours", (0, -1, 5)),
    ("log.cleaner.threads", (0, 1, 64, 1000)),
    ("log.cleaner.dedupe.buffer.size", (0, 1 << 20, (1 << 20) + 1, 1 << 40)),
    ("replica.fetch.wait.max.ms", (500, 30_000, 30_001)),
    ("replica.socket.timeout.ms", (100, 500, 600_000)),
    ("replica.lag.time.max.ms", (100, 30_000)),
    ("log.cleaner.min.compaction.lag.ms", (0, 10, -1)),
    ("log.cleaner.max.compaction.lag.ms", (1, 9, 0)),
    ("log.flush.interval.ms", (-1, 0, 9)),
    ("log.flush.scheduler.interval.ms", (-1, 0)),
    ("log.local.retention.ms", (-3, -2, -1, 5, 1 << 60)),
    ("log.local.retention.bytes", (-3, -2, -1, 5, 1 << 60)),
    ("log.retention.bytes", (-1, 4, 1 << 40)),
    ("offsets.commit.required.acks", (-2, -1, 3, 4)),
    ("offsets.topic.replication.factor", (0, 1, 3, 40_000)),
    ("offsets.topic.compression.codec", (-1, 0, 4, 5)),
    ("connections.max.idle.ms", (-1, 0, 100, 101)),
    ("connection.failed.authentication.delay.ms", (0, 100, 1000)),
    ("queued.max.request.bytes", (-1, 0, 1, 1 << 30)),
    ("max.connections.per.ip", (0, 1)),
    ("group.consumer.heartbeat.interval.ms", (1, 5000, 20_000)),
    ("group.consumer.max.session.timeout.ms", (1, 45_000)),
    ("group.share.min.heartbeat.interval.ms", (1, 6000, 20_000)),
    ("group.share.record.lock.duration.ms", (1000, 14_000, 60_000)),
)


def random_file(mode: str, random_source: random.Random) -> dict[str, str]:
    """Sound settings of a mode after up to four changes of a person; most of the results are wrong."""
    held = dict(SOUND[mode])
    for _ in range(random_source.randrange(5)):
        random_source.choice(_CHANGES)(held, random_source)
    return held


def _drop(held: dict[str, str], source: random.Random) -> None:
    if held:
        del held[source.choice(sorted(held))]


def _word(held: dict[str, str], source: random.Random) -> None:
    name, values = source.choice(_WORDS)
    held[name] = source.choice(values)


def _number(held: dict[str, str], source: random.Random) -> None:
    name, values = source.choice(_NUMBERS)
    held[name] = str(source.choice(values))


def _any_setting(held: dict[str, str], source: random.Random) -> None:
    """A class would have to be on the class path, which nobody sees in the file."""
    setting = source.choice([each for each in settings().values() if not _names_classes(each)])
    held[setting.name] = source.choice(_TEXTS)


def _names_classes(setting: Setting) -> bool:
    name = setting.name
    return setting.type == "CLASS" or name.endswith((".reporters", ".assignors", "authorizer.class.name"))


def _listeners(held: dict[str, str], source: random.Random) -> None:
    name = source.choice(("listeners", "listeners", "advertised.listeners"))
    held[name] = source.choice((",", ", ")).join(_listener(source) for _ in range(source.randrange(4)))


def _listener(source: random.Random) -> str:
    usual = source.random() < 0.7
    name = source.choice(_NAMES[:5] if usual else _NAMES)
    host = source.choice(_HOSTS[:2] if usual else _HOSTS)
    return f"{name}://{host}:{source.choice(_PORTS[:3] if usual else _PORTS)}"


def _map(held: dict[str, str], source: random.Random) -> None:
    protocols = ("PLAINTEXT", "PLAINTEXT", "SASL_PLAINTEXT", "SSL", "ssl", "X")
    entries = [f"{source.choice(_NAMES[:6])}:{source.choice(protocols)}" for _ in range(source.randrange(6))]
    held["listener.security.protocol.map"] = ",".join(entries)


def _voters(held: dict[str, str], source: random.Random) -> None:
    name = source.choice(
        ("controller.quorum.voters", "controller.quorum.voters", "controller.quorum.bootstrap.servers")
    )
    ids = ("3000@", "3001@", "1@", "", "@", "x@", "1@2@")
    entries = [
        f"{source.choice(ids)}{source.choice(('localhost', '0.0.0.0', '[::1]', ''))}:{source.choice(_PORTS[:6])}"
        for _ in range(source.randrange(3))
    ]
    held[name] = ",".join(entries)


def _controller_names(held: dict[str, str], source: random.Random) -> None:
    names = ("CONTROLLER", "controller", "CONTROLLER,INNER", "CONTROLLER, INNER", "", ",", "CONTROLLER,,INNER", "SSL")
    held["controller.listener.names"] = source.choice(names)


_CHANGES = (
    _drop,
    _word,
    _word,
    _number,
    _number,
    _any_setting,
    _any_setting,
    _listeners,
    _map,
    _voters,
    _controller_names,
)
