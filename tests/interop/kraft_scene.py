"""A cluster moved to KRaft and back by the command line, each verb a process of its own, under load, watched.

``kill_at``: the verb's process is killed (SIGKILL) at an event of its run, ``event/step/item/outcome`` with wildcards,
or some seconds after it; ``TRANSACTION``: when ZooKeeper has taken the transaction that hands control back, and the run
has not noted that yet.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka.errors import KafkaError
from kazoo.client import KazooClient

from kit.cluster import Cluster, connect, kafka_settings
from kit.errors import OfframpError, TargetBusy
from kit.kraft import KraftStatus, kraft_status
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.servers.migrating import connected
from kit.migrate.engine.approval import approve
from kit.migrate.engine.plan import load_plan
from kit.migrate.kraft.rehearsals import RehearsalResult, keep
from kit.migrate.kraft.standing import sync_problem
from kit.migrate.runs_folder import add_approval
from kit.profile import load_profile
from kit.read.nodes import fetch_node_metadata

OVERRIDES = {
    "controllers": ("preflight_known",),
    "dual write": ("preflight_known", "low_epoch"),
    "zookeeper": ("R03_known",),
    "finalised": ("soak",),
}
"""What nobody can know without the nodes' own files; on a busy machine controllers elect more than once at first."""
VERB_S = 600.0
LOCK_S = 40.0
TRANSACTION = "transaction"
KILLED = -9
_CHILD = """
import os, signal, sys, threading
from fnmatch import fnmatchcase
from kit.migrate.kraft import hand_back
from kit.migrate.rendering import text

where, after_s = sys.argv.pop(1), float(sys.argv.pop(1))
text_of, transaction = text.event_text, hand_back._transaction


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def tell(event):
    if fnmatchcase("/".join(filter(None, (event.event, event.step_id, event.item, event.outcome))), where):
        threading.Timer(after_s, end).start() if after_s else end()
    return text_of(event)


def commit(*given):
    outcome = transaction(*given)
    if where == "transaction":
        end()
    return outcome


text.event_text, hand_back._transaction = tell, commit
from kit.cli.main import main
main()
"""
_MOVING = re.compile(
    r"/(controller(_epoch)?|migration|offramp(/.*)?|brokers/ids/.*|latest_producer_id_block|zookeeper.*"
    r"|consumers/[^/]+/(offsets|owners)/.*|(config/changes|isr_change_notification|log_dir_event_notification)/.*"
    r"|(kafka-acl.*|delegation_token/token)_?changes/.*)"
)
"""What two moments of one cluster don't have in common, whoever controls it."""
_LEADERS = ("leader", "leader_epoch", "controller_epoch", "isr", "version")


def vouch(cluster: Cluster, runs: Path) -> None:
    """As ``offramp kraft rehearse`` keeps a rehearsal that went well: labs are rehearsed in a test of their own."""
    now = datetime.now(UTC)
    keep(runs, RehearsalResult(cluster.cluster_id, cluster.name, "5a" * 32, now, now, "ann", 3, {}))


@dataclass
class Ended:
    """One verb's process."""

    exit_code: int
    out: str
    err: str


@dataclass
class Scene:
    """``offline``: partition → seconds of each time it had no leader, by the metadata of any broker."""

    lab: Lab
    profile: Path
    ended: list[tuple[str, Ended]] = field(default_factory=list)
    offline: dict[str, list[float]] = field(default_factory=dict)

    @property
    def runs(self) -> Path:
        return self.profile.parent / "runs"

    @property
    def n_killed(self) -> int:
        return sum(each.exit_code == KILLED for _, each in self.ended)

    # Verbs

    def offramp(self, *words: str, kill_at: str = "-", after_s: float = 0.0) -> Ended:
        command = [sys.executable, "-c", _CHILD, kill_at, str(after_s), *words, "--profile-file", str(self.profile)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERB_S, env={**os.environ})
        found = Ended(done.returncode, done.stdout, done.stderr)
        self.ended.append((" ".join(words), found))
        assert "Traceback" not in found.err, found.err
        return found

    def plan(self, to: str, override: bool = True) -> dict[str, Any]:
        """Plan and approve; finalising by somebody else. ``to``: a phase, or an option that stands for itself."""
        overrides = [word for name in OVERRIDES.get(to, ()) for word in ("--override", name)] if override else []
        with connect(load_profile(file=self.profile)) as cluster:
            vouch(cluster, self.runs)
        words = [to] if to.startswith("--") else ["--to", to]
        made = self.offramp("plan", "kraft", *words, *overrides, "--json")
        assert made.exit_code == 0, made.err
        plan: dict[str, Any] = json.loads(made.out)
        digest, consent = plan["digest"], plan["consent"]
        if consent["second_person"]:
            self._approve_as_bob(digest)
        else:
            done = self.offramp("approve", digest[:8], "--subject", consent["subject"], "--digest", digest[:8])
            assert done.exit_code == 0, done.err
        return plan

    def _approve_as_bob(self, digest: str) -> None:
        """As if from another login: this machine has one."""
        file = self.runs / "plans" / f"{digest[:12]}.json"
        plan = load_plan(file)
        given = approve(
            plan,
            typed_subject=plan.subject,
            typed_digest_prefix=digest[:8],
            approver="Bob",
            now=datetime.now(UTC),
            valid_for=timedelta(minutes=30),
            approved_as="bob",
        )
        add_approval(file, given)

    def begin(self, to: str, kill_at: str = "-", after_s: float = 0.0) -> tuple[str, Ended]:
        """Plan, approve, act: the run's id, and how the process ended."""
        digest = self.plan(to)["digest"]
        before = self.run_ids()
        ended = self.offramp("act", digest[:8], kill_at=kill_at, after_s=after_s)
        (run,) = self.run_ids() - before
        return run, ended

    def go(self, to: str) -> str:
        run, ended = self.begin(to)
        assert ended.exit_code == 0, ended.err
        return run

    def go_killed(self, to: str, *kills: tuple[str, float]) -> str:
        """Killed at each of these in turn, resumed each time; the last one ends verified."""
        (first, after_s), *rest = kills
        run, ended = self.begin(to, first, after_s)
        assert ended.exit_code == KILLED, (first, ended.exit_code, ended.err)
        for where, seconds in rest:
            ended = self.resume(run, where, seconds)
            assert ended.exit_code == KILLED, (where, ended.exit_code, ended.err)
        ended = self.resume(run)
        assert ended.exit_code == 0, ended.err
        return run

    def resume(self, run: str, kill_at: str = "-", after_s: float = 0.0, verb: str = "resume") -> Ended:
        """The lock of a process that was killed ends with its session."""
        deadline = time.monotonic() + LOCK_S
        while True:
            ended = self.offramp(verb, run, kill_at=kill_at, after_s=after_s)
            if ended.exit_code != TargetBusy.exit_code or time.monotonic() > deadline:
                return ended

    def run_ids(self) -> set[str]:
        return {each.parent.name for each in self.runs.glob("*/events.jsonl")}

    def events(self, run: str) -> list[dict[str, Any]]:
        lines = (self.runs / run / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    # What is seen

    def await_sound(self) -> None:
        """Until every broker answers and every ISR is full."""

        def is_sound() -> bool:
            with connect(load_profile(file=self.profile)) as cluster:
                return sync_problem(cluster, {each.broker_id: each.addresses["PLAINTEXT"] for each in brokers}) is None

        brokers = self.lab.migration.migrating
        wait_until(is_sound, "all brokers in sync", 120)

    def status(self) -> KraftStatus:
        with connect(load_profile(file=self.profile)) as cluster:
            return kraft_status(cluster)

    def dump(self) -> dict[str, Any]:
        """Every znode but for leaders, epochs and what is a moment's."""
        with connected(self.lab.zookeeper_connect, self.lab.security) as client:
            return dict(_walk(client, "/"))

    def access_lists(self, paths: Iterable[str]) -> dict[str, list[tuple[str, str, int]]]:
        """Scheme, id and rights of each entry, of znodes that are there."""
        with connected(self.lab.zookeeper_connect, self.lab.security) as client:
            lists = {path: client.get_acls(path)[0] for path in paths}
        return {path: sorted((each.id.scheme, each.id.id, each.perms) for each in acl) for path, acl in lists.items()}

    def meanwhile(self, event: str, do: Callable[[], None]) -> threading.Thread:
        """Do something as soon as a run that begins from now on has that event."""
        before = self.run_ids()

        def has_come() -> bool:
            return any(fnmatchcase(_name(each), event) for run in self.run_ids() - before for each in self._seen(run))

        def watch() -> None:
            wait_until(has_come, event, VERB_S)
            do()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        return thread

    def _seen(self, run: str) -> Iterator[Mapping[str, Any]]:
        for line in (self.runs / run / "events.jsonl").read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return

    def lost(self, topic: str, partitions: int) -> tuple[int, set[tuple[int, int]]]:
        """How many records were acknowledged, and which of them, by partition and number, can't be read any more.

        A record that was sent again is acknowledged without its offset; all others have to be where they were put.
        """
        lines = [line for file in self.lab.production.iterdir() for line in file.read_text().splitlines()]
        rows = [row for row in map(json.loads, lines) if row["topic"] == topic]
        wanted = {(row["partition"], row["number"]): row["offset"] for row in rows}
        assert len(wanted) == len(rows), "one producer counts its records"
        consumer = Consumer({"bootstrap.servers": self.lab.servers.addresses(), "group.id": "reader"})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        deadline = time.monotonic() + 120
        while wanted and time.monotonic() < deadline:
            for each in consumer.consume(2000, 0.5):
                at = None if each.error() else (each.partition(), int(each.value()))
                if at in wanted and wanted[at] in (None, each.offset()):
                    del wanted[at]
        consumer.close()
        return len(rows), set(wanted)

    def longest_pauses_ms(self) -> list[int]:
        """Between two acknowledgements of one partition, the longest of each partition."""
        lines = [line for file in self.lab.production.iterdir() for line in file.read_text().splitlines()]
        times: dict[int, list[int]] = {}
        for row in map(json.loads, lines):
            times.setdefault(row["partition"], []).append(row["at_ms"])
        return [max(b - a for a, b in pairwise(each)) for each in times.values()]


class LeaderWatch(threading.Thread):
    """Asks the brokers in turn, four times a second, which partitions have no leader."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(daemon=True)
        self._scene, self._over = scene, threading.Event()
        self._settings = kafka_settings(load_profile(file=scene.profile))
        self._since: dict[str, float] = {}
        self.n_looks = 0

    def run(self) -> None:
        while not self._over.wait(0.25):
            self._look()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _look(self) -> None:
        for address in self._scene.lab.bootstrap_servers.split(","):
            try:
                told = fetch_node_metadata(self._settings, address)
            except (OfframpError, KafkaError, OSError, ValueError):
                continue
            self.n_looks += 1
            now = time.monotonic()
            without = {f"{row.topic}-{row.partition}" for row in told.topic_partitions if row.leader is None}
            for name in set(self._since) - without:
                self._scene.offline.setdefault(name, []).append(now - self._since.pop(name))
            for name in without - set(self._since):
                self._since[name] = now
            return


def _name(event: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (event["event"], event["step_id"], event["item"], event["outcome"])))


def _walk(client: KazooClient, path: str) -> Iterator[tuple[str, Any]]:
    if _MOVING.fullmatch(path):
        return
    data, stat = client.get(path)
    if stat.ephemeralOwner == 0:
        yield path, _plain(path, data)
    for child in sorted(client.get_children(path)):
        yield from _walk(client, f"{path.rstrip('/')}/{child}")


def _plain(path: str, data: bytes | None) -> Any:
    try:
        value = json.loads(data or b"null")
    except ValueError:
        return data
    if path.endswith("/state") and isinstance(value, dict):
        return {name: each for name, each in value.items() if name not in _LEADERS} | {"isr": sorted(value["isr"])}
    return value
