"""Writes numbered records at a steady rate: ``python -P pacer.py <file>``.

The file is JSON: ``name``, ``topics``, ``rate`` (records per second over all topics), ``record`` (file of
acknowledged records) and ``settings`` (librdkafka's). A record's value is its number. Acknowledged records are
appended as JSON lines ``at_ms, producer, topic, partition, offset, number``. It imports nothing of ``kit``.
"""

from __future__ import annotations

import functools
import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Message, Producer

TICK_SECONDS = 0.1
stopping = threading.Event()


def places(producer: Producer, topics: list[str]) -> Iterator[tuple[str, int]]:
    """(topic, partition) in turn for ever: first every topic's partition 0, then every topic's 1, and so on."""
    counts = {topic: len(producer.list_topics(topic, timeout=30).topics[topic].partitions) for topic in topics}
    for turn in itertools.count():
        for topic, count in counts.items():
            yield topic, turn % count


def note(spec: dict[str, Any], lines: TextIO, error: Any, message: Message) -> None:
    """Write an acknowledged record down, or report that it failed."""
    if error is not None:
        sys.stderr.write(f"not written: {error}\n")
        return
    fields = {
        "at_ms": time.time_ns() // 1_000_000,
        "producer": spec["name"],
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "number": int(message.value() or b"0"),
    }
    lines.write(json.dumps(fields) + "\n")


def pace(spec: dict[str, Any], lines: TextIO) -> None:
    """Write until the process is stopped, then wait until every record is acknowledged."""
    producer = Producer(spec["settings"])
    place = places(producer, spec["topics"])
    deliver = functools.partial(note, spec, lines)
    started, written = time.monotonic(), 0
    while not stopping.wait(TICK_SECONDS):
        due = int((time.monotonic() - started) * spec["rate"])
        for number in range(written, due):
            topic, partition = next(place)
            producer.produce(topic, str(number).encode(), partition=partition, on_delivery=deliver)
        written = due
        producer.poll(0)
    producer.flush(60)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with Path(spec["record"]).open("a", encoding="utf-8", buffering=1) as lines:
        pace(spec, lines)


if __name__ == "__main__":
    main()
