"""Handles of the lab's consumers: what each one delivered, and what it reports about its own partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.lab.process import STOP_SECONDS, Process

REGISTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Event:
    """One line a consumer reported; ``at_ms`` is epoch time, ``name`` one of ``REG``, ``BEG``, ``ASSIGN`` …"""

    at_ms: int
    consumer: str
    name: str
    details: str

    def value(self) -> Any:
        """The details as JSON."""
        return json.loads(self.details)


@dataclass(frozen=True, slots=True)
class Consumer:
    """One member of a group. ``consumer_id`` is in its consumption file.

    For an old consumer it is the id under ``/consumers/<group>/ids``; for a new one it is the client id.
    ``kind`` is ``old``, ``new`` or ``console``. Several members may share one ``process``; one that ``leaves`` ends
    its membership by itself.
    """

    consumer_id: str
    group: str
    kind: str
    process: Process
    consumption_file: Path
    events_file: Path
    leaves: bool = False

    def events(self, name: str | None = None) -> list[Event]:
        """Return the events that this member printed so far, oldest first; only events called ``name`` when given."""
        mine = (event for event in read_events(self.events_file) if event.consumer == self.consumer_id)
        return [event for event in mine if name in (None, event.name)]

    def records(self) -> list[dict[str, Any]]:
        """Return the records that the member delivered so far: ``at_ms``, ``consumer``, ``topic``, ``partition``,
        ``offset``.
        """
        if not self.consumption_file.exists():
            return []
        return [json.loads(line) for line in whole_lines(self.consumption_file)]

    def group_assignment(self) -> dict[tuple[str, int], str] | None:
        """(topic, partition) → thread id for the whole group, as this old member's rebalance listener last heard it.

        None before the first rebalance and for members without a listener (0.8.2, new consumers).
        """
        calls = self.events("BEG")
        if not calls:
            return None
        threads = calls[-1].value()
        return {
            (topic, int(partition)): thread for topic, owned in threads.items() for partition, thread in owned.items()
        }

    def partitions(self) -> set[tuple[str, int]]:
        """The (topic, partition) pairs that this member reports it owns.

        An old member's listener reports them, a new member's assignment callback. Without either (0.8.2, console) they
        are those of which it delivered a record.
        """
        assignment = self.group_assignment()
        if assignment is not None:
            return {pair for pair, thread in assignment.items() if thread.rpartition("-")[0] == self.consumer_id}
        assigned = self.events("ASSIGN")
        if assigned:
            return {(topic, partition) for topic, numbers in assigned[-1].value().items() for partition in numbers}
        return self.handed_out()

    def handed_out(self) -> set[tuple[str, int]]:
        """The (topic, partition) pairs of which it delivered at least one record."""
        return {(record["topic"], record["partition"]) for record in self.records()}

    def await_ready(self, seconds: float = REGISTER_SECONDS) -> None:
        """Wait until it is a member: streams made (old), partitions assigned (new)."""
        self.process.wait_until(self.is_member, f"{self.consumer_id} a member", seconds)

    def is_member(self) -> bool:
        """Return whether it has reported that it became a member of its group."""
        if self.kind == "console":
            return "Adding newly assigned partitions" in self.events_file.read_text(encoding="utf-8")
        return any(event.name in ("REG", "ASSIGN") for event in self.events())

    @property
    def has_left(self) -> bool:
        """Return whether it has reported that it left its group in order."""
        return bool(self.events("STOP"))

    def pause(self) -> None:
        """SIGSTOP its process, and with it every member that shares it."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def kill(self) -> None:
        """kill -9: its session or membership ends by time-out."""
        self.process.kill()

    def stop(self) -> None:
        """SIGTERM its process and wait: it leaves its group, and so does every member that shares it."""
        self.process.stop()

    def leave(self) -> None:
        """It leaves its group, and the other members of its process stay; raises LabError when it does not."""
        self.process.resume()
        self.process.tell(f"leave {self.consumer_id}")
        self.process.wait_until(lambda: self.has_left, f"{self.consumer_id} to leave", STOP_SECONDS)


def read_events(path: Path) -> Iterator[Event]:
    """Parse ``epoch-ms consumer EVENT details`` lines; other output is passed over."""
    for line in whole_lines(path) if path.exists() else ():
        words = line.split(" ", 3)
        if len(words) >= 3 and words[0].isdigit():
            yield Event(int(words[0]), words[1], words[2], words[3] if len(words) > 3 else "")


def whole_lines(path: Path) -> list[str]:
    """The lines of a file that is being appended to, without an unfinished last one."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def consumption_folder(folder: Path) -> Path:
    """Return where the consumers of the lab in ``folder`` write what they delivered."""
    return folder / "consumption"


def consumption_file(folder: Path, consumer_id: str) -> Path:
    """The one file of one consumer, JSON lines."""
    return consumption_folder(folder) / f"{consumer_id}.jsonl"
