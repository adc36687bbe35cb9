"""Consumers of any flavour as one process: records to standard output or to a child, one thread per stream.

A record counts as consumed only after it was delivered (see :mod:`kit.consumer.hand_over`). At every end – limit,
signal, time-out, closed or full output, error – a member leaves its group at once and commits only those records. A
member that owned partitions and read nothing would be worse than no member.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from kit.consumer.hand_over import Events, HandOver
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.kafka.rebalance_consumer import RebalanceConsumer
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.consumer.zookeeper.streams import ConsumerTimeout, Stream
from kit.errors import ChildEnded, InputError, OfframpError, ReadError
from kit.text.visible import visible

log = logging.getLogger("offramp.consumer")
_UNREADABLE = {KafkaError.GROUP_AUTHORIZATION_FAILED: "group", KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic"}
"""Error of the consumer → the resource on which the login lacks READ."""

POLL_SECONDS = 0.2
END_SECONDS = 30.0
"""Seconds in which threads must make their last commit and leave the group."""


class _ToldOfRebalances:
    """A ZooKeeper member's listener: writes ``REL {topic: [partitions]}`` and ``BEG {topic: {partition: thread}}``."""

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

    def _pump(self, stream: Stream) -> None:
        with _telling(self.consumer.consumer_id, self.hand_over):
            while not self._is_done(stream):
                pass

    def _is_done(self, stream: Stream) -> bool:
        """Hand records over until the end. False: no record for ``consumer.timeout.ms`` on this stream alone."""
        try:
            for message in stream:
                if not self.hand_over.take(message, self.consumer.consumer_id):
                    stream.give_back()
                    return True
                stream.taken()
                if self.hand_over.ended.is_set():
                    return True
        except ConsumerTimeout as timeout:
            if self.hand_over.seconds_idle >= self.consumer.config.seconds("consumer.timeout.ms"):
                self.events.say(self.consumer.consumer_id, "TIMEOUT", str(timeout))
                self.hand_over.end()
                return True
            return False
        return True

    def stop(self) -> None:
        self.hand_over.end()
        self.hand_over.settle()
        self.consumer.shutdown()
        for thread in self.threads:
            thread.join(END_SECONDS)
        self.events.say(self.consumer.consumer_id, "STOP")


@dataclass
class KafkaMember:
    """A KC: one member of the Kafka group on one thread."""

    consumer: KafkaConsumer
    client_id: str
    hand_over: HandOver
    events: Events
    thread: threading.Thread | None = None
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
        with _telling(self.client_id, self.hand_over), self.consumer:
            while not self.hand_over.ended.is_set():
                message = self.consumer.poll(POLL_SECONDS)
                if message is not None and not self._take(message):
                    self.consumer.close(handed_over=False)

    def _take(self, message: Message) -> bool:
        if (error := message.error()) is None:
            return self.hand_over.take(message, self.client_id)
        if error.fatal():
            raise KafkaException(error)
        if (resource := _UNREADABLE.get(error.code())) is not None:  # Java's consumer ends as well.
            of_topic = f" {visible(topic)}" if (topic := message.topic()) else ""
            raise ReadError(
                f"{self.client_id} left the group: the login lacks READ on the {resource}{of_topic}. Grant it: "
                f"kafka-acls --add --allow-principal User:LOGIN --operation Read --{resource} …"
            )
        log.warning("%s: %s", self.client_id, error.str())
        return True

    def stop(self) -> None:
        self.hand_over.end()
        self.hand_over.settle()
        if self.thread is None:
            self.consumer.close()
        else:
            self.thread.join(END_SECONDS)
            if self.thread.is_alive():
                log.warning(
                    "%s: no broker answered; the group removes this member after its session time-out", self.client_id
                )
        self.events.say(self.client_id, "STOP")


@dataclass
class Child:
    """A program that reads records on its standard input. It shares this process's standard output."""

    name: str
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, command: Sequence[str]) -> Child:
        """Start the program; raises InputError if it can't be started."""
        try:
            process = subprocess.Popen(list(command), bufsize=0, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise InputError(f"{command[0]} can't be started: {error.strerror}") from None
        return cls(command[0], process)

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def close(self, seconds: float = 30.0) -> ChildEnded | None:
        """Close its input and wait; kill it after ``seconds``. → the error, None: it ended with exit code 0."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # Its session has all processes that it started.
            self.process.wait()
            return ChildEnded(
                f"{self.name} did not end within {seconds:g} s after its input was closed, and was killed. Make the "
                "program end when its input ends"
            )
        if code == 0:
            return None
        return ChildEnded(
            f"{self.name} {_ended(code)}. Records that the program had not read are not committed, so they are "
            "delivered again. Repair the program, then start offramp consume again"
        )


def _ended(code: int) -> str:
    return f"ended with exit code {code}" if code > 0 else f"was ended by {signal.Signals(-code).name}"


@contextmanager
def _telling(name: str, hand_over: HandOver) -> Iterator[None]:
    """End the whole process when a thread fails: no other thread would read its partitions."""
    try:
        yield
    except OfframpError as error:
        hand_over.fail(error)
    except KafkaException as error:
        hand_over.fail(OfframpError(f"{name}: {error.args[0].str()}"))
    except Exception as error:
        log.exception("%s: a thread failed with an unexpected error; the process ends", name)
        hand_over.fail(OfframpError(f"{name}: {error!r}"))


def _started(target: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread
