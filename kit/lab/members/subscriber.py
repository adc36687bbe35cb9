"""Members of new Kafka groups in one process, each in its own thread: ``python -P subscriber.py <file>``.

The file is a JSON list of members: ``client_id``, ``topics``, ``record`` (file of consumed records), ``settings``
(librdkafka's), ``delay_ms`` (pause after each record) and ``until_end`` (leave the group once everything was read).
Standard output has one event per line, as of the old consumers: ``START``, ``ASSIGN {topic: [partitions]}``,
``REVOKE``, ``ERR`` and ``STOP``. ``leave CLIENT-ID`` on standard input ends one member. It imports nothing of
``kit``, so that it is up at once.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

POLL_SECONDS = 0.2
stopping = threading.Event()


class Member:
    """One group member: consumes, commits by the settings' auto-commit, writes down what it got."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.client_id: str = spec["client_id"]
        self.topics: list[str] = spec["topics"]
        self.delay_seconds = spec.get("delay_ms", 0) / 1000
        self.until_end: bool = spec.get("until_end", False)
        self.record = Path(spec["record"])
        self.ended: set[tuple[str, int]] = set()
        self.assigned: set[tuple[str, int]] = set()
        self.leaving = False
        settings = {**spec["settings"], "client.id": self.client_id, "enable.partition.eof": self.until_end}
        self.consumer = Consumer(settings)

    def run(self) -> None:
        """Consume until the process or it is stopped (or everything was read), then leave the group."""
        self.say("START")
        self.consumer.subscribe(self.topics, on_assign=self.on_assign, on_revoke=self.on_revoke)
        with self.record.open("a", encoding="utf-8", buffering=1) as lines:
            while not (stopping.is_set() or self.leaving or self.done()):
                message = self.consumer.poll(POLL_SECONDS)
                if message is not None:
                    self.take(message, lines)
        self.consumer.close()
        self.say("STOP")

    def take(self, message: Message, lines: TextIO) -> None:
        """Write one record down, or note the end of a partition."""
        error = message.error()
        if error is None:
            self.ended.discard((str(message.topic()), int(message.partition() or 0)))
            lines.write(self.line(message))
            stopping.wait(self.delay_seconds)
        elif error.code() == KafkaError._PARTITION_EOF:
            self.ended.add((str(message.topic()), int(message.partition() or 0)))
        else:
            self.say(f"ERR {error}")

    def line(self, message: Message) -> str:
        fields = {
            "at_ms": time.time_ns() // 1_000_000,
            "consumer": self.client_id,
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
        }
        return json.dumps(fields) + "\n"

    def done(self) -> bool:
        """Return whether it reads to the end only, and has."""
        return self.until_end and bool(self.assigned) and self.assigned <= self.ended

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned |= {(partition.topic, partition.partition) for partition in partitions}
        self.say(f"ASSIGN {self.assigned_json()}")

    def on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {(partition.topic, partition.partition) for partition in partitions}
        self.say(f"REVOKE {self.assigned_json()}")

    def assigned_json(self) -> str:
        """Return the present assignment, as JSON."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.assigned):
            topics.setdefault(topic, []).append(partition)
        return json.dumps(topics)

    def say(self, event: str) -> None:
        sys.stdout.write(f"{time.time_ns() // 1_000_000} {self.client_id} {event}\n")
        sys.stdout.flush()


def run(member: Member) -> None:
    """A member's thread. A failure is printed and does not end the other members."""
    try:
        member.run()
    except KafkaException as error:
        member.say(f"ERR {error}")


def obey(members: list[Member]) -> None:
    for line in sys.stdin:
        for member in members:
            member.leaving |= line.rstrip("\n") == f"leave {member.client_id}"


def main() -> None:
    """Run every member of the file until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    members = [Member(spec) for spec in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]
    threads = [threading.Thread(target=run, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    threading.Thread(target=obey, args=(members,), daemon=True).start()
    # A signal's handler runs between two instructions of the main thread: join without end would keep it waiting.
    while any(thread.is_alive() for thread in threads):
        stopping.wait(POLL_SECONDS)
        for thread in threads:
            thread.join(0 if not stopping.is_set() else POLL_SECONDS)


if __name__ == "__main__":
    main()
