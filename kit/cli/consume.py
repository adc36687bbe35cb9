"""``offramp consume``: consumers of one flavour on a profile's cluster, until told to stop."""

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

from kit.cli.terminal import ProfileFile, ProfileName, refusals
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
    """KIP-125's words for what a member is."""

    OZKCC = "ozkcc"
    MEZKCC = "mezkcc"
    KC = "kc"


@dataclass(frozen=True)
class ConsumeOptions:
    """What is to be consumed and where to. ``properties`` are the consumer's own keys, and win over all others.

    ``topic_seconds``: how long to wait for a topic that isn't there.
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
            help="After `--`: a program to hand the records to on its standard input; by default standard output."
        ),
    ] = None,
    flavour: Annotated[
        Flavour,
        typer.Option(
            help="What to be: an old ZooKeeper consumer (ozkcc), a migration-enabled one that follows migration/mode "
            "(mezkcc), or a plain Kafka consumer (kc)."
        ),
    ] = Flavour.OZKCC,
    group: Annotated[str, typer.Option("--group", "-g", help="The group to join.")] = "",
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="A topic; can be given again.")] = None,
    allow: Annotated[str | None, typer.Option(help="Instead: topics whose whole name matches this pattern.")] = None,
    deny: Annotated[str | None, typer.Option(help="Instead: all topics but those that match.")] = None,
    threads: Annotated[int, typer.Option(help="Streams per topic; of a kc members, each on a thread.")] = 1,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Where the group has no offset, begin with the oldest record.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object per record instead of its value alone.")
    ] = False,
    max_messages: Annotated[int, typer.Option(help="Leave after so many records; 0: never.")] = 0,
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", help="key=value of the consumer's own configuration; can be given again."),
    ] = None,
    properties: Annotated[Path | None, typer.Option(help="A properties file of such lines.")] = None,
    consumption_file: Annotated[
        Path | None,
        typer.Option(help="Append a JSON line per record handed over: at_ms, consumer, topic, partition, offset."),
    ] = None,
    events_file: Annotated[
        Path | None, typer.Option(help="Append rebalances here; by default they go to standard error.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="host:port to serve Prometheus metrics on.")] = None,
    wait_for_topics: Annotated[
        float, typer.Option(help="Seconds to wait for a topic that isn't there; 0: refuse at once.", min=0)
    ] = 0.0,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Consume as a member of a group, in any of KIP-125's flavours: a canary by hand.

    Records go to standard output, or to a program of any language. A record is committed only after it was handed
    over: written whole, and read by who reads the pipe. SIGTERM or Ctrl-C: commit, leave the group, end. What is
    guaranteed is in docs/consumers.md.

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
        InputError: something wished for can't be.
        NotFound: a topic isn't there, and did not appear in time; nothing was registered.
        HandOverError: records can't be handed over any more; what was not is not committed.
        OfframpError: as :func:`kit.connect` and the consumers raise it.
        SystemExit: a signal came before it was a member; 128 and its number.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    # It serves the look before the start; what goes wrong there is told by an error of ours, once.
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
        # A library written in C may tell of the interruption in words of its own.
        if signals.interrupted is None:
            raise
        sys.stderr.write(f"offramp: {signals.interrupted.name} before it was a member; nothing is left behind\n")
        raise SystemExit(128 + signals.interrupted) from None
    is_childs_end = child is not None and isinstance(hand_over.error, OutputClosed)
    if hand_over.error is not None and not is_childs_end:
        raise hand_over.error
    if child_error is not None:
        raise child_error
    if is_childs_end:
        sys.stderr.write(f"{options.command[0]} wanted no more: {hand_over.error}\n")


def _consume(
    profile: Profile, options: ConsumeOptions, child: Child | None, signals: _Signals, missing: list[str]
) -> HandOver:
    """Everything until the last member has left."""
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
                hand_over.fail(OutputClosed(f"{child.name} ended by itself"))
    return hand_over


def _output(child: Child | None) -> IO[bytes]:
    if child is not None:
        assert child.process.stdin is not None
        return child.process.stdin
    if sys.stdout is None:
        raise InputError("standard output is closed: there is nobody to hand records to")
    return sys.stdout.buffer


def _members(
    profile: Profile, options: ConsumeOptions, hand_over: HandOver, events: Events
) -> list[ZookeeperMember | KafkaMember]:
    if options.flavour is Flavour.KC:
        return [_kafka_member(profile, options, hand_over, events) for _ in range(options.threads)]
    return [_zookeeper_member(profile, options, hand_over, events)]


class _Interrupted(BaseException):
    """A signal came before there was anything to leave in order. No Exception: no client may swallow it."""


class _Signals:
    """SIGTERM and SIGINT: at first they end everything where it stands, after :meth:`calm` they are only noted."""

    def __init__(self) -> None:
        self.is_asked = False
        self.interrupted: signal.Signals | None = None
        self._is_calm = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._received)

    def calm(self) -> None:
        """There is something to be left in order from now on."""
        self._is_calm = True

    def _received(self, number: int, frame: object) -> None:
        """No lock is taken here: the main thread may have it."""
        self.is_asked = True
        if not self._is_calm:
            self._is_calm, self.interrupted = True, signal.Signals(number)
            raise _Interrupted


def _check(options: ConsumeOptions) -> None:
    if sum((bool(options.topics), options.allow is not None, options.deny is not None)) != 1:
        raise InputError("give topics, or one pattern of topics to allow, or one to deny")
    if options.threads < 1:
        raise InputError(f"{options.threads} threads can't consume; 1 or more can")
    if options.flavour is Flavour.KC and not options.topics:
        raise InputError("a Kafka consumer (kc) takes topics; a pattern among them begins with ^")


def _check_cluster(profile: Profile, options: ConsumeOptions) -> list[str]:
    """The right cluster, before anything is registered; the topics that it hasn't."""
    if options.flavour is not Flavour.KC and not profile.zookeeper_connect:
        raise ProfileError(
            f"cluster {profile.name!r} has no zookeeper_connect: {options.flavour.value} needs ZooKeeper"
        )
    with connect(profile) as cluster:
        return _missing_topics(cluster, options)


def _await_topics(profile: Profile, options: ConsumeOptions) -> None:
    """A member for a topic that isn't there would wait without a word, and leave a group behind."""
    until = time.monotonic() + options.topic_seconds
    with connect(profile) as cluster:
        while missing := _missing_topics(cluster, options):
            if time.monotonic() >= until:
                waited = f" after {options.topic_seconds:g} s" if options.topic_seconds else ""
                raise NotFound(
                    f"cluster {profile.name!r} has no topic {', '.join(map(repr, missing))}{waited}; nothing was "
                    "registered. Mend the name, or wait for it with --wait-for-topics SECONDS"
                )
            time.sleep(LOOK_SECONDS)


def _missing_topics(cluster: Cluster, options: ConsumeOptions) -> list[str]:
    """Of those that are named, not of patterns."""
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
    properties = {}
    for where, line in lines:
        key, separator, value = line.partition("=")
        if not separator:  # The line isn't quoted: it may be a password.
            raise InputError(f"{where} is no property: it has no '='; it must be key=value")
        properties[key.strip()] = value.strip()
    return properties


def _lines_of(file: Path) -> list[tuple[str, str]]:
    """Each line that says something, with where it stands."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {type(error).__name__}") from None
    return [(f"line {at} of {file}", line) for at, line in enumerate(lines, 1) if line and line[0] not in "#!"]
