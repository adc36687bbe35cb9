"""A member of a Kafka group by kafka-python, with its log at DEBUG: ``python -P kafka_python_member.py <JSON>``.

It says what the lab's other members say: events on standard output, records in a file, the log on standard error.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from pathlib import Path

from kafka import ConsumerRebalanceListener, KafkaConsumer

LAYOUT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


def main(spec: dict) -> None:
    logging.basicConfig(level=logging.DEBUG, format=LAYOUT, stream=sys.stderr)
    consumer = KafkaConsumer(
        bootstrap_servers=spec["bootstrap_servers"],
        group_id=spec["group"],
        client_id=spec["client_id"],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=500,
        session_timeout_ms=15000,
        heartbeat_interval_ms=1000,
    )
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

    def say(event: str) -> None:
        sys.stdout.write(f"{time.time_ns() // 1_000_000} {spec['client_id']} {event}\n")
        sys.stdout.flush()

    class Telling(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked) -> None:
            say("REVOKE {}")

        def on_partitions_assigned(self, assigned) -> None:
            topics: dict[str, list[int]] = {}
            for topic, partition in sorted(assigned):
                topics.setdefault(topic, []).append(partition)
            say(f"ASSIGN {json.dumps(topics)}")

    consumer.subscribe([spec["topic"]], listener=Telling())
    with Path(spec["record"]).open("a", encoding="utf-8", buffering=1) as lines:
        while not stopping:
            for records in consumer.poll(timeout_ms=2000).values():
                for record in records:
                    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
                    handed = {"at_ms": time.time_ns() // 1_000_000, "consumer": spec["client_id"], **place}
                    lines.write(json.dumps(handed) + "\n")
    consumer.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
