"""Consumers of one flavour on a profile's cluster, until they are stopped: ``offramp consume`` at work."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import time
from contextlib import ExitStack
from typing import IO, Any

from prometheus_client import CollectorRegistry, start_http_server

from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster, connect, librdkafka_settings, zookeeper_settings
from kit.consumer.console import Child, KafkaMember, ZookeeperMember
from kit.consumer.hand_over import Events, HandOver, as_json, as_text, opened
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.metrics import PrometheusCollector
from kit.consumer.verbs.consume_options import ConsumeOptions, Flavour
from kit.consumer.zookeeper.config import MIGRATION_PREFIX
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.errors import InputError, NotFound, OfframpError, OutputClosed, ProfileError
from kit.profile import Profile

LOOK_SECONDS = 0.2


def run_consumers(profile: Profile, options: ConsumeOptions) -> None:
    """Consume until SIGTERM, SIGINT, the limit, the time-out, or the end of the output; then leave in order.

    Raises:
        InputError: an option can't be used.
        NotFound: a topic does not exist, and was not created in time; nothing was registered.
        HandOverError: records can't be delivered any more; records that were not delivered are not committed.
        OfframpError: as :func:`kit.connect` and the consumers raise it.
        SystemExit: a signal came before it was a member; 128 and its number.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    # kafka-python only checks the cluster before the start; offramp reports its errors, once.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    signals = _Signals()
    try:
        _check(options)
        missing = _check_cluster(profile, options)
        child = Child.start(options.command) if options.command else None
        try:
            hand_over = _consume(profile, options, child, signals, missing)
        finally:
            signals.calm()
            child_error = child.close() if child is not None else None
    except (_Interrupted, OfframpError):
        # A C library may report the interruption by an error of its own.
        if signals.interrupted is None:
            raise
        sys.stderr.write(
            f"offramp: {signals.interrupted.name} before the consumer joined the group; nothing was registered\n"
        )
        raise SystemExit(128 + signals.interrupted) from None
    is_childs_end = child is not None and isinstance(hand_over.error, OutputClosed)
    if hand_over.error is not None and not is_childs_end:
        raise hand_over.error
    if child_error is not None:
        raise child_error
    if is_childs_end:
        sys.stderr.write(f"{options.command[0]} closed its input: {hand_over.error}\n")


def _consume(
    profile: Profile, options: ConsumeOptions, child: Child | None, signals: _Signals, missing: list[str]
) -> HandOver:
    """Run all members until the last one has left."""
    with ExitStack() as stack:
        hand_over = HandOver(
            _output(child), as_json if options.as_json else as_text, options.consumption, options.limit
        )
        lines = stack.enter_context(opened(options.events)) if options.events else sys.stderr
        members = _members(profile, options, hand_over, Events(lines, hand_over.fail))
        if missing:
            _await_topics(profile, options)
        for member in members:
            stack.callback(member.stop)
        stack.callback(signals.calm)
        for member in members:
            if isinstance(member, ZookeeperMember):
                member.start(options.topics, options.allow, options.deny, options.threads)
            else:
                member.start(options.topics)
        signals.calm()
        while not hand_over.ended.wait(LOOK_SECONDS):
            if signals.is_asked:
                hand_over.end()
            elif child is not None and child.has_ended:
                hand_over.fail(OutputClosed(f"{child.name} ended"))
    return hand_over


def _output(child: Child | None) -> IO[bytes]:
    if child is not None:
        assert child.process.stdin is not None
        return child.process.stdin
    if sys.stdout is None:
        raise InputError("standard output is closed: records can't be delivered")
    return sys.stdout.buffer


def _members(
    profile: Profile, options: ConsumeOptions, hand_over: HandOver, events: Events
) -> list[ZookeeperMember | KafkaMember]:
    if options.flavour is Flavour.KC:
        return [_kafka_member(profile, options, hand_over, events) for _ in range(options.threads)]
    return [_zookeeper_member(profile, options, hand_over, events)]


class _Interrupted(BaseException):
    """A signal came before a member was started. Not an Exception: no client library may catch it."""


class _Signals:
    """SIGTERM and SIGINT: before :meth:`calm` they end the process at once, after it they are only noted."""

    def __init__(self) -> None:
        self.is_asked = False
        self.interrupted: signal.Signals | None = None
        self._is_calm = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._received)

    def calm(self) -> None:
        """From now on members have to leave in order."""
        self._is_calm = True

    def _received(self, number: int, frame: object) -> None:
        """Takes no lock: the interrupted main thread may hold it."""
        self.is_asked = True
        if not self._is_calm:
            self._is_calm, self.interrupted = True, signal.Signals(number)
            raise _Interrupted


def _check(options: ConsumeOptions) -> None:
    if sum((bool(options.topics), options.allow is not None, options.deny is not None)) != 1:
        raise InputError("give one of --topic, --allow or --deny")
    if options.threads < 1:
        raise InputError(f"--threads {options.threads}: give 1 or more")
    if options.flavour is Flavour.KC and not options.topics:
        raise InputError("a Kafka consumer (kc) needs --topic; a pattern begins with ^")


def _check_cluster(profile: Profile, options: ConsumeOptions) -> list[str]:
    """Check the cluster before anything is registered; → the topics that it does not have."""
    if options.flavour is not Flavour.KC and not profile.zookeeper_connect:
        raise ProfileError(
            f"cluster {profile.name!r} has no zookeeper_connect in offramp.toml, which a consumer of the flavour "
            f"{options.flavour.value} needs"
        )
    with connect(profile) as cluster:
        return _missing_topics(cluster, options)


def _await_topics(profile: Profile, options: ConsumeOptions) -> None:
    """Wait until the topics exist: a member would wait for them silently, and leave a group behind."""
    until = time.monotonic() + options.topic_seconds
    with connect(profile) as cluster:
        while missing := _missing_topics(cluster, options):
            if time.monotonic() >= until:
                waited = f" after {options.topic_seconds:g} s" if options.topic_seconds else ""
                raise NotFound(
                    f"cluster {profile.name!r} has no topic {', '.join(map(repr, missing))}{waited}; nothing was "
                    "registered. Correct the name, grant the login READ on the topic, or wait for it with"
                    " --wait-for-topics SECONDS"
                )
            time.sleep(LOOK_SECONDS)


def _missing_topics(cluster: Cluster, options: ConsumeOptions) -> list[str]:
    """The named topics that do not exist; patterns are left out."""
    named = [topic for topic in options.topics if options.flavour is not Flavour.KC or not topic.startswith("^")]
    if not named:
        return []
    there = {each.topic for each in fetch_metadata(cluster.broker_client).topic_partitions}
    return sorted(set(named) - there)


def _zookeeper_member(
    profile: Profile, options: ConsumeOptions, hand_over: HandOver, events: Events
) -> ZookeeperMember:
    kafka = librdkafka_settings(profile)
    config: dict[str, Any] = {
        "group.id": options.group_id,
        "zookeeper.connect": profile.zookeeper_connect,
        "auto.offset.reset": "smallest" if options.from_beginning else "largest",
    }
    if options.flavour is Flavour.MEZKCC:
        config |= {"offsets.storage": "kafka", MIGRATION_PREFIX + "enabled": "true"}
        config |= {MIGRATION_PREFIX + name: value for name, value in kafka.items()}
    consumer = ZookeeperConsumer({**config, **options.properties}, zookeeper_settings(profile))
    if options.metrics:
        serve_metrics(options.metrics, PrometheusCollector(consumer.metrics))
    return ZookeeperMember(consumer, hand_over, events)


def _kafka_member(profile: Profile, options: ConsumeOptions, hand_over: HandOver, events: Events) -> KafkaMember:
    generated = f"{options.group_id}-{socket.gethostname()}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}"
    config = {
        "log_level": 0,
        "client.id": generated,
        "group.id": options.group_id,
        "partition.assignment.strategy": "range",
        "auto.offset.reset": "earliest" if options.from_beginning else "latest",
        **librdkafka_settings(profile),
        **options.properties,
    }
    if options.metrics:
        raise InputError("--metrics works with ozkcc and mezkcc only; a Kafka consumer has metrics of its own")
    return KafkaMember(KafkaConsumer(config), str(config["client.id"]), hand_over, events)


def serve_metrics(address: str, collector: PrometheusCollector) -> None:
    """Serve the metrics on ``host:port`` for Prometheus; raises InputError if the address can't be used."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(collector)
    try:
        server, _ = start_http_server(int(port), host or "127.0.0.1", registry)
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"metrics can't be served on {address!r}: {error}") from None
    sys.stderr.write(f"metrics: http://{host or '127.0.0.1'}:{server.server_port}/metrics\n")
