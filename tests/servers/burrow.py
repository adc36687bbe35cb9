"""Burrow beside a lab, where a binary of it is given: what its API says of a group, and when it examines ends."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kit.lab import Lab
from kit.lab.ports import free_ports
from kit.lab.process import wait_until

VARIABLE = "BURROW"
HOW_TO_GIVE = f"${VARIABLE} names no binary of Burrow (Go, repository linkedin/Burrow)"
REFRESH_S = 3
"""Each so many seconds it examines the ends of all logs: half of it has to do for what happens in between."""
# Its defaults, but for how often it looks and for how long it keeps an answer: a second is the least here too.
_CONFIG = """[general]
pidfile="{folder}/burrow.pid"
[logging]
filename="{folder}/burrow-own.log"
level="warn"
[zookeeper]
servers=["{zookeeper}"]
root-path="/burrow"
[client-profile.lab]
client-id="burrow"
kafka-version="2.8.0"
[cluster.lab]
class-name="kafka"
servers=["{brokers}"]
client-profile="lab"
topic-refresh=1
offset-refresh={refresh}
[consumer.lab]
class-name="kafka"
cluster="lab"
servers=["{brokers}"]
client-profile="lab"
[evaluator.default]
class-name="caching"
expire-cache=1
[httpserver.default]
address="127.0.0.1:{port}"
"""


def binary() -> Path | None:
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else None


class Burrow:
    """A running one."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def answers(self) -> bool:
        try:
            return "lab" in self.get("/v3/kafka").get("clusters", [])
        except OSError:
            return False

    def get(self, path: str) -> dict[str, Any]:
        """The object that it answers; an empty one where it knows no such thing."""
        try:
            with urllib.request.urlopen(self._address + path, timeout=10) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return {}

    def ends(self, topic: str) -> list[int]:
        """Return where it saw the topic's logs end the last time."""
        return list(self.get(f"/v3/kafka/lab/topic/{quote(topic, safe='')}").get("offsets", []))

    def partitions(self, group: str) -> list[dict[str, Any]]:
        """Each partition of the group of which it knows a commit: status, current_lag, complete, start, end."""
        answer = self.get(f"/v3/kafka/lab/consumer/{quote(group, safe='')}/lag").get("status", {})
        return [each for each in answer.get("partitions", []) if each["end"] is not None]


@contextmanager
def served(lab: Lab) -> Iterator[Burrow]:
    """Start it beside the lab's servers; gives it once it answers."""
    (port,) = free_ports(1)
    folder = lab.folder / "burrow"
    folder.mkdir(exist_ok=True)
    places = {"brokers": lab.servers.addresses(), "zookeeper": lab.zookeeper_connect, "folder": folder}
    text = _CONFIG.format(**places, refresh=REFRESH_S, port=port)
    (folder / "burrow.toml").write_text(text, encoding="utf-8")
    process = lab.supervisor.start("burrow", [str(binary()), "--config-dir", str(folder)])
    try:
        burrow = Burrow(port)
        process.wait_until(burrow.answers, "its first answer", 30)
        yield burrow
    finally:
        process.stop(10)


def await_tick(burrow: Burrow, topic: str, write: Any) -> float:
    """Return when (``time.monotonic``) it examined the ends: what ``write`` appends, it saw then. Its clock ticks
    evenly.
    """
    known = burrow.ends(topic)
    write()
    wait_until(lambda: burrow.ends(topic) != known, "its next observation", 30)
    return time.monotonic()
