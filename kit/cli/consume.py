"""``offramp consume``: consumers of one flavour on a profile's cluster, until they are stopped."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from prometheus_client import CollectorRegistry, start_http_server

from kit.cli.terminal import LONGEST_WAIT_S, ProfileFile, ProfileName, a_number, refusals
from kit.cluster import Cluster, connect, librdkafka_settings, zookeeper_settings
from kit.consumer.console import Child, KafkaMember, ZookeeperMember
from kit.consumer.hand_over import Events, HandOver, as_json, as_text, opened
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.metrics import PrometheusCollector
from kit.consumer.zookeeper.config import MIGRATION_PREFIX
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.errors import InputError, NotFound, OfframpError, OutputClosed, ProfileError
from kit.profile import Profile, load_profile
from kit.read.brokers import fetch_metadata

LOOK_SECONDS = 0.2

app = typer.Typer(rich_markup_mode=None)


class Flavour(StrEnum):
    """KIP-125's flavours of a member."""

    OZKCC = "ozkcc"
    MEZKCC = "mezkcc"
    KC = "kc"


@dataclass(frozen=True)
class ConsumeOptions:
    """What to consume, and where the records go. ``properties`` are the consumer's own keys; they win over all others.

    ``topic_seconds``: how long to wait for a topic that does not exist.
    """

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
    topic_seconds: float = 0.0
    consumption: Path | None = None
    events: Path | None = None
    metrics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # Passwords may be among them.


@app.command()
def consume(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After `--`: a program that gets the records on its standard input; by default standard output."
        ),
    ] = None,
    flavour: Annotated[
        Flavour,
        typer.Option(
            help="An old ZooKeeper consumer (ozkcc), a migration-enabled one that follows migration/mode "
            "(mezkcc), or a plain Kafka consumer (kc)."
        ),
    ] = Flavour.OZKCC,
    group: Annotated[str, typer.Option("--group", "-g", help="The group to join.")] = "",
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")] = None,
    allow: Annotated[str | None, typer.Option(help="Instead of --topic: topics that match as a whole.")] = None,
    deny: Annotated[str | None, typer.Option(help="Instead of --topic: all topics except those that match.")] = None,
    threads: Annotated[int, typer.Option(help="Streams per topic; with kc: members, each on a thread.")] = 1,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Without a committed offset, begin with the oldest record.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object per record instead of its value alone.")
    ] = False,
    max_messages: Annotated[int, typer.Option(help="Leave the group after so many records; 0: never.")] = 0,
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", help="key=value of the consumer's configuration; can be given again."),
    ] = None,
    properties: Annotated[Path | None, typer.Option(help="A file of lines key=value.")] = None,
    consumption_file: Annotated[
        Path | None,
        typer.Option(help="Append a JSON line per record handed over: at_ms, consumer, topic, partition, offset."),
    ] = None,
    events_file: Annotated[
        Path | None, typer.Option(help="Append rebalances here; by default they go to standard error.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="host:port to serve Prometheus metrics on.")] = None,
    wait_for_topics: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a topic that does not exist; 0: refuse at once.",
            min=0,
            max=LONGEST_WAIT_S,
            callback=a_number,
        ),
    ] = 0.0,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Consume as a member of a group, in any of KIP-125's flavours: a canary by hand.

    Records go to standard output, or to a program of any language. A record is committed only after it was handed
    over: written in full, and read by the reader of the pipe. SIGTERM or Ctrl-C: commit, leave the group, end. The
    guarantees are in docs/consumers.md.

    \b
    offramp consume --flavour mezkcc -g orders -t orders --threads 2 --json -- ./service --stdin
    """
    with refusals():
        options = ConsumeOptions(
            flavour,
            group,
            topic or (),
            allow,
            deny,
            threads,
            from_beginning,
            as_json,
            command or (),
            max_messages,
            wait_for_topics,
            consumption_file,
            events_file,
            metrics,
            properties_of(property_ or (), properties),
        )
        run_consumers(load_profile(profile, profile_file), options)


def run_consumers(profile: Profile, options: ConsumeOptions) -> None:
    """Consume until SIGTERM, SIGINT, the limit, the time-out, or the end of the output; then leave in order.

    Raises:
        InputError: an option can't be used.
        NotFound: a topic does not exist, and was not created in time; nothing was registered.
        HandOverError: records can't be handed over any more; the others are not committed.
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
        sys.stderr.write(f"offramp: {signals.interrupted.name} before it was a member; nothing was registered\n")
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
        raise InputError("standard output is closed: records can't be handed over")
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
            f"cluster {profile.name!r} has no zookeeper_connect: {options.flavour.value} needs ZooKeeper"
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
                    "registered. Correct the name, or wait for the topic with --wait-for-topics SECONDS"
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


def properties_of(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """``key=value`` pairs, after those of a properties file.

    Raises:
        InputError: one of them has no ``=``, or the file can't be read.
    """
    lines = [(f"property {number} on the command line", pair) for number, pair in enumerate(pairs, 1)]
    if file is not None:
        lines = [*_lines_of(file), *lines]
    properties = {}
    for where, line in lines:
        key, separator, value = line.partition("=")
        if not separator:  # The message does not quote the line: it may be a password.
            raise InputError(f"{where} has no '=': a property is key=value")
        properties[key.strip()] = value.strip()
    return properties


def _lines_of(file: Path) -> list[tuple[str, str]]:
    """Each line with a property, and its place."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {type(error).__name__}") from None
    return [(f"line {at} of {file}", line) for at, line in enumerate(lines, 1) if line and line[0] not in "#!"]
