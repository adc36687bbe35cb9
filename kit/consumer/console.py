"""Consumers of any flavour as one process: records to standard output or into a child, one thread per stream.

A record counts as consumed only after it was handed over: written and flushed. When the child ends, or the output is
closed, consuming ends too, without the record that could not be handed over.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TextIO

from confluent_kafka import KafkaException, Message

from kit.consumer.connector import ZookeeperConsumer
from kit.consumer.kafka_consumer import KafkaConsumer
from kit.consumer.view import RebalanceConsumer
from kit.errors import InputError, OfframpError

POLL_SECONDS = 0.2
TEXT, JSON = "text", "json"


def as_text(message: Message) -> bytes:
    """The value and a newline, as the console consumers write it."""
    return (message.value() or b"") + b"\n"


def as_json(message: Message) -> bytes:
    """One object per line; a key or value that is no UTF-8 goes as ``{"base64": …}``."""
    fields = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": message.timestamp()[1],
        "key": _readable(message.key()),
        "value": _readable(message.value()),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _readable(data: bytes | str | None) -> Any:
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class HandOver:
    """Writes records out, from any thread; ``consumption`` gets a line per record that was handed over."""

    def __init__(
        self,
        output: IO[bytes],
        formatted: Callable[[Message], bytes],
        consumption: Path | None,
        limit: int = 0,
    ) -> None:
        self._output = output
        self._formatted = formatted
        self._lines: TextIO | None = consumption.open("a", encoding="utf-8", buffering=1) if consumption else None
        self._left = limit or None
        self._lock = threading.Lock()
        self.ended = threading.Event()
        self.error: OfframpError | None = None

    def take(self, message: Message, consumer: str) -> bool:
        """Hand one record over. False: it was not, and nothing is taken any more."""
        with self._lock:
            if self.ended.is_set():
                return False
            try:
                self._output.write(self._formatted(message))
                self._output.flush()
            except OSError as error:
                self.fail(InputError(f"the output takes no more records: {error.strerror}"))
                return False
            self._note(message, consumer)
            return self._count()

    def fail(self, error: OfframpError) -> None:
        self.error = self.error or error
        self.ended.set()

    def _note(self, message: Message, consumer: str) -> None:
        if self._lines is not None:
            fields = {
                "at_ms": time.time_ns() // 1_000_000,
                "consumer": consumer,
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
            }
            self._lines.write(json.dumps(fields) + "\n")

    def _count(self) -> bool:
        if self._left is not None:
            self._left -= 1
            if self._left <= 0:
                self.ended.set()
        return True


class Events:
    """What happens to a consumer, a line each: ``epoch-ms consumer EVENT details``."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._lock = threading.Lock()

    def say(self, consumer: str, event: str, details: object = None) -> None:
        text = "" if details is None else f" {json.dumps(details) if not isinstance(details, str) else details}"
        with self._lock:
            self._output.write(f"{time.time_ns() // 1_000_000} {consumer} {event}{text}\n")
            self._output.flush()


class _ToldOfRebalances:
    """A ZooKeeper member's listener: says ``REL {topic: [partitions]}`` and ``BEG {topic: {partition: thread}}``."""

    def __init__(self, consumer: str, events: Events) -> None:
        self._consumer, self._events = consumer, events

    def before_releasing_partitions(self, partitions: Mapping[str, set[int]]) -> None:
        self._events.say(self._consumer, "REL", {topic: sorted(numbers) for topic, numbers in partitions.items()})

    def before_starting_fetchers(self, consumer_id: str, assignment: Mapping[str, Mapping[int, str]]) -> None:
        self._events.say(self._consumer, "BEG", assignment)


@dataclass
class ZookeeperMember:
    """An OZKCC or MEZKCC: its streams, each on a thread."""

    consumer: ZookeeperConsumer
    hand_over: HandOver
    events: Events
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, topics: Sequence[str], allow: str | None, deny: str | None, n_threads: int) -> None:
        self.consumer.set_consumer_rebalance_listener(_ToldOfRebalances(self.consumer.consumer_id, self.events))
        if topics:
            by_topic = self.consumer.create_message_streams(dict.fromkeys(topics, n_threads))
            streams = [stream for each in by_topic.values() for stream in each]
        else:
            streams = self.consumer.create_message_streams_by_filter(allow, deny, n_threads)
        self.events.say(self.consumer.consumer_id, "REG", str(len(streams)))
        self.threads = [_started(self._pump, stream) for stream in streams]

    def _pump(self, stream: Iterable[Message]) -> None:
        try:
            for message in stream:
                if not self.hand_over.take(message, self.consumer.consumer_id):
                    return
        except (OfframpError, KafkaException) as error:
            self.hand_over.fail(error if isinstance(error, OfframpError) else OfframpError(str(error)))

    def stop(self) -> None:
        self.consumer.shutdown()
        self.events.say(self.consumer.consumer_id, "STOP")


@dataclass
class KafkaMember:
    """A KC: one member of the Kafka group on one thread."""

    consumer: KafkaConsumer
    client_id: str
    hand_over: HandOver
    events: Events
    thread: threading.Thread | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    assigned: set[tuple[str, int]] = field(default_factory=set)

    def start(self, topics: Sequence[str]) -> None:
        self.consumer.set_rebalance_listener(self)
        self.consumer.subscribe(list(topics))
        self.thread = _started(self._pump)

    def on_partitions_assigned(self, partitions: Sequence[Any], consumer: RebalanceConsumer) -> None:
        self.assigned |= {(each.topic, each.partition) for each in partitions}
        self._tell("ASSIGN")

    def on_partitions_revoked(self, partitions: Sequence[Any], consumer: RebalanceConsumer) -> None:
        self.assigned -= {(each.topic, each.partition) for each in partitions}
        self._tell("REVOKE")

    on_partitions_lost = on_partitions_revoked

    def _tell(self, event: str) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(self.assigned):
            by_topic.setdefault(topic, []).append(partition)
        self.events.say(self.client_id, event, by_topic)

    def _pump(self) -> None:
        try:
            while not self.stopping.is_set():
                message = self.consumer.poll(POLL_SECONDS)
                if message is not None and message.error() is None and not self.hand_over.take(message, self.client_id):
                    return
            self.consumer.close()
        except (OfframpError, KafkaException) as error:
            self.hand_over.fail(error if isinstance(error, OfframpError) else OfframpError(str(error)))

    def stop(self) -> None:
        self.stopping.set()
        assert self.thread is not None
        self.thread.join()
        self.events.say(self.client_id, "STOP")


@dataclass
class Child:
    """A program that reads records on its standard input; its output goes where ours goes."""

    name: str
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, command: Sequence[str]) -> Child:
        """Raises InputError when it can't be started."""
        try:
            return cls(command[0], subprocess.Popen(list(command), stdin=subprocess.PIPE, start_new_session=True))
        except OSError as error:
            raise InputError(f"{command[0]} can't be started: {error.strerror}") from None

    def close(self, seconds: float = 30.0) -> int:
        """End its input, wait, and end it if it doesn't; its exit code."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
        except OSError:
            sys.stderr.write(f"{self.name} (process {self.process.pid}) was gone before its input ended\n")
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def _started(target: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread
