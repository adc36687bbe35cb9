"""``offramp consume``: consumers of one flavour on a profile's cluster, until told to stop."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from prometheus_client import CollectorRegistry, start_http_server

from kit.cluster import connect, librdkafka_settings, zookeeper_settings
from kit.consumer.config import MIGRATION_PREFIX
from kit.consumer.connector import ZookeeperConsumer
from kit.consumer.console import Child, Events, HandOver, KafkaMember, ZookeeperMember, as_json, as_text
from kit.consumer.kafka_consumer import KafkaConsumer
from kit.consumer.metrics import PrometheusCollector
from kit.errors import InputError, ProfileError
from kit.profile import Profile

LOOK_SECONDS = 0.2


class Flavour(StrEnum):
    """KIP-125's words for what a member is."""

    OZKCC = "ozkcc"
    MEZKCC = "mezkcc"
    KC = "kc"


@dataclass(frozen=True)
class Wish:
    """What is to be consumed and where to. ``properties`` are the consumer's own keys, and win over all others."""

    flavour: Flavour
    group_id: str
    topics: Sequence[str] = ()
    allow: str | None = None
    deny: str | None = None
    threads: int = 1
    from_beginning: bool = False
    as_json: bool = False
    command: Sequence[str] = ()
    limit: int = 0
    consumption: Path | None = None
    events: Path | None = None
    metrics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # Passwords may be among them.


def consume(profile: Profile, wish: Wish) -> None:
    """Consume until SIGTERM, SIGINT, the limit, or the end of the output; then leave in order.

    Raises:
        InputError: something wished for can't be; the output or the child took no more.
        OfframpError: as :func:`kit.connect` and the consumers raise it.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    _check(wish)
    _check_cluster(profile, wish)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    child = Child.start(wish.command) if wish.command else None
    output: IO[bytes] = child.process.stdin if child is not None and child.process.stdin else sys.stdout.buffer
    try:
        with ExitStack() as stack:
            hand_over = HandOver(output, as_json if wish.as_json else as_text, wish.consumption, wish.limit)
            events = Events(stack.enter_context(wish.events.open("a", encoding="utf-8")) if wish.events else sys.stderr)
            _run(profile, wish, hand_over, events, stopping, child, stack)
    finally:
        code = child.close() if child is not None else 0
    if hand_over.error is not None:
        raise hand_over.error
    if code:
        raise InputError(f"{wish.command[0]} ended with exit code {code}")


def _run(
    profile: Profile,
    wish: Wish,
    hand_over: HandOver,
    events: Events,
    stopping: threading.Event,
    child: Child | None,
    stack: ExitStack,
) -> None:
    if wish.flavour is Flavour.KC:
        members: list[Any] = [_kafka_member(profile, wish, hand_over, events) for _ in range(wish.threads)]
    else:
        members = [_zookeeper_member(profile, wish, hand_over, events)]
    for member in members:
        stack.callback(member.stop)
        if isinstance(member, ZookeeperMember):
            member.start(wish.topics, wish.allow, wish.deny, wish.threads)
        else:
            member.start(wish.topics)
    while not stopping.wait(LOOK_SECONDS) and not hand_over.ended.is_set():
        if child is not None and child.process.poll() is not None:
            hand_over.fail(InputError(f"{wish.command[0]} ended with exit code {child.process.poll()}"))


def _check(wish: Wish) -> None:
    if sum((bool(wish.topics), wish.allow is not None, wish.deny is not None)) != 1:
        raise InputError("give topics, or one pattern of topics to allow, or one to deny")
    if wish.threads < 1:
        raise InputError(f"{wish.threads} threads can't consume; 1 or more can")
    if wish.flavour is Flavour.KC and not wish.topics:
        raise InputError("a Kafka consumer (kc) takes topics; a pattern among them begins with ^")


def _check_cluster(profile: Profile, wish: Wish) -> None:
    """The right cluster, before anything is registered."""
    if wish.flavour is not Flavour.KC and not profile.zookeeper_connect:
        raise ProfileError(f"cluster {profile.name!r} has no zookeeper_connect: {wish.flavour.value} needs ZooKeeper")
    connect(profile).close()


def _zookeeper_member(profile: Profile, wish: Wish, hand_over: HandOver, events: Events) -> ZookeeperMember:
    kafka = librdkafka_settings(profile)
    config: dict[str, Any] = {
        "group.id": wish.group_id,
        "zookeeper.connect": profile.zookeeper_connect,
        "auto.offset.reset": "smallest" if wish.from_beginning else "largest",
    }
    if wish.flavour is Flavour.MEZKCC:
        config |= {"offsets.storage": "kafka", MIGRATION_PREFIX + "enabled": "true"}
        config |= {MIGRATION_PREFIX + name: value for name, value in kafka.items()}
    consumer = ZookeeperConsumer({**config, **wish.properties}, zookeeper_settings(profile))
    if wish.metrics:
        serve_metrics(wish.metrics, PrometheusCollector(consumer.metrics))
    return ZookeeperMember(consumer, hand_over, events)


def _kafka_member(profile: Profile, wish: Wish, hand_over: HandOver, events: Events) -> KafkaMember:
    generated = f"{wish.group_id}-{socket.gethostname()}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}"
    config = {
        "log_level": 0,
        "client.id": generated,
        "group.id": wish.group_id,
        "partition.assignment.strategy": "range",
        "auto.offset.reset": "earliest" if wish.from_beginning else "latest",
        **librdkafka_settings(profile),
        **wish.properties,
    }
    if wish.metrics:
        raise InputError("metrics are those of a ZooKeeper member (ozkcc, mezkcc); a Kafka consumer has its own")
    return KafkaMember(KafkaConsumer(config), str(config["client.id"]), hand_over, events)


def serve_metrics(address: str, collector: PrometheusCollector) -> None:
    """Serve the numbers on ``host:port`` for Prometheus; raises InputError when that can't be listened on."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(collector)
    try:
        server, _ = start_http_server(int(port), host or "127.0.0.1", registry)
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"metrics can't be served on {address!r}: {error}") from None
    sys.stderr.write(f"metrics: http://{host or '127.0.0.1'}:{server.server_port}/metrics\n")


def properties_of(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """``key=value`` pairs, after those of a properties file.

    Raises:
        InputError: one of them has no ``=``, or the file can't be read.
    """
    lines = [(f"property {number} on the command line", pair) for number, pair in enumerate(pairs, 1)]
    if file is not None:
        lines = [*_lines_of(file), *lines]
    found = {}
    for where, line in lines:
        key, separator, value = line.partition("=")
        if not separator:  # The line isn't quoted: it may be a password.
            raise InputError(f"{where} is no property: it has no '='; it must be key=value")
        found[key.strip()] = value.strip()
    return found


def _lines_of(file: Path) -> list[tuple[str, str]]:
    """Each line that says something, with where it stands."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {type(error).__name__}") from None
    return [(f"line {at} of {file}", line) for at, line in enumerate(lines, 1) if line and line[0] not in "#!"]
