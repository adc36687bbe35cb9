"""Register the lab."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "lab": Verb("kit.lab.command:app", "Real ZooKeeper, Kafka and consumers on this machine."),
}
