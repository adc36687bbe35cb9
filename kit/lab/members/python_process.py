"""Members in Python (``kit.consumer``) in one process: ``python -m kit.lab.members.python_process <file>``.

The file is a JSON list: ``flavour`` (``ozkcc``, ``mezkcc`` or ``kc``), ``config`` (the consumer's own keys),
``topics``, ``allow``, ``deny``, ``threads``, ``profile`` (its login at ZooKeeper) and ``record`` (file of consumed
records). Events go to standard output as those of the other consumers. On standard input ``commit`` commits and
``leave CONSUMER-ID`` ends one member.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from kit.clients.cluster import zookeeper_settings
from kit.consumer.console import KafkaMember, ZookeeperMember
from kit.consumer.hand_over import Events, HandOver, as_text
from kit.consumer.kafka.consumer import KafkaConsumer
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.errors import OfframpError
from kit.profile import load_profile

METRICS_SECONDS = 0.25


class _Delayed(HandOver):
    """Takes its time with each record, as a service does."""

    def __init__(self, record: Path, delay_ms: int) -> None:
        super().__init__(open("/dev/null", "wb"), as_text, record)  # noqa: SIM115 – as long as the process
        self._delay = threading.Event(), delay_ms / 1000

    def take(self, message: Any, consumer: str) -> bool:
        taken = super().take(message, consumer)
        self._delay[0].wait(self._delay[1])
        return taken


def start(spec: dict[str, Any], events: Events) -> ZookeeperMember | KafkaMember:
    """One member, consuming; reports ``ERR`` when it can't be started."""
    hand_over = _Delayed(Path(spec["record"]), spec.get("delay_ms", 0))
    if spec["flavour"] == "kc":
        config = spec["config"]
        plain = KafkaMember(KafkaConsumer(config), config["client.id"], hand_over, events)
        plain.start(spec["topics"])
        return plain
    login = zookeeper_settings(load_profile(file=spec["profile"])) if spec.get("profile") else None
    member = ZookeeperMember(ZookeeperConsumer(spec["config"], login), hand_over, events)
    try:
        member.start(spec["topics"], spec.get("allow"), spec.get("deny"), spec["threads"])
    except OfframpError as error:
        events.say(member.consumer.consumer_id, "ERR", str(error))
        raise
    return member


def _say_metrics(members: list[ZookeeperMember], events: Events, stopping: threading.Event) -> None:
    """``METRICS {name: value}`` whenever one of the gauges changed."""
    said: dict[str, dict[str, float]] = {}
    while not stopping.wait(METRICS_SECONDS):
        for member in members:
            values = member.consumer.metrics.snapshot()
            gauges = {name: value for name, value in values.items() if name.endswith("Count")}
            if said.get(member.consumer.consumer_id) != gauges:
                said[member.consumer.consumer_id] = gauges
                events.say(member.consumer.consumer_id, "METRICS", gauges)


def _obey(members: list[ZookeeperMember | KafkaMember], events: Events) -> None:
    for line in sys.stdin:
        for member in list(members):
            if line.rstrip("\n") == f"leave {_name(member)}":
                members.remove(member)  # First: one that has ended ends the process.
                member.stop()
            elif line.strip() == "commit" and isinstance(member, ZookeeperMember):
                errors = member.consumer.commit_offsets()
                events.say(_name(member), "COMMITTED", {f"{t}-{p}": why for (t, p), why in errors.items()})


def _name(member: ZookeeperMember | KafkaMember) -> str:
    return member.client_id if isinstance(member, KafkaMember) else member.consumer.consumer_id


def main() -> None:
    """Run every member of the file until SIGTERM."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    failures: list[OfframpError] = []
    events = Events(sys.stdout, failures.append)
    members = [start(spec, events) for spec in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]
    old = [member for member in members if isinstance(member, ZookeeperMember)]
    threading.Thread(target=_say_metrics, args=(old, events, stopping), daemon=True).start()
    threading.Thread(target=_obey, args=(members, events), daemon=True).start()
    while not (stopping.wait(0.2) or failures or any(member.hand_over.ended.is_set() for member in members)):
        pass
    for member in members:
        if member.hand_over.error is not None:
            events.say(_name(member), "ERR", str(member.hand_over.error))
        member.stop()


if __name__ == "__main__":
    main()
